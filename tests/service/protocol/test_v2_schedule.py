"""Parameters that say how a request waits, and those that are reserved."""

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, NotOfferedError
from service.inference import Schedule
from service.protocol.v2_schedule import MAX_PRIORITY, MAX_TIMEOUT_US, read_schedule

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


def refuse(**parameters: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read_schedule(parameters)
    return str(caught.value)


def test_a_request_without_parameters_waits_as_all_do() -> None:
    assert read_schedule({}) == Schedule(priority=0, timeout_us=None)


@given(st.integers(1, MAX_TIMEOUT_US), st.integers(0, MAX_PRIORITY))
def test_both_are_whole_numbers(timeout_us: int, priority: int) -> None:
    parameters = orjson.loads(orjson.dumps({"timeout": timeout_us, "priority": priority}))
    assert read_schedule(parameters) == Schedule(priority, timeout_us)


def test_a_timeout_of_nought_is_none() -> None:
    assert read_schedule({"timeout": 0}).timeout_us is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1, "-1"),
        (2**63, "9223372036854775808"),
        (1.0, "1.0"),
        (1e30, "1e+30"),
        (float("nan"), "nan"),
        (True, "true"),
        (False, "false"),
        ("1000", '"1000"'),
        ("", '""'),
    ],
)
def test_a_timeout_is_nothing_else(value: object, shown: str) -> None:
    assert refuse(timeout=value) == (
        f"parameter 'timeout' is {shown}, expected a whole number of microseconds from 0 to "
        "9223372036854775807"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-1, "-1"), (2**64, "18446744073709551616"), (0.0, "0.0"), (False, "false"), ("1", '"1"')],
)
def test_a_priority_is_nothing_else(value: object, shown: str) -> None:
    assert refuse(priority=value) == (
        f"parameter 'priority' is {shown}, expected a whole number from 0 to 18446744073709551615"
    )


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("sequence_id", 7, "7"),
        ("sequence_id", -1, "-1"),
        ("sequence_id", "seven", '"seven"'),
        ("sequence_start", True, "true"),
        ("sequence_end", True, "true"),
        ("sequence_end", 0.5, "0.5"),
    ],
)
def test_sequences_are_not_offered(name: str, value: object, shown: str) -> None:
    with pytest.raises(NotOfferedError) as caught:
        read_schedule({name: value})
    assert str(caught.value) == (
        f"parameter '{name}' is {shown}, but sequences are not offered: every request is answered "
        "for itself; leave it out"
    )


def test_what_says_that_there_is_no_sequence_is_left_alone() -> None:
    parameters = {"sequence_id": 0, "sequence_start": False, "sequence_end": False}
    assert read_schedule(parameters) == read_schedule({"sequence_id": ""}) == Schedule()


@pytest.mark.parametrize("name", ["triton_enable_empty_final_response", "triton_"])
def test_names_that_triton_reserves_are_refused(name: str) -> None:
    assert refuse(**{name: True}) == (
        f'parameter "{name}" is reserved, as all that begin with triton_; leave it out'
    )


@pytest.mark.parametrize("name", ["headers", "Triton_x", "triton", "mine", ""])
def test_other_names_are_left_alone(name: str) -> None:
    assert read_schedule({name: "x"}) == Schedule()


@given(
    st.dictionaries(
        st.sampled_from(["timeout", "priority", "sequence_id", "triton_x", "headers"]), SCALARS
    )
)
def test_any_values_are_read_or_refused(parameters: dict[str, Any]) -> None:
    with suppress(InvalidRequestError, NotOfferedError):
        schedule = read_schedule(parameters)
        assert type(schedule.priority) is int
        assert schedule.timeout_us is None or schedule.timeout_us > 0
