"""Escapes in the strings of protobuf's text format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.text_escapes import unescape
from tests.service.engine.triton_config import load_module


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("", b""), ("plain", b"plain"), ("\N{SNOWMAN}", "\N{SNOWMAN}".encode()),
        (r"\a\b\f\n\r\t\v", b"\a\b\f\n\r\t\v"), (r"\?\\\'\"", b"?\\'\""),
        (r"\0\12\101\1012", b"\0\nAA2"), (r"\377", b"\xff"), (r"\x41\x4\x414", b"A\x04A4"),
        (r"\xFf", b"\xff"), (r"\u00e9", "é".encode()), (r"\U0001F600", "\U0001f600".encode()),
        (r"\\n", b"\\n"), (r"\\\n", b"\\\n"),
    ],
)  # fmt: skip
def test_every_escape_has_its_bytes(text: str, content: bytes) -> None:
    assert unescape(text) == content


@pytest.mark.parametrize(
    ("text", "escape"),
    [
        (r"a\q", r"\q"), (r"\400", r"\400"), (r"\xg", r"\x"), (r"\u12", r"\u"),
        (r"\ud83d", r"\ud83d"), (r"\U00110000", r"\U00110000"), (r"\8", r"\8"), (r"\ ", r"\ "),
        ("a\\", "\\"),
    ],
)  # fmt: skip
def test_an_escape_that_stands_for_nothing_is_named(text: str, escape: str) -> None:
    with pytest.raises(ValueError, match=r"is no escape of a string$") as caught:
        unescape(text)
    assert str(caught.value) == f"{escape!a} is no escape of a string"


@given(st.binary())
def test_what_protobuf_escapes_is_read_back(content: bytes) -> None:
    escape = load_module("text_encoding").CEscape
    assert unescape(escape(content, False)) == content
    assert unescape(escape(content, True)) == content


@given(st.text(st.sampled_from(list("\\abnxuU01278fd'\" \N{SNOWMAN}")), max_size=12))
def test_escapes_at_random_are_read_as_protobuf_reads_them(text: str) -> None:
    """But for the escape of the question mark, which protobuf in Python does not know."""
    try:
        ours = unescape(text)
    except ValueError:
        return
    assert ours == load_module("text_encoding").CUnescape(text)
