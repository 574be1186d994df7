"""Trace ids, as https://www.w3.org/TR/trace-context/ defines them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.trace_context import read_trace_id

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header",
    [
        f"00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-00",
        f"cc-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like",
        f"cc-{TRACE}-{PARENT}-01-",
    ],
)
def test_a_valid_header_has_one(header: str) -> None:
    assert read_trace_id(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        "",
        TRACE,
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01\n",
        f" 00-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"ff-{TRACE}-{PARENT}-01",
        f"0-{TRACE}-{PARENT}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-1",
    ],
)
def test_any_other_has_none(header: str) -> None:
    assert read_trace_id(header) is None


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"))
def test_what_comes_out_is_fit_for_a_log(header: str) -> None:
    trace_id = read_trace_id(header)
    assert trace_id is None or (len(trace_id) == 32 and set(trace_id) <= set("0123456789abcdef"))
