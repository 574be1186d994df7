"""The model directory: files, manifest and Triton's config, put in place whole or not at all."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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


def write_version(
    models: Path, name: str, spec: AttentionSpec, fill: Callable[[Path], None]
) -> Path:
    """Let `fill` write the files of a model, then make them its next version, all at once.

    Version 1 of a new model, else one more than the highest. Nothing is left behind when
    `fill` raises.

    Args:
        models: the repository; made if absent.
        name: of the model.
        spec: its sizes.
        fill: given an empty directory.

    Returns:
        The directory of the version.

    Raises:
        RepositoryError: if the name is unfit, `models` is not a directory, or the model exists
            with other sizes.
    """
    check_name(name)
    if models.exists() and not models.is_dir():
        raise RepositoryError(
            f"'{models}' is not a directory, expected the directory of models; choose another "
            "--models or remove it"
        )
    check_same_sizes(models / name, spec)
    with made_directory(models):
        # Beside its place: the rename stays within one file system, and servers skip dot names.
        aside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=models))
        try:
            version = aside / "version"
            version.mkdir()
            fill(version)
            flush(version)
            return place_version(version, models / name, spec)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


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
