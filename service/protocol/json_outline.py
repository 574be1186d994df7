"""The outline of a JSON text: all of it but the long lists, which are read apart and faster."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from numpy.typing import NDArray
from simdjson import Parser

from service.errors import ServiceError
from service.protocol.json_depth import DEFAULT_DEPTH
from service.protocol.json_numbers import MAX_RANK, OddListError, read_numbers
from service.protocol.json_text import parse_object

Built = TypeVar("Built")

# Shorter ones cost less without the detour.
LONG_TEXT_BYTES: Final = 8192
LONG_LIST_BYTES: Final = 1024
# Where there are more, or longer ones, the text is no tensor of the contract.
MAX_STRINGS: Final = 1000
MAX_STRING_BYTES: Final = 1000
STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
# Begins what stands for a list. JSON spells this character in one way, so that a text without
# it in that spelling cannot mean a string that begins so.
NUL: Final = rb"\u0000"


@dataclass(slots=True)
class LongList:
    """A list of a JSON text that was not looked into yet.

    Attributes:
        text: of JSON.
        start: of the list in it.
        stop: its end.
        parser: for all lists of the text, one after the other: a new one has its memory to fill
            with pages first, half of what 100 kB of numbers take.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.
        name: of the tensor that it was read for; nothing where nobody wanted it.
        datatype: it was read as.
    """

    text: bytes | bytearray
    start: int
    stop: int
    parser: Parser
    non_finite: bool = False
    name: str | None = None
    datatype: str = ""

    def read(self, name: str, datatype: str) -> NDArray[Any]:
        """The numbers, in the shape of the nesting; see `read_numbers`.

        Args:
            name: of the tensor.
            datatype: the protocol's name.

        Raises:
            OddListError: if it is no list of numbers that `datatype` holds.
        """
        self.name, self.datatype = name, datatype
        return read_numbers(
            self.text,
            self.start,
            self.stop,
            datatype,
            self.parser,
            non_finite=self.non_finite,
        )


class Memory(Protocol[Built]):
    """What was made of texts that came before, by their outlines."""

    def recall(self, outline: bytes, lists: list[LongList]) -> Built | None:
        """The same of other lists; nothing where no such text came.

        Raises:
            OddListError: if one is no list of the numbers that there were.
        """

    def keep(self, outline: bytes, lists: list[LongList], built: Built) -> None:
        """Remember what was made of a text whose lists were all read."""


def read_object(
    text: bytes | bytearray,
    build: Callable[[dict[str, Any]], Built],
    *,
    what: str,
    non_finite: bool,
    max_depth: int = DEFAULT_DEPTH,
    memory: Memory[Built] | None = None,
) -> Built:
    """Make something of a JSON object, in which long lists may be `LongList`.

    They are tried first. Where anything is odd, the text is parsed again as a whole and exactly:
    what that says counts, so that no refusal depends on how long a list is.

    Args:
        text: UTF-8.
        build: of the object; called again where it raises at a `LongList`.
        what: the name of the text in messages.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.
        max_depth: of lists and objects in each other.
        memory: of texts with long lists.

    Raises:
        ServiceError: as `parse_object` and `build` do.
    """
    lists = find_lists(text, non_finite=non_finite) if len(text) >= LONG_TEXT_BYTES else []
    if lists:
        with suppress(ServiceError, OddListError):
            outline, depth = write_outline(text, lists), max_depth - MAX_RANK
            if memory is not None and (known := memory.recall(outline, lists)) is not None:
                return known
            root = parse_object(outline, what=what, non_finite=non_finite, max_depth=depth)
            built = build(put_back(root, lists))
            if all(each.name is not None for each in lists):
                if memory is not None:
                    memory.keep(outline, lists, built)
                return built
    return build(parse_object(text, what=what, non_finite=non_finite, max_depth=max_depth))


def find_lists(text: bytes | bytearray, *, non_finite: bool = False) -> list[LongList]:
    """The long lists that may hold numbers: they stand between two strings.

    Args:
        text: of JSON.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.

    Returns:
        None of them where the text is not as requests are.
    """
    lists: list[LongList] = []
    start, parser = 0, Parser()
    for _ in range(MAX_STRINGS):
        quote = text.find(b'"', start)
        stop = len(text) if quote < 0 else quote
        if stop - start > LONG_LIST_BYTES and (place := find_list(text, start, stop)):
            lists.append(LongList(text, *place, parser, non_finite))
        if quote < 0:
            return lists
        string = STRING.match(text, quote, quote + MAX_STRING_BYTES)
        if string is None:
            break
        start = string.end()
    return []


def find_list(text: bytes | bytearray, start: int, stop: int) -> tuple[int, int] | None:
    """Start and end of the long list in a part of a text that has no strings, if there is one.

    Such a part has one value, and may have the end of the object that it is in. That is looked for
    where it is in most texts: one before it ends up in the list, which is odd then.
    """
    opening = text.find(b"[", start, stop)
    if opening < 0:
        return None
    brace = text.find(b"}", max(opening, stop - LONG_LIST_BYTES), stop)
    closing = text.rfind(b"]", opening, brace if brace >= 0 else stop)
    return (opening, closing + 1) if closing - opening > LONG_LIST_BYTES else None


def write_outline(text: bytes | bytearray, lists: list[LongList]) -> bytes:
    """The text with a string in the place of each list.

    Raises:
        OddListError: if it may have another string like those.
    """
    view, start = memoryview(text), 0
    parts: list[bytes | memoryview] = []
    for index, each in enumerate(lists):
        parts += [view[start : each.start], b'"%b%d"' % (NUL, index)]
        start = each.stop
    outline = b"".join([*parts, view[start:]])
    if outline.count(NUL) > len(lists):
        raise OddListError
    return outline


def put_back(value: Any, lists: list[LongList]) -> Any:  # noqa: ANN401 - any JSON value
    """The value of an outline, with the lists in the places of their strings."""
    if isinstance(value, str):
        return lists[int(value[1:])] if value.startswith("\0") else value
    if isinstance(value, dict):
        return {name: put_back(part, lists) for name, part in value.items()}
    if isinstance(value, list):
        return [put_back(part, lists) for part in value]
    return value
