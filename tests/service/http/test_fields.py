"""The header fields of a request are those that Starlette finds."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from service.http.fields import STATE, Fields, get_fields

NAMES = st.sampled_from([b"accept", b"accept-encoding", b"origin", b"x", b""])
PAIRS = st.lists(st.tuples(NAMES, st.binary(max_size=5)), max_size=8)


@given(PAIRS, NAMES)
def test_a_field_has_all_its_values_in_order(pairs: list[tuple[bytes, bytes]], name: bytes) -> None:
    fields, headers = Fields(pairs), Headers(raw=pairs)
    assert fields.list(name) == headers.getlist(name.decode())
    assert fields.get(name) == headers.get(name.decode(), "")


@given(PAIRS, st.frozensets(NAMES))
def test_some_field_of_several_is_there_or_none(
    pairs: list[tuple[bytes, bytes]], names: frozenset[bytes]
) -> None:
    headers = Headers(raw=pairs)
    assert Fields(pairs).has_any(names) is any(name.decode() in headers for name in names)


def test_they_are_sorted_once_for_all_who_look() -> None:
    scope: dict[str, Any] = {"headers": [(b"x", b"1")]}
    fields = get_fields(scope)
    assert fields.get(b"x") == "1"
    assert get_fields(scope) is fields is scope["state"][STATE]


def test_each_request_has_its_own() -> None:
    first, second = ({"headers": [(b"x", value)], "state": {}} for value in (b"1", b"2"))
    assert [get_fields(scope).get(b"x") for scope in (first, second)] == ["1", "2"]
