"""JSON text to Python values, with one policy for what JSON itself leaves open."""

import json
import re
from typing import Any, Final, NoReturn

import orjson

from service.errors import InvalidRequestError
from service.protocol.json_depth import DEFAULT_DEPTH, check_depth, refuse_depth
from service.protocol.json_extent import check_extent
from service.protocol.json_members import check_members

# Load tools send these bare tokens for random numbers; RFC 8259 has no spelling for them.
TOKEN: Final = re.compile(rb"NaN|Infinity")
DEPTH_FAULT: Final = "depth limit exceeded"  # what orjson says beyond 1,024


def parse_object(
    text: bytes | bytearray | memoryview,
    *,
    what: str,
    non_finite: bool,
    max_depth: int = DEFAULT_DEPTH,
) -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        text: UTF-8.
        what: the name of this text in error messages.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.
        max_depth: of lists and objects in each other.

    Raises:
        InvalidRequestError: if `text` is not JSON, not an object, nested too deeply, or has a
            member twice, or holds too much to be parsed as a whole.
    """
    raw = text if isinstance(text, bytes) else bytes(text)
    check_extent(raw, what)
    value = parse_json(raw, what=what, non_finite=non_finite, max_depth=max_depth)
    check_depth(value, raw, what, max_depth)
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{what} is {name_type(value)}, expected a JSON object")
    check_members(value, raw, what)
    return value


def parse_json(
    text: bytes,
    *,
    what: str,
    non_finite: bool,
    max_depth: int = DEFAULT_DEPTH,
) -> Any:  # noqa: ANN401 - any JSON value
    """Parse any JSON value; see `parse_object`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if not TOKEN.search(text):
            refuse(what, error, max_depth)
        value = parse_with_tokens(text, what, max_depth)
        if non_finite:
            return value
        raise InvalidRequestError(
            f"{what} is not JSON: it holds NaN or Infinity, which JSON cannot say; send npz or "
            "safetensors, and to hide a key a mask or a bias of -1e30"
        ) from None


def parse_with_tokens(text: bytes, what: str, max_depth: int) -> Any:  # noqa: ANN401 - any JSON value
    """Parse JSON that holds the tokens NaN, Infinity or -Infinity; slower.

    Raises:
        InvalidRequestError: if it is not JSON apart from them.
    """
    try:
        # orjson's rules hold for all but the tokens: no half surrogates, no 1e400. Numbers as
        # long as the tokens keep the place of a fault.
        orjson.loads(TOKEN.sub(lambda token: b"0.".ljust(len(token[0]), b"0"), text))
        return json.loads(text.decode())
    except (json.JSONDecodeError, RecursionError) as error:
        refuse(what, error, max_depth)


def refuse(what: str, error: Exception, max_depth: int) -> NoReturn:
    """Raise what the parser said, without the text itself.

    Raises:
        InvalidRequestError: always.
    """
    if not isinstance(error, json.JSONDecodeError) or error.msg == DEPTH_FAULT:
        refuse_depth(what, max_depth)
    raise InvalidRequestError(
        f"{what} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    ) from None


def name_type(value: object) -> str:
    """JSON's name for the type of a parsed value, with an article."""
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)
