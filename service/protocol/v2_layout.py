"""Requests whose JSON came before, byte for byte, and is not read again.

A client sends the same JSON with every request of the same shapes, and only the tensors behind it
differ. Reading it takes 22 microseconds in a tight loop, and more in a server
with much else to do.
"""

import threading
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Self

import numpy as np
from numpy.typing import DTypeLike

from service.inference import Inference, Schedule
from service.protocol.v2_outputs import WantedOutput

MAX_LAYOUTS: Final = 128
MAX_BYTES: Final = 4096  # of one JSON text that is kept


@dataclass(frozen=True, slots=True)
class V2Request:
    """A decoded request.

    Attributes:
        id: to be echoed; empty where the client gave none.
        inference: what is asked of the model.
        outputs: in the order of the answer.
        schedule: how it wants to wait.
        is_text: whether some output is wanted as JSON.
    """

    id: str
    inference: Inference
    outputs: tuple[WantedOutput, ...]
    schedule: Schedule
    is_text: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """Where a tensor lies in the bytes behind the JSON."""

    name: str
    shape: tuple[int, ...]
    dtype: DTypeLike
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """What the JSON of a request said, without its tensors.

    Attributes:
        request: without tensors.
        parts: of the bytes that follow the JSON, in order.
        binary_bytes: how many there must be.
    """

    request: V2Request
    parts: tuple[Part, ...]
    binary_bytes: int

    @classmethod
    def take(cls, request: V2Request, binary_bytes: int) -> Self | None:
        """The layout of a request that was read; nothing where its JSON holds data of a tensor.

        Args:
            request: its tensors in the order of its JSON.
            binary_bytes: how many followed the JSON.
        """
        arrays = request.inference.tensors
        sizes = [array.nbytes for array in arrays.values()]
        # Each tensor that is not in the bytes behind the JSON makes the sum too large.
        if request.id or sum(sizes) != binary_bytes:
            return None
        offsets = accumulate(sizes, initial=0)
        parts = tuple(
            Part(name, array.shape, array.dtype, offset)
            for (name, array), offset in zip(arrays.items(), offsets, strict=False)
        )
        bare = replace(request, inference=replace(request.inference, tensors={}, likeness=object()))
        return cls(bare, parts, binary_bytes)

    def fill(self, binary: memoryview) -> V2Request:
        """The request with other tensors: read-only views into `binary`."""
        tensors = {
            part.name: np.ndarray(part.shape, part.dtype, binary, part.offset)
            for part in self.parts
        }
        bare = self.request
        # Not `replace`, which takes 2 us each.
        inference = Inference(
            tensors, bare.inference.causal, bare.inference.weights, bare.inference.likeness
        )
        return V2Request(bare.id, inference, bare.outputs, bare.schedule, bare.is_text)


class Layouts:
    """The layouts of the JSON texts that came last; safe to use from any thread."""

    def __init__(self) -> None:
        self._layouts: dict[bytes, Layout] = {}
        self._lock = threading.Lock()

    def find(self, text: bytes, binary_bytes: int) -> Layout | None:
        """The layout of a text that came before, if as many bytes follow it."""
        layout = self._layouts.get(text)
        return layout if layout is not None and layout.binary_bytes == binary_bytes else None

    def keep(self, text: bytes, request: V2Request, binary_bytes: int) -> None:
        """Keep the layout of a request that was read, if it has one."""
        if len(text) > MAX_BYTES or (layout := Layout.take(request, binary_bytes)) is None:
            return
        with self._lock:
            # Two threads may have read the same text at once: it is not another one.
            if text not in self._layouts and len(self._layouts) >= MAX_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[text] = layout
