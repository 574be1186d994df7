"""Requests whose JSON came before, byte for byte but for its long lists, and is not read again.

A client sends the same JSON with every request of the same shapes, and only the tensors behind it,
or the numbers in it, differ. Reading it takes 22 microseconds in a tight loop, and more in a server
with much else to do.
"""

import threading
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from service.inference import Inference, Schedule
from service.protocol.json_outline import LongList
from service.protocol.v2_inputs import read_long
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
class BinaryPart:
    """A tensor in the bytes behind the JSON."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    def read(self, binary: memoryview, _: list[LongList]) -> NDArray[Any]:
        """The tensor, a view."""
        return np.ndarray(self.shape, self.dtype, binary, self.offset)


@dataclass(frozen=True, slots=True)
class ListPart:
    """A tensor in a long list of the JSON."""

    name: str
    shape: tuple[int, ...]
    datatype: str
    index: int

    def read(self, _: memoryview, lists: list[LongList]) -> NDArray[Any]:
        """The tensor.

        Raises:
            OddListError: if the list may be no list of its numbers.
        """
        return read_long(lists[self.index], self.name, self.datatype, self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """What the JSON of a request said, without its tensors.

    Attributes:
        request: without tensors.
        parts: its tensors.
        binary_bytes: that must follow the JSON.
        lists: how many long lists the JSON must have.
    """

    request: V2Request
    parts: tuple[BinaryPart | ListPart, ...]
    binary_bytes: int
    lists: int

    @classmethod
    def take(cls, request: V2Request, binary_bytes: int, lists: list[LongList]) -> Self | None:
        """The layout of a request that was read; nothing where its JSON holds a short tensor.

        Args:
            request: its tensors in the order of its JSON.
            binary_bytes: how many followed the JSON.
            lists: of its JSON, each of them read.
        """
        indices = {each.name: index for index, each in enumerate(lists)}
        parts: list[BinaryPart | ListPart] = []
        offset = listed = 0
        for name, array in request.inference.tensors.items():
            if (index := indices.get(name)) is None:
                parts.append(BinaryPart(name, array.shape, array.dtype, offset))
                offset += array.nbytes
            else:
                parts.append(ListPart(name, array.shape, lists[index].datatype, index))
                listed += 1
        # Each tensor that is neither in the bytes nor in a list makes the sum too large.
        if request.id or offset != binary_bytes or listed != len(lists):
            return None
        bare = replace(request, inference=replace(request.inference, tensors={}, likeness=object()))
        return cls(bare, tuple(parts), binary_bytes, len(lists))

    def fill(self, binary: memoryview, lists: list[LongList]) -> V2Request:
        """The request with other tensors: views into `binary`, and the numbers of `lists`.

        Raises:
            OddListError: if one of those may be no list of its numbers.
        """
        tensors = {part.name: part.read(binary, lists) for part in self.parts}
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

    def find(self, text: bytes, binary_bytes: int, lists: int = 0) -> Layout | None:
        """The layout of a text that came before.

        Args:
            text: of JSON, or its outline.
            binary_bytes: that follow it; they must be as many as then.
            lists: that the outline leaves out; the same.
        """
        layout = self._layouts.get(text)
        if layout is None or (layout.binary_bytes, layout.lists) != (binary_bytes, lists):
            return None
        return layout

    def keep(
        self, text: bytes, request: V2Request, binary_bytes: int, lists: list[LongList]
    ) -> None:
        """Keep the layout of a request that was read, if it has one.

        Args:
            text: of its JSON, or the outline.
            request: that was read.
            binary_bytes: that followed the JSON.
            lists: that the outline leaves out.
        """
        if len(text) > MAX_BYTES or (layout := Layout.take(request, binary_bytes, lists)) is None:
            return
        with self._lock:
            # Two threads may have read the same text at once: it is not another one.
            if text not in self._layouts and len(self._layouts) >= MAX_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[text] = layout


@dataclass(frozen=True, slots=True)
class LayoutMemory:
    """What `read_object` may know of requests that came before.

    Attributes:
        layouts: of those.
        binary: what follows the JSON of this one.
    """

    layouts: Layouts
    binary: memoryview

    def recall(self, outline: bytes, lists: list[LongList]) -> V2Request | None:
        """The request, if its outline came before.

        Raises:
            OddListError: if a list may be no list of its numbers.
        """
        layout = self.layouts.find(outline, len(self.binary), len(lists))
        return None if layout is None else layout.fill(self.binary, lists)

    def keep(self, outline: bytes, lists: list[LongList], built: V2Request) -> None:
        """Keep the layout of a request that was read, if it has one."""
        self.layouts.keep(outline, built, len(self.binary), lists)
