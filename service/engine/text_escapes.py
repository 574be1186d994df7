"""Escapes in the strings of protobuf's text format.

https://protobuf.dev/reference/protobuf/textformat-spec/#string
"""

import re
from typing import Final

PLAIN: Final = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "?": b"?", "\\": b"\\", "'": b"'", '"': b'"',
}  # fmt: skip
ESCAPE: Final = re.compile(
    r"""\\(?: (?P<octal>[0-7]{1,3}) | x(?P<byte>[0-9A-Fa-f]{1,2})
            | u(?P<short>[0-9A-Fa-f]{4}) | U(?P<long>[0-9A-Fa-f]{8}) | (?P<plain>.?) )""",
    re.VERBOSE | re.DOTALL,
)


def unescape(text: str) -> bytes:
    """The bytes that a string stands for; what is not escaped is UTF-8.

    Args:
        text: without its quotes.

    Raises:
        ValueError: if an escape is unknown or stands for no byte or character.
    """
    parts, position = [], 0
    for match in ESCAPE.finditer(text):
        parts += [text[position : match.start()].encode(), decode_escape(match)]
        position = match.end()
    return b"".join([*parts, text[position:].encode()])


def decode_escape(match: re.Match[str]) -> bytes:
    """The bytes of one escape.

    Raises:
        ValueError: if it is unknown or stands for no byte or character.
    """
    kind, digits = str(match.lastgroup), str(match[match.lastgroup or 0])
    try:
        if kind == "plain":
            return PLAIN[digits]
        if kind in ("octal", "byte"):
            return bytes([int(digits, 8 if kind == "octal" else 16)])
        return chr(int(digits, 16)).encode()  # half a surrogate has no UTF-8
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"{match[0]!a} is no escape of a string") from None
