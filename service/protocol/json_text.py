"""JSON text to Python values, with one policy for what JSON itself leaves open."""

import json
import re
from typing import Any, Final, NoReturn

import orjson

from service.errors import InvalidRequestError
from service.protocol.json_members import check_members

# Load tools send these bare tokens for random numbers; RFC 8259 has no spelling for them.
TOKEN: Final = re.compile(rb"NaN|Infinity")


def parse_object(text: bytes | memoryview, *, what: str, non_finite: bool) -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        text: UTF-8.
        what: the name of this text in error messages.
        non_finite: whether the tokens NaN, Infinity and -Infinity are numbers.

    Raises:
        InvalidRequestError: if `text` is not JSON, not an object, or has a member twice.
    """
    value = parse_json(text, what=what, non_finite=non_finite)
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{what} is {name_type(value)}, expected a JSON object")
    check_members(value, bytes(text), what)
    return value


def parse_json(text: bytes | memoryview, *, what: str, non_finite: bool) -> Any:  # noqa: ANN401
    """Parse any JSON value; see `parse_object`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raw = bytes(text)
        if not TOKEN.search(raw):
            refuse(what, error)
        value = parse_with_tokens(raw, what)
        if non_finite:
            return value
        raise InvalidRequestError(
            f"{what} is not JSON: it holds NaN or Infinity, which JSON cannot say; send npz or "
            "safetensors, and to hide a key a mask or a bias of -1e30"
        ) from None


def parse_with_tokens(text: bytes, what: str) -> Any:  # noqa: ANN401 - any JSON value
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
        refuse(what, error)


def refuse(what: str, error: Exception) -> NoReturn:
    """Raise what the parser said, without the text itself.

    Raises:
        InvalidRequestError: always.
    """
    reason = "it is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        reason = f"{error.msg} at line {error.lineno}, column {error.colno}"
    raise InvalidRequestError(f"{what} is not JSON: {reason}") from None


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
