"""How a log record is written: as one line of JSON for machines, or of text for a terminal.

Whatever a client chose may be part of a line, so every character that is not printable is escaped,
in both: ends of lines would forge records, and a terminal obeys escape sequences.
"""

import json
import logging
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

import orjson

MAX_MESSAGE_CHARACTERS: Final = 8192
MAX_EXCEPTION_CHARACTERS: Final = 32768
REQUEST: Final = "request"  # attribute of a record: the facts of one request, in the order to write


class SecondText:
    """The text of a second, made once for all lines of it: else a fifth of what a line costs."""

    def __init__(self, form: str, zone: tzinfo | None) -> None:
        """Keep the form.

        Args:
            form: as `strftime` takes it.
            zone: of the text; that of the machine unless given.
        """
        self._form, self._zone = form, zone
        self._second, self._text = -1, ""

    def write(self, time_s: float) -> str:
        """The text of the second of a time."""
        second = int(time_s)
        if second != self._second:
            text = datetime.fromtimestamp(second, self._zone).strftime(self._form)
            self._second, self._text = second, text
        return self._text


class JsonLines(logging.Formatter):
    """One JSON object for each record."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = SecondText("%Y-%m-%dT%H:%M:%S", UTC)

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        fields: dict[str, Any] = {
            # RFC 3339, in UTC, to the millisecond.
            "time": f"{self._seconds.write(record.created)}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        request = getattr(record, REQUEST, None)
        if request is not None:
            return write_json(fields | request)
        fields["message"] = shorten(record.getMessage(), MAX_MESSAGE_CHARACTERS)
        if exception := read_exception(self, record):
            fields["exception"] = exception
        return write_json(fields)


class TextLines(logging.Formatter):
    """One line for each record; the traceback of a fault follows, each line of it marked."""

    def __init__(self) -> None:
        super().__init__()
        self._seconds = SecondText("%H:%M:%S", None)

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        time = self._seconds.write(record.created)
        request = getattr(record, REQUEST, None)
        message = record.getMessage() if request is None else write_request(request)
        shown = escape_text(shorten(message, MAX_MESSAGE_CHARACTERS))
        traceback = read_exception(self, record).splitlines()
        lines = [
            f"{time} {record.levelname:<7} {shown}",
            *(f"  | {escape_text(t)}" for t in traceback),
        ]
        return "\n".join(lines)


def read_exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback of a record; empty if it has none."""
    if not record.exc_info:
        return ""
    return shorten(formatter.formatException(record.exc_info), MAX_EXCEPTION_CHARACTERS)


def shorten(text: str, most: int) -> str:
    """A text of at most about `most` characters: its beginning and its end."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def write_json(fields: dict[str, Any]) -> str:
    """One line of JSON, without its end."""
    # Neither library escapes all that is not printable in the sense of Unicode: left are U+007F,
    # U+0080 to U+009F (U+009B begins an escape sequence), U+2028 and marks that turn the direction
    # of writing. They stand within strings alone.
    try:
        data = orjson.dumps(fields)
    except TypeError:  # half of a surrogate pair: orjson writes UTF-8 alone
        data = json.dumps(fields, separators=(",", ":"), default=str).encode()
    text = data.decode()
    if data.isascii() and b"\x7f" not in data:
        return text
    return "".join(map(escape_json, text))


def escape_json(character: str) -> str:
    """A character as it may stand in a JSON string."""
    if character.isprintable():
        return character
    pair = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[at : at + 4]}" for at in range(0, len(pair), 4))


def escape_text(text: str) -> str:
    """A text in which every character that is not printable is escaped as Python does."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def write_request(request: dict[str, Any]) -> str:
    """What a request was and how it ended, for people."""
    parts = [f"{request['method']} {request['path']} {request['status']}"]
    parts += [f"{request['total_ms']:.1f} ms"]
    if request.get("graph"):
        parts += [f"{request['model']}/{request['version']} {request['graph']}"]
        parts += [
            f"{name} {'x'.join(map(str, s))}" for name, s in request.get("shapes", {}).items()
        ]
    parts += [request["error"]] if "error" in request else []
    return ", ".join(parts)
