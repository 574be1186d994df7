"""Members of JSON objects that come twice, of which every fast parser keeps the last."""

import json
from typing import Any, Final

from service.errors import InvalidRequestError

ESCAPED_COLON: Final = b"\\u003"  # of which the last digit, a, has two spellings


def check_members(value: object, text: bytes, what: str) -> None:
    """Refuse text in which an object has a member twice.

    The parser does not tell, but colons do: each member has one, and all others stand in strings.
    Counting them is fast; only where they do not add up is the text parsed again, slowly.

    Args:
        value: what `text` was parsed to.
        text: valid JSON.
        what: the name of the text in the message.

    Raises:
        InvalidRequestError: naming the member.
    """
    if ESCAPED_COLON not in text and text.count(b":") == count_colons(value):
        return
    try:
        json.loads(text.decode(), object_pairs_hook=unite_members)
    except ValueError as error:
        raise InvalidRequestError(f"{what} is ambiguous: {error}, expected once") from None
    except RecursionError:
        raise InvalidRequestError(f"{what} is not JSON: it is nested too deeply") from None


def count_colons(value: object) -> int:
    """Colons of the shortest text of a value, lists that do not begin with an object left out.

    Those hold the numbers of tensors. An object among them makes the count too small, which
    costs time and no more.
    """
    if isinstance(value, str):
        return value.count(":")
    if isinstance(value, dict):
        return sum(1 + name.count(":") + count_colons(part) for name, part in value.items())
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sum(count_colons(part) for part in value)
    return 0


def unite_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different.

    Raises:
        ValueError: naming the first that comes twice.
    """
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"{name!a} comes twice")
        members[name] = value
    return members
