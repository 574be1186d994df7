"""Which file is meant where a directory is named, such as a snapshot in the Hugging Face cache."""

from pathlib import Path

from export.errors import CheckpointError

SAFETENSORS = ".safetensors"
INDEX = ".safetensors.index.json"
PICKLES = (".pt", ".pth", ".bin")
KINDS = (SAFETENSORS, INDEX, *PICKLES)
EXPECTED = "expected a .safetensors, .safetensors.index.json, .pt, .pth or .bin file"
# In the order in which transformers looks for them.
USUAL = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")


def find_checkpoint(path: Path) -> Path:
    """The file itself, or the one checkpoint in a directory.

    A snapshot of the Hugging Face cache is a directory of links to ``../../blobs``, which are
    followed; ``config.json`` is the one beside the link.

    Raises:
        CheckpointError: if there is none, more than one, or one of an unknown kind.
        OSError: if the file may not be read.
    """
    file = choose_file(path) if path.is_dir() else path
    if not file.is_file():
        raise CheckpointError(f"checkpoint '{file}' {say_why_absent(file)}, {EXPECTED}")
    if not file.name.endswith(KINDS):
        raise CheckpointError(f"checkpoint '{file}' has the suffix {file.suffix!r}, {EXPECTED}")
    with file.open("rb"):
        pass  # whatever fails from here on is the content, not the right to read it
    return file


def choose_file(directory: Path) -> Path:
    """The file of a usual name, else the only one of a known kind.

    Raises:
        CheckpointError: if there is none, or more than one: then they are listed.
    """
    found = sorted(path.name for path in directory.iterdir() if path.name.endswith(KINDS))
    usual = [name for name in USUAL if name in found]
    if usual or len(found) == 1:
        return directory / (usual or found)[0]
    if not found:
        raise CheckpointError(f"directory '{directory}' holds no checkpoint, {EXPECTED}")
    raise CheckpointError(
        f"directory '{directory}' holds {len(found)} checkpoints, expected one; name the file: "
        f"{', '.join(map(repr, found))}"
    )


def say_why_absent(path: Path) -> str:
    """What stands in the place of a file."""
    if path.is_symlink():
        return "is a link to nothing"
    return "is no file" if path.exists() else "does not exist"
