"""Heads that came before: found by their bytes alone, and kept only where those say all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.familiar import MAX_BYTES, MAX_HEADS, Heads, cut_head, is_plain
from service.http.fields import get_fields

RAW = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
HEADERS = [(b"host", b"x"), (b"content-length", b"5")]


def make_scope(headers: list[tuple[bytes, bytes]] | None = None, **own: Any) -> dict[str, Any]:
    """The scope of a request."""
    own = {"server": ("s", 1), "client": ("c", 2), "state": {"model": object()}} | own
    headers = HEADERS if headers is None else headers
    return {"type": "http", "path": "/a", "query_string": b"b=c", "headers": headers} | own


def test_a_head_that_was_kept_is_found_whatever_follows() -> None:
    heads = Heads()
    assert heads.find(RAW + b"12345") is None
    heads.keep(RAW, 5, make_scope())
    for body in (b"", b"1", b"12345", b"\r\n\r\n" * 9):
        head = heads.find(RAW + body)
        assert head is not None
        assert (head.raw, head.size_bytes) == (RAW, 5)


@pytest.mark.parametrize(
    "data",
    [b"", RAW[:-1], RAW[1:], b"\r\n" + RAW, RAW.replace(b"5", b"6"), RAW.replace(b"Host", b"host")],
)
def test_no_other_bytes_are_that_head(data: bytes) -> None:
    heads = Heads()
    heads.keep(RAW, 5, make_scope())
    assert heads.find(data) is None


def test_another_request_has_the_head_and_nothing_else_of_the_first() -> None:
    heads = Heads()
    heads.keep(RAW, 5, make_scope())
    head = heads.find(RAW)
    assert head is not None
    own: dict[str, Any] = {"server": ("t", 3), "client": ("d", 4), "state": {}}
    scope = head.make_scope(own)
    assert scope == make_scope(**own)
    assert get_fields(scope).get(b"host") == "x"
    assert "model" not in scope["state"]
    assert "state" not in head.scope


@pytest.mark.parametrize(
    ("raw", "headers"),
    [
        pytest.param(RAW.replace(b"\r\nHost", b"\nHost"), HEADERS, id="a line feed alone"),
        pytest.param(b"\r\n" + RAW, HEADERS, id="an empty line before it"),
        pytest.param(
            b"POST / HTTP/1.1\nHost: x\nContent-Length: 40\n\nGET / HTTP/1.1\r\n\r\n",
            [(b"host", b"x"), (b"content-length", b"40")],
            id="an end of line feeds, and what seems to be one in the body",
        ),
        pytest.param(
            RAW.replace(b"x\r\n", b"x\r\n y\r\n"), [(b"host", b"x y"), HEADERS[1]], id="a fold"
        ),
        pytest.param(
            RAW.replace(b"Host", b"Expect: 100-continue\r\nHost"),
            [(b"expect", b"100-continue"), *HEADERS],
            id="a wish to be told to go on",
        ),
        pytest.param(
            RAW.replace(b"Host", b"Upgrade: h2c\r\nHost"),
            [(b"upgrade", b"h2c"), *HEADERS],
            id="a wish for another protocol",
        ),
    ],
)
def test_what_does_not_end_where_it_seems_or_asks_for_more_is_not_kept(
    raw: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    heads = Heads()
    assert not is_plain(raw, headers)
    heads.keep(raw, 5, make_scope(headers))
    assert heads.find(raw + b"12345") is None


def test_the_heads_that_came_last_are_kept() -> None:
    heads = Heads()
    raws = [RAW.replace(b"/a", b"/%d" % number) for number in range(MAX_HEADS + 2)]
    for raw in raws:
        heads.keep(raw, 5, make_scope())
    heads.keep(raws[-1], 5, make_scope())  # it is there: none has to go
    assert [heads.find(raw) is not None for raw in raws] == [False] * 2 + [True] * MAX_HEADS


@given(st.binary(max_size=40), st.integers(0, 2))
def test_a_head_is_cut_at_its_first_end(body: bytes, ends: int) -> None:
    data = RAW * ends + body
    first = data.find(b"\r\n\r\n")
    assert cut_head(data) == (data[: first + 4] if first >= 0 else b"")


def test_a_long_head_is_none() -> None:
    raw = RAW.replace(b"x", b"x" * (MAX_BYTES - len(RAW) + 1))
    assert len(raw) == MAX_BYTES
    assert cut_head(raw) == raw
    assert cut_head(raw.replace(b"x", b"xx", 1)) == b""
