"""Protobuf's text format, the one of ``config.pbtxt``, read without knowing the fields.

https://protobuf.dev/reference/protobuf/textformat-spec/
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from service.engine.text_escapes import unescape

MAX_DEPTH: Final = 64
SHOWN_CHARACTERS: Final = 40
ENDS: Final = {"{": "}", "<": ">"}
TOKEN: Final = re.compile(
    r"""(?P<space> [\ \t\n\v\f\r]+ | \#[^\n]* )
      | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
      | (?P<float> (?: [0-9]+\.[0-9]* | \.[0-9]+ ) (?:[eE][+-]?[0-9]+)? [fF]?
                 | [0-9]+[eE][+-]?[0-9]+[fF]? | [0-9]+[fF] ) (?![A-Za-z0-9_.])
      | (?P<integer> 0[xX][0-9A-Fa-f]+ | 0[0-7]* | [1-9][0-9]* ) (?![A-Za-z0-9_.])
      | (?P<text> "(?:[^"\n\\]|\\[^\n])*" | '(?:[^'\n\\]|\\[^\n])*' )
      | (?P<mark> [-:,;{}<>\[\]/.] )""",
    re.VERBOSE,
)


class TextProtoError(Exception):
    """The text is malformed; the message begins with the number of the line."""


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word: true, false, or the name of an enumeration's value."""

    text: str


@dataclass(frozen=True, slots=True)
class Message:
    """Fields in their order; a repeated one may come several times."""

    fields: "tuple[Field, ...]"


Value: TypeAlias = bytes | int | float | Word | Message


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it was written.

    Attributes:
        name: without the brackets, for extensions.
        line: where the name stands, from 1.
        values: one, unless it is a list; strings are bytes, as their escapes may make any.
        is_list: whether it was written in brackets, as only repeated fields may be.
    """

    name: str
    line: int
    values: tuple[Value, ...]
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text; the last of all is empty."""

    kind: str
    text: str
    line: int


def parse_text(content: bytes) -> Message:
    """Parse one message.

    Raises:
        TextProtoError: if it is malformed, not UTF-8, or nested more than `MAX_DEPTH` deep.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TextProtoError(f"line {line}: is not UTF-8") from None
    return Parser(text).read_message("", MAX_DEPTH)


def split_tokens(text: str) -> Iterator[Token]:
    """The words of a text, spaces and comments left out.

    Raises:
        TextProtoError: at a character that begins none.
    """
    position, line = 0, 1
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            refuse(line, f"cannot read {show(text[position:].partition(chr(10))[0])}")
        kind = str(match.lastgroup)
        if kind != "space":
            yield Token(kind, match[0], line)
        line += match[0].count("\n")
        position = match.end()
    yield Token("end", "", line)


class Parser:
    """Reads tokens one after the other; `next` is the one that was not read yet."""

    def __init__(self, text: str) -> None:
        self._tokens = split_tokens(text)
        self.next = next(self._tokens)

    def read_message(self, end: str, depth: int) -> Message:
        """Fields up to the mark `end`, or to the end of the text where it is empty."""
        if depth == 0:
            refuse(self.next.line, f"messages are nested more than {MAX_DEPTH} deep")
        fields = []
        while not (self.next.text == end and self.next.kind in ("mark", "end")):
            fields.append(self._read_field(depth))
        if end:
            self._take()
        return Message(tuple(fields))

    def _read_field(self, depth: int) -> Field:
        line, name = self.next.line, self._read_name()
        has_colon = self._try(":")
        if is_list := self._try("["):
            values = self._read_list(depth, scalars=has_colon)
        else:
            values = (self._read_value(depth, scalars=has_colon),)
        if not self._try(","):
            self._try(";")
        return Field(name, line, values, is_list)

    def _read_name(self) -> str:
        if not self._try("["):
            return self._expect("name", "the name of a field")
        parts = []
        while not self._try("]"):
            if self.next.kind not in ("name", "integer") and self.next.text not in ("/", ".", "-"):
                self._refuse("the name of an extension and ']'")
            parts.append(self._take().text)
        return "".join(parts)

    def _read_list(self, depth: int, *, scalars: bool) -> tuple[Value, ...]:
        if self._try("]"):
            return ()
        values = [self._read_value(depth, scalars=scalars)]
        while not self._try("]"):
            if not self._try(","):
                self._refuse("',' or ']'")
            values.append(self._read_value(depth, scalars=scalars))
        return tuple(values)

    def _read_value(self, depth: int, *, scalars: bool) -> Value:
        for begin, end in ENDS.items():
            if self._try(begin):
                return self.read_message(end, depth - 1)
        if not scalars:
            self._refuse("':'")
        if self.next.kind == "text":
            return self._read_text()
        if self.next.kind == "name":
            return Word(self._take().text)
        return self._read_number(-1 if self._try("-") else 1)

    def _read_text(self) -> bytes:
        parts = []
        while self.next.kind == "text":
            token = self._take()
            try:
                parts.append(unescape(token.text[1:-1]))
            except ValueError as error:
                refuse(token.line, str(error))
        return b"".join(parts)

    def _read_number(self, sign: int) -> int | float:
        token = self.next
        if sign < 0 and token.text.lower() in ("inf", "infinity", "nan"):
            return sign * float(self._take().text)
        if token.kind == "float":
            return sign * float(self._take().text.rstrip("fF"))
        if token.kind != "integer":
            self._refuse("a value")
        return sign * self._read_integer()

    def _read_integer(self) -> int:
        token = self._take()
        base = {"0x": 16, "0X": 16}.get(token.text[:2], 8 if token.text[0] == "0" else 10)
        try:
            return int(token.text, base)
        except ValueError:  # Python converts no more than some thousand digits
            refuse(token.line, f"{show(token.text)} has too many digits")

    def _take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self.next = next(self._tokens)
        return token

    def _try(self, mark: str) -> bool:
        if self.next.kind == "mark" and self.next.text == mark:
            self._take()
            return True
        return False

    def _expect(self, kind: str, wanted: str) -> str:
        if self.next.kind != kind:
            self._refuse(wanted)
        return self._take().text

    def _refuse(self, wanted: str) -> NoReturn:
        found = show(self.next.text) if self.next.text else "the end of the file"
        refuse(self.next.line, f"expected {wanted}, found {found}")


def refuse(line: int, reason: str) -> NoReturn:
    """Raise what is wrong with the text.

    Raises:
        TextProtoError: always.
    """
    raise TextProtoError(f"line {line}: {reason}")


def show(text: str) -> str:
    """A piece of the text, quoted and not too long."""
    short = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
    return ascii(short)
