"""Files of ``torch.save``, read by a process of their own that has bounds.

`unpickling` says what that process does. It stays until the tensors are no longer wanted, so
that only those that are asked for come into the memory of this one.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from export.checkpoints.damage import damaged
from export.checkpoints.tensors import StoredTensor, Tensors
from export.checkpoints.unpickling import serve_tensors
from export.errors import CheckpointError

if TYPE_CHECKING:
    import torch

MAX_LISTING_BYTES = 64 << 20
# For the largest file: a disk gives a gigabyte in ten seconds.
TIMEOUT_S = 60
TIMEOUT_S_PER_BYTE = 1e-8


@contextmanager
def open_pickle(path: Path) -> Iterator[Tensors]:
    """Have a file of ``torch.save`` opened; its reader lives as long as the block.

    Raises:
        CheckpointError: if the file is damaged, holds objects, which might run code, or needs
            more memory or time than a file of its size should.
    """
    with start_reader(path) as reader:
        listing = reader.receive()
        if "refusal" in listing:
            raise CheckpointError(listing["refusal"])
        yield Tensors(
            path.name,
            {
                name: StoredTensor(
                    path.name,
                    tuple(entry["shape"]),
                    entry["datatype"],
                    make_loader(reader, name, entry),
                    entry["obstacle"],
                )
                for name, entry in listing["tensors"].items()
            },
        )


class Reader:
    """The process that reads one file, as seen from here: nothing that it says is unpickled."""

    def __init__(self, path: Path, connection: Connection) -> None:
        self.path = path
        self._connection = connection
        self._timeout_s = TIMEOUT_S + path.stat().st_size * TIMEOUT_S_PER_BYTE

    def ask(self, name: str) -> None:
        """Ask for the numbers of a tensor.

        Raises:
            CheckpointError: if the process is gone.
        """
        try:
            self._connection.send_bytes(name.encode())
        except OSError:
            raise self._died() from None

    def receive(self) -> dict[str, Any]:
        """The next answer in JSON.

        Raises:
            CheckpointError: if none comes in time, or the process died.
        """
        self._wait()
        try:
            answer: dict[str, Any] = json.loads(self._connection.recv_bytes(MAX_LISTING_BYTES))
        except (EOFError, OSError):
            raise self._died() from None
        return answer

    def receive_into(self, buffer: bytearray) -> None:
        """The next answer, numbers that fill the buffer.

        Raises:
            CheckpointError: as `receive`.
        """
        self._wait()
        try:
            self._connection.recv_bytes_into(buffer)
        except (EOFError, OSError):
            raise self._died() from None

    def _wait(self) -> None:
        if not self._connection.poll(self._timeout_s):
            raise CheckpointError(
                f"checkpoint '{self.path}' takes longer than {self._timeout_s:.0f} s to read, "
                "expected tensors alone; save layer.state_dict() again"
            )

    def _died(self) -> CheckpointError:
        return CheckpointError(
            f"checkpoint '{self.path}' needs more memory or time than a file of its size should; "
            "save layer.state_dict() again"
        )


@contextmanager
def start_reader(path: Path) -> Iterator[Reader]:
    """A process that reads `path`, ended with the block.

    It is forked from a server that has torch loaded, which costs seconds once and no more.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["export.checkpoints.unpickling", "torch"])
    ours, theirs = context.Pipe()
    process = context.Process(target=serve_tensors, args=(str(path), theirs), daemon=True)
    with hidden_main():
        process.start()
    theirs.close()
    try:
        yield Reader(path, ours)
    finally:
        ours.close()
        process.kill()
        process.join()
        with suppress(ValueError):
            process.close()


@contextmanager
def hidden_main() -> Iterator[None]:
    """Hide the main script, which a new process would run once more.

    It does so for objects of classes that the script defines. This one is given none, and not
    every script may be run twice.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def make_loader(reader: Reader, name: str, entry: dict[str, Any]) -> Callable[[], "torch.Tensor"]:
    """What fetches the numbers of one tensor."""

    def load() -> "torch.Tensor":
        import torch

        size_bytes = reader.path.stat().st_size
        if entry["bytes"] > size_bytes:
            raise damaged(
                reader.path,
                f"tensor {name!r} takes {entry['bytes']} bytes, the file has {size_bytes}",
            )
        numbers = bytearray(entry["bytes"])
        reader.ask(name)
        reader.receive_into(numbers)
        return torch.frombuffer(numbers, dtype=getattr(torch, entry["datatype"])).reshape(
            entry["shape"]
        )

    return load
