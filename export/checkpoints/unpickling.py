"""What the process does that reads a file of ``torch.save``: it may use little and run nothing.

torch's own ``weights_only`` unpickler builds tensors and plain containers alone. Round it are
bounds for memory and processor time, since a pickle of a kilobyte can ask for any amount of
either, and a check of the zip archive, whose entries torch.save never compresses.
"""

import json
import pickle
import re
import resource
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from export.checkpoints.damage import damaged
from export.checkpoints.tensors import find_obstacle, name_datatype
from export.errors import CheckpointError

if TYPE_CHECKING:
    import torch

PROCESSOR_S = 60
# Beside the file itself, once mapped and once, in the form of old torch, copied.
SPARE_BYTES = 512 << 20
STATM = Path("/proc/self/statm")


def serve_tensors(path: str, connection: Connection) -> None:
    """Answer with the list of tensors, then with the numbers of each that is asked for.

    Answers are JSON, and bare bytes for numbers. It ends when nobody listens any more.

    Args:
        path: the file.
        connection: to the process that wants it.
    """
    import torch

    torch.set_num_threads(1)
    with suppress(EOFError, OSError):
        bound_resources(Path(path).stat().st_size)
        try:
            tensors = read_pickle(Path(path))
        except CheckpointError as refusal:
            send(connection, {"refusal": str(refusal)})
            return
        send(connection, {"tensors": {name: describe(t) for name, t in tensors.items()}})
        while True:
            tensor = tensors[connection.recv_bytes().decode()].detach().contiguous().flatten()
            connection.send_bytes(tensor.view(torch.uint8).numpy().data)


def send(connection: Connection, answer: dict[str, Any]) -> None:
    """Send JSON."""
    connection.send_bytes(json.dumps(answer).encode())


def bound_resources(size_bytes: int) -> None:
    """Bound memory and processor time for a file of `size_bytes`."""
    seconds = PROCESSOR_S + size_bytes // 10**8
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    if STATM.exists():  # on Linux; elsewhere the bound of addresses is not honoured
        held_bytes = int(STATM.read_text().split()[0]) * resource.getpagesize()
        limit = held_bytes + 2 * size_bytes + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def describe(tensor: "torch.Tensor") -> dict[str, Any]:
    """What the other side needs to know before it asks for the numbers."""
    return {
        "shape": list(tensor.shape),
        "datatype": name_datatype(tensor),
        "obstacle": find_obstacle(tensor),
        "bytes": tensor.numel() * tensor.element_size(),
    }


def read_pickle(path: Path) -> dict[str, "torch.Tensor"]:
    """Load what ``torch.save`` wrote, tensors and plain containers alone.

    Dictionaries in dictionaries are flattened into dotted names.

    Raises:
        CheckpointError: if the file is damaged, holds objects, names two tensors alike, or asks
            for more memory than there is.
    """
    import torch

    zipped = zipfile.is_zipfile(path)
    if zipped:
        check_archive(path)
    try:
        # Mapped, tensors that nobody asks for are not read; only the zip format can be.
        loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
        return flatten(path, loaded) if isinstance(loaded, Mapping) else refuse_kind(path, loaded)
    except pickle.UnpicklingError as error:
        raise refused_object(path, error) from None
    except CheckpointError:
        raise
    except MemoryError:
        raise CheckpointError(
            f"checkpoint '{path}' needs more memory or time than a file of its size should; save "
            "layer.state_dict() again"
        ) from None
    except Exception:  # a damaged pickle may raise anything
        raise damaged(path) from None


def check_archive(path: Path) -> None:
    """Accept a zip archive as ``torch.save`` writes it: nothing compressed, nothing twice.

    Raises:
        CheckpointError: naming the entry that would grow, or if all take more than the file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise damaged(path) from None
    for entry in entries:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise CheckpointError(
                f"checkpoint '{path}': its entry {entry.filename!r} is compressed, from "
                f"{entry.compress_size} bytes that grow to {entry.file_size}, expected bytes as "
                "they are; save layer.state_dict() with torch.save"
            )
    total_bytes = sum(entry.file_size for entry in entries)
    if total_bytes > path.stat().st_size:
        raise damaged(path, f"its entries take {total_bytes} bytes, more than the file has")


def refuse_kind(path: Path, loaded: object) -> dict[str, "torch.Tensor"]:
    """Refuse what is no dictionary.

    Raises:
        CheckpointError: always.
    """
    raise CheckpointError(
        f"checkpoint '{path}' holds a {type(loaded).__name__}, expected a dictionary from "
        "names to tensors; save layer.state_dict()"
    )


def flatten(path: Path, loaded: Mapping[Any, Any]) -> dict[str, "torch.Tensor"]:
    """Dotted names and tensors; what is neither a tensor nor a dictionary is left out.

    Raises:
        CheckpointError: if two tensors come by one name, as "b" in "a" and "a.b" do.
    """
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in walk(loaded, ""):
        if name in tensors:
            raise CheckpointError(
                f"checkpoint '{path}' names two tensors {name!r}, expected one of each name; save "
                "layer.state_dict() alone"
            )
        tensors[name] = tensor
    return tensors


def walk(loaded: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, "torch.Tensor"]]:
    """Dotted names and tensors, in the order of the file."""
    import torch

    for name, value in loaded.items():
        if isinstance(value, torch.Tensor):
            yield f"{prefix}{name}", value
        elif isinstance(value, Mapping):
            yield from walk(value, f"{prefix}{name}.")


def refused_object(path: Path, error: pickle.UnpicklingError) -> CheckpointError:
    """What to say when torch refused to unpickle: an object, or else a damaged file."""
    name = re.search(r"\bGLOBAL (\w[\w.]*\.\w+)", str(error))
    if name is None:
        return damaged(path)
    return CheckpointError(
        f"checkpoint '{path}' holds the object '{name[1]}', expected tensors alone, because "
        "loading objects would run code from the file; save layer.state_dict(), not the layer"
    )
