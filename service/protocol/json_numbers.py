"""Long JSON lists of numbers to arrays: simdjson writes them straight into a buffer, in pieces.

What simdjson does silently is found out here: it flattens lists of unlike lengths, and it says
nothing of numbers that float32 cannot hold. Whatever is odd is left to `json_tensor`, and so are
the pieces that hold NaN or Infinity.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from simdjson import Array, Parser

from service.datatypes import DTYPES, NAMES
from service.errors import InvalidRequestError
from service.protocol.json_tensor import convert_scalars, flatten_list
from service.protocol.json_text import parse_json
from service.protocol.turns import give_way

Piece = Array | list[Any]  # of simdjson, or of Python
Parse = Callable[[bytes], Piece]

# A piece takes 0.4 ms, during which nobody else gets the interpreter lock.
PIECE_BYTES: Final = 512 * 1024
MAX_RANK: Final = 4  # of a tensor of the contract
OPENINGS: Final = re.compile(rb"\[(?:[ \t\r\n]*\[)*")
# The end of a row and the start of the next, with the lists that end and start with them.
SEPARATOR: Final = re.compile(rb"((?:\][ \t\r\n]*+){1,4}),((?:[ \t\r\n]*+\[){1,4})")
OPENING: Final = ord("[")


class OddListError(Exception):
    """A list is no tensor, or one that is left to the exact parser."""


def read_numbers(
    text: bytes | bytearray,
    start: int,
    stop: int,
    datatype: str,
    parser: Parser,
    *,
    non_finite: bool = False,
) -> NDArray[Any]:
    """Parse a list of numbers, or of lists of one length, and so on.

    Args:
        text: of JSON.
        start: of the list in it.
        stop: its end.
        datatype: the protocol's name, one of `DTYPES`.
        parser: that has nothing else to parse.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.

    Returns:
        An array whose shape is the nesting.

    Raises:
        OddListError: if it is anything else than such a list of numbers that `datatype` holds.
    """
    openings = OPENINGS.match(text, start, stop)
    rank = openings[0].count(b"[") if openings else 0
    if openings is None or rank > MAX_RANK or datatype == "FP16":
        raise OddListError
    try:
        parse = partial(parse_piece, parser, DTYPES[datatype], non_finite)
        if rank == 1:
            return read_row(text, start, stop, DTYPES[datatype], parse)
        return read_rows(text, openings.end() - 1, stop, rank, DTYPES[datatype], parse)
    except (ValueError, TypeError, RuntimeError, InvalidRequestError) as error:
        raise OddListError from error  # of simdjson, and of `json_tensor`


def read_row(
    text: bytes | bytearray, start: int, stop: int, dtype: np.dtype[Any], parse: Parse
) -> NDArray[Any]:
    """Parse a flat list.

    Args:
        text: of JSON.
        start: of the list in it.
        stop: its end.
        dtype: of the array.
        parse: reads a piece.

    Raises:
        OddListError: if it is not flat, or a part of it is empty.
        ValueError: if it is not JSON.
        TypeError: if it holds anything but numbers.
    """
    if text.find(b"[", start + 1, stop) >= 0:
        raise OddListError
    parts = []
    for piece in cut_row(text, start, stop):
        parts.append(flatten(parse(piece), dtype))
        give_way(len(piece))
    if not all(part.size for part in parts):  # a comma without a number beside it, at a cut
        raise OddListError
    return join(parts)


def cut_row(text: bytes | bytearray, start: int, stop: int) -> Iterator[bytes]:
    """Cut a flat list into shorter ones."""
    view, start = memoryview(text), start + 1
    while (end := text.find(b",", start + PIECE_BYTES, stop)) >= 0:
        yield b"".join((b"[", view[start:end], b"]"))
        start = end + 1
    yield b"".join((b"[", view[start:stop]))


def read_rows(
    text: bytes | bytearray, start: int, stop: int, rank: int, dtype: np.dtype[Any], parse: Parse
) -> NDArray[Any]:
    """Parse a nested list.

    Args:
        text: of JSON.
        start: of the first row, a list of numbers.
        stop: the end of the whole.
        rank: how deep the numbers are, 2 or more.
        dtype: of the array.
        parse: reads a piece.

    Raises:
        OddListError: if lists beside each other differ in length or depth, or are empty.
        ValueError: if it is not JSON.
        TypeError: if it holds anything but numbers and lists.
    """
    parts = []
    heights, lengths = bytearray(), set[int]()
    for piece, height in cut_rows(text, start, stop, rank):
        array = parse(piece)
        found = read_heights(array, rank, lengths)
        check_depth(piece, found)
        heights += found[:-1] + bytes([height])
        parts.append(flatten(array, dtype))
        del array  # simdjson parses nothing else before
        give_way(len(piece))
    if len(lengths) > 1 or 0 in lengths:
        raise OddListError
    return join(parts).reshape(*read_shape(bytes(heights), rank), *lengths)


def cut_rows(
    text: bytes | bytearray, start: int, stop: int, rank: int
) -> Iterator[tuple[bytes, int]]:
    """Cut a nested list into shorter ones of the same rank, each of whole rows.

    Yields:
        A list, and how many lists end in the text with its last row.
    """
    view, opening, closing = memoryview(text), b"[" * (rank - 1), b"]" * (rank - 1)
    end = text.find(b"]", start + PIECE_BYTES, stop)
    while end >= 0:
        height, following = read_separator(text, end, stop)
        if height:
            yield b"".join((opening, view[start : end + 1], closing)), height
            start = following
        end = text.find(b"]", max(end + 1, start + PIECE_BYTES), stop)
    yield b"".join((opening, view[start:stop])), rank


def read_separator(text: bytes | bytearray, end: int, stop: int) -> tuple[int, int]:
    """What stands between a row and the next.

    Args:
        text: of JSON.
        end: a closing bracket, which may be that of a row.
        stop: the end of the whole.

    Returns:
        How many lists end and start there, and where the next row starts; 0 and 0 where it is no
        row that ends, or the last one.
    """
    separator = SEPARATOR.match(text, end, stop)
    if separator is None or separator[1].count(b"]") != separator[2].count(b"["):
        return 0, 0
    return separator[1].count(b"]"), separator.end() - 1


def read_heights(nested: Piece, rank: int, lengths: set[int]) -> bytes:
    """How many lists end with each row: 1 within a list of rows, 2 at its end, and so on.

    Args:
        nested: the list.
        rank: how deep its numbers are.
        lengths: gets the length of every row.

    Raises:
        OddListError: if a list of lists is empty.
        TypeError: if there are numbers beside lists.
    """
    if not nested:
        raise OddListError
    if rank == 2:
        lengths.update(map(len, nested))  # of numbers: TypeError
        return b"\x01" * (len(nested) - 1) + b"\x02"
    heights = b"".join(read_heights(inner, rank - 1, lengths) for inner in nested)  # type: ignore[arg-type]
    return heights[:-1] + bytes([rank])


def check_depth(piece: bytes, heights: bytes) -> None:
    """See that no row holds lists: each list of the text ends with a row.

    Raises:
        OddListError: if one does.
    """
    if np.count_nonzero(np.frombuffer(piece, np.uint8) == OPENING) != sum(heights):
        raise OddListError


def read_shape(heights: bytes, rank: int) -> tuple[int, ...]:
    """The lengths of all lists but the rows, the outermost first.

    Raises:
        OddListError: if lists beside each other differ in length.
    """
    numbers = np.frombuffer(heights, np.uint8)
    counts = [int(np.count_nonzero(numbers >= height)) for height in range(1, rank + 1)]
    sizes = [lists // outer for lists, outer in pairwise(counts)]
    regular = b"\x01"
    for height, size in enumerate(sizes, 2):
        regular = (regular * size)[:-1] + bytes([height])
    if regular != heights:
        raise OddListError
    return tuple(reversed(sizes))


def parse_piece(parser: Parser, dtype: np.dtype[Any], non_finite: bool, piece: bytes) -> Piece:
    """Parse a list; by Python's own parser where it holds what simdjson has no word for.

    Raises:
        OddListError: if it holds signs beside true and false.
        ValueError: if it is not JSON.
        InvalidRequestError: if it is none though NaN and Infinity count as numbers.
    """
    if dtype.kind == "b":
        if b"-" in piece:  # or -false would be 0
            raise OddListError
        piece = piece.replace(b"true", b"1").replace(b"false", b"0")
    try:
        return parser.parse(piece)  # type: ignore[return-value] # it starts with a bracket
    except ValueError:
        # One byte is found two hundred times faster than a pattern, which took 2.5 ms for 500 kB.
        if non_finite and dtype.kind == "f" and (b"N" in piece or b"I" in piece):
            value: list[Any] = parse_json(piece, what="a list", non_finite=True)
            return value
        raise


def flatten(array: Piece, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The numbers of a list, however nested.

    Raises:
        OddListError: if `dtype` does not hold one of them.
        InvalidRequestError: the same, of a list that Python's parser read.
        TypeError: if there is anything but numbers, or a fraction where `dtype` has none.
        ValueError: if a whole number has more than 64 bits.
    """
    if isinstance(array, list):
        return convert_scalars("", flatten_list("", array)[1], NAMES[dtype])
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            floats = np.frombuffer(array.as_buffer(of_type="d"), np.float64).astype(dtype)
        if np.isinf(floats).any():
            raise OddListError
        return floats
    numbers = np.frombuffer(array.as_buffer(of_type="i"), np.int64)
    low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if numbers.size and not low <= numbers.min() <= numbers.max() <= high:
        raise OddListError
    return numbers.astype(dtype)


def join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """One array; the part itself where there is one."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
