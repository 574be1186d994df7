"""The model directory: files, manifest and Triton's config, put in place whole or not at all."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.aside import VERSION, made_aside
from export.errors import RepositoryError
from model.contract import (
    BIAS,
    CONFIG_FILE,
    DECOMPOSED,
    GRAPHS,
    KEY,
    MANIFEST_FILE,
    MANIFEST_FORMAT,
    MODEL_NAME,
    OUTPUT,
    QUERY,
    VALUE,
    WEIGHTS,
    AttentionSpec,
)

MAX_BATCH_SIZE = 256
# A disk, a quota, a limit: errors of a write, which do not name the file.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_name(name: str) -> None:
    """Accept a model name that every client can put into a URL unescaped.

    Raises:
        RepositoryError: if `name` holds anything but letters, digits, '_', '.' and '-', starts
            with '.' or '-', or is 'stats', which is a path of the protocol.
    """
    if not MODEL_NAME.fullmatch(name):
        raise RepositoryError(
            f"model name is {name!r}, expected letters, digits, '_', '.' and '-', "
            "not starting with '.' or '-', and not 'stats'"
        )


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that is to be written.

    Attributes:
        name: of the model.
        spec: its sizes.
        fill: writes the files; it is given an empty directory.
    """

    name: str
    spec: AttentionSpec
    fill: Callable[[Path], None]


def write_versions(models: Path, versions: Sequence[NewVersion]) -> list[Path]:
    """Let each version write its files, then put all of them in place.

    A version gets number 1 in a new model, else one more than the highest. Nothing is left behind
    when one of them raises.

    Args:
        models: the repository; made if absent.
        versions: of different models.

    Returns:
        The directories of the versions.

    Raises:
        RepositoryError: if a name is unfit, `models` is not a directory, or a model exists with
            other sizes.
    """
    if models.exists() and not models.is_dir():
        raise RepositoryError(
            f"'{models}' is not a directory, expected the directory of models; choose another "
            "--models or remove it"
        )
    for new in versions:
        check_name(new.name)
        check_same_sizes(models / new.name, new.spec)
    with made_directory(models), ExitStack() as asides:
        whole = [write_aside(asides.enter_context(made_aside(models, v.name)), v) for v in versions]
        return place_versions(models, whole, versions)


def write_aside(aside: Path, new: NewVersion) -> Path:
    """Write a version into a directory beside the models.

    Raises:
        RepositoryError: if there is no room for it.
    """
    version = aside / VERSION
    version.mkdir()
    try:
        new.fill(version)
        flush(version)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise RepositoryError(
            f"'{aside.parent}' has no room for model '{new.name}' ({error.strerror}); make room or "
            "choose another --models"
        ) from None
    return version


def place_versions(
    models: Path, written: Sequence[Path], versions: Sequence[NewVersion]
) -> list[Path]:
    """Move finished versions under their models; take them back if one cannot be moved."""
    placed: list[Path] = []
    try:
        for path, new in zip(written, versions, strict=True):
            placed.append(place_version(path, models / new.name, new.spec))
    except BaseException:
        for path in placed:
            take_back(path)
        raise
    return placed


def take_back(version: Path) -> None:
    """Remove a version, and its model if that holds nothing else."""
    model = version.parent
    shutil.rmtree(version, ignore_errors=True)
    if not versions_of(model):
        shutil.rmtree(model, ignore_errors=True)


@contextmanager
def made_directory(directory: Path) -> Iterator[None]:
    """Make `directory` and its parents where absent; remove them again if the block raises."""
    absent = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # another export may have put something there
            for path in absent:
                path.rmdir()
        raise


def check_same_sizes(model: Path, spec: AttentionSpec) -> None:
    """All versions of a model share one config, so their sizes must agree.

    Raises:
        RepositoryError: if `model` exists and its config is not the one of `spec`.
    """
    config = model / CONFIG_FILE
    if not model.exists():
        return
    rendered = render_config(model.name, spec).encode()
    if not config.is_file() or config.read_bytes() != rendered:
        raise RepositoryError(
            f"model '{model.name}' exists with other sizes or a config of its own; "
            "choose another --name or remove it"
        )


def place_version(version: Path, model: Path, spec: AttentionSpec) -> Path:
    """Move a finished version under its model, taking the next free number.

    Raises:
        RepositoryError: if the model has appeared meanwhile with other sizes.
        OSError: if another export takes the same number at the same moment.
    """
    if model.exists():
        check_same_sizes(model, spec)  # again: another export may have ended meanwhile
        number = max(versions_of(model), default=0) + 1
        return version.rename(model / str(number))
    whole = version.parent / model.name
    whole.mkdir()
    (whole / CONFIG_FILE).write_text(render_config(model.name, spec))
    version.rename(whole / "1")
    return whole.rename(model) / "1"


def versions_of(model: Path) -> list[int]:
    """Numbers of the versions that a model directory holds."""
    return [int(p.name) for p in model.iterdir() if re.fullmatch(r"[1-9][0-9]*", p.name)]


def flush(directory: Path) -> None:
    """Bring the files to the disk before their directory appears under its name."""
    for path in directory.iterdir():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write readable JSON with a newline at the end."""
    path.write_text(json.dumps(content, indent=2) + "\n")


def write_manifest(directory: Path, spec: AttentionSpec) -> None:
    """Describe every file that `directory` holds; the server loads nothing else.

    The manifest has ``format``, ``attention`` (the sizes), ``graphs`` (file, inputs and outputs
    of each) and ``files`` (size in bytes and SHA-256 of each).
    """
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        for path in sorted(directory.iterdir())
    }
    graphs = {
        graph.name: {
            "file": graph.file,
            "inputs": list(graph.inputs),
            "outputs": list(graph.outputs),
        }
        for graph in GRAPHS
    }
    manifest = {"format": MANIFEST_FORMAT, "attention": spec.to_properties()}
    write_json(directory / MANIFEST_FILE, manifest | {"graphs": graphs, "files": files})


def hash_file(path: Path) -> str:
    """SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def render_config(name: str, spec: AttentionSpec) -> str:
    """Triton's ``config.pbtxt`` for ``model.onnx``; dims leave the batch axis out."""
    dims = {
        QUERY: (-1, spec.d_model),
        KEY: (-1, spec.kdim),
        VALUE: (-1, spec.vdim),
        BIAS: (-1, -1, -1),
        OUTPUT: (-1, spec.d_model),
        WEIGHTS: (spec.num_heads, -1, -1),
    }
    lines = [
        f'name: "{name}"',
        'platform: "onnxruntime_onnx"',
        f'default_model_filename: "{DECOMPOSED.file}"',
        f"max_batch_size: {MAX_BATCH_SIZE}",
    ]
    for kind, names in (("input", DECOMPOSED.inputs), ("output", DECOMPOSED.outputs)):
        for tensor in names:
            sizes = ", ".join(str(size) for size in dims[tensor])
            lines.append(
                f'{kind} [ {{ name: "{tensor}" data_type: TYPE_FP32 dims: [ {sizes} ] }} ]'
            )
    return "\n".join(lines) + "\n"
