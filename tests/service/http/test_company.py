"""Requests of several clients, told from those of one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.http.company import APART_S, Company

NEAR_S = APART_S / 2


def test_one_client_is_alone_however_fast_it_asks() -> None:
    company, connection = Company(), object()
    for step in range(100):
        company.note(connection, 1 + step * 1e-6)
        assert not company.is_there(1 + step * 1e-6)


def test_two_clients_that_take_turns_in_a_moment_are_company_until_it_has_passed() -> None:
    company, first, second = Company(), object(), object()
    company.note(first, 7.0)
    company.note(second, 7.0 + NEAR_S)
    assert company.is_there(7.0 + NEAR_S)
    assert company.is_there(7.0 + NEAR_S + 0.9 * APART_S)
    assert not company.is_there(7.0 + NEAR_S + 1.1 * APART_S)


def test_two_clients_with_a_pause_between_them_are_not() -> None:
    company, first, second = Company(), object(), object()
    for turn, connection in enumerate([first, second] * 3):
        now_s = 7.0 + turn * 1.1 * APART_S
        company.note(connection, now_s)
        assert not company.is_there(now_s)


def test_a_client_that_asks_on_is_alone_again() -> None:
    company, first, second = Company(), object(), object()
    company.note(first, 7.0)
    company.note(second, 7.0 + NEAR_S)
    for turn in range(1, 9):
        company.note(second, 7.0 + NEAR_S + turn * NEAR_S)
    assert not company.is_there(7.0 + NEAR_S + 8 * NEAR_S)


def test_the_first_request_of_all_has_no_company_whatever_the_clock_shows() -> None:
    for now_s in (APART_S, 1.0, 1e9):
        company = Company()
        company.note(object(), now_s)
        assert not company.is_there(now_s)


# Even numbers, whose sums are never the 5 ms at the edge, which binary fractions would blur.
PAUSES_MS = st.integers(0, 6).map(lambda number: 2 * number)


@given(st.lists(st.tuples(st.integers(0, 2), PAUSES_MS), max_size=30))
def test_company_is_a_change_of_clients_within_a_moment_not_long_ago(
    turns: list[tuple[int, int]],
) -> None:
    company, clients = Company(), [object() for _ in range(3)]
    asked: list[tuple[int, float]] = []
    now_ms = 100
    for client, pause_ms in turns:
        now_ms += pause_ms
        company.note(clients[client], now_ms / 1000)
        asked.append((client, now_ms))
        changes_ms = [
            at_ms
            for (before, before_ms), (after, at_ms) in pairwise(asked)
            if before != after and at_ms - before_ms < 1000 * APART_S
        ]
        is_there = any(now_ms - at_ms < 1000 * APART_S for at_ms in changes_ms)
        assert company.is_there(now_ms / 1000) is is_there
