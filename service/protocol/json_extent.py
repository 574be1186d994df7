"""How much a JSON text may hold that is parsed as a whole, into Python's own values."""

from typing import Final

from service.errors import InvalidRequestError

# Parsers keep the interpreter lock for the whole text, and a value of Python's takes 50 to 250 ns:
# with more of them, health checks had no answer for seconds (16 MB of `{"a":1}`: 2.1 s). Lists of
# numbers that are as they should be never come here, however long; see `json_outline`.
MAX_CONTAINERS: Final = 2**19
MAX_VALUES: Final = 2**22


def check_extent(text: bytes, what: str) -> None:
    """Refuse a text with more lists and objects, or more values, than are parsed at once.

    Args:
        text: of JSON, perhaps.
        what: the name of the text in the message.

    Raises:
        InvalidRequestError: naming what is too much.
    """
    containers, values = text.count(b"[") + text.count(b"{"), text.count(b",") + 1
    if containers <= MAX_CONTAINERS and values <= MAX_VALUES:
        return
    too_much, most = f"{values} values", MAX_VALUES
    if containers > MAX_CONTAINERS:
        too_much, most = f"{containers} lists and objects", MAX_CONTAINERS
    raise InvalidRequestError(
        f"{what} is not as requests are, and too long to say in what: it has {too_much}, expected "
        f"at most {most} where not all of them are tensors; send less at once, or binary data"
    )
