"""Settings of trace and log: read as Triton writes them, and never changed."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from service.errors import InvalidRequestError, NotOfferedError
from service.protocol.v2_settings import (
    LogLevel,
    LogUpdate,
    TraceUpdate,
    check_log_update,
    check_trace_update,
    describe_log,
    describe_trace,
)

TRACE = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}
LOG = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
VALUES: list[Any] = [
    None, True, False, 0, 1, 2, -1, 0.0, 1.0, "", "0", "1000", "default", [], ["OFF"],
    ["OFF", "OFF"], [1], [None], {},
]  # fmt: skip


def write(**wishes: Any) -> bytes:
    return json.dumps(wishes).encode()


def test_the_settings_of_the_trace_are_those_of_a_server_that_does_not_trace() -> None:
    assert describe_trace().model_dump() == TRACE


@pytest.mark.parametrize(
    ("level", "changed"),
    [
        ("debug", {"log_verbose_level": 1}),
        ("info", {}),
        ("warning", {"log_info": False}),
        ("error", {"log_info": False, "log_warning": False}),
    ],
)
def test_the_settings_of_the_log_follow_its_level(level: LogLevel, changed: dict[str, Any]) -> None:
    assert describe_log(level).model_dump() == LOG | changed


@pytest.mark.parametrize("name", TRACE)
def test_each_setting_of_the_trace_may_be_asked_for_as_it_is(name: str) -> None:
    check_trace_update(write(**{name: TRACE[name]}))
    check_trace_update(write(**{name: None}))


@pytest.mark.parametrize("name", LOG)
def test_each_setting_of_the_log_may_be_asked_for_as_it_is(name: str) -> None:
    check_log_update(write(**{name: LOG[name]}), "info")
    check_log_update(write(**{name: None}), "info")


@pytest.mark.parametrize("text", [b"", b"{}"])
def test_a_body_that_asks_for_nothing_changes_nothing(text: bytes) -> None:
    check_trace_update(text)
    check_log_update(text, "error")


def test_all_settings_may_be_sent_back() -> None:
    check_trace_update(write(**TRACE))
    for level in ("debug", "info", "warning", "error"):
        check_log_update(describe_log(level).model_dump_json().encode(), level)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("trace_level", ["TIMESTAMPS"], 'is ["OFF"], and cannot become ["TIMESTAMPS"]'),
        ("trace_level", [], 'is ["OFF"], and cannot become []'),
        ("trace_rate", "1", 'is "1000", and cannot become "1"'),
        ("trace_file", "/tmp/x", 'is "", and cannot become "/tmp/x"'),  # noqa: S108 - not written
    ],
)
def test_a_trace_is_not_offered(name: str, value: object, said: str) -> None:
    with pytest.raises(NotOfferedError) as caught:
        check_trace_update(write(**{name: value}))
    assert str(caught.value) == (
        f"setting '{name}' {said} while the server runs: tracing is not offered; the header "
        "Server-Timing and /metrics say where the time goes"
    )


LEVEL_CURE = "set LIMELIGHT_LOG_LEVEL to debug, info, warning or error, and restart"


@pytest.mark.parametrize(
    ("name", "value", "said", "cure"),
    [
        ("log_info", False, "is true, and cannot become false", LEVEL_CURE),
        ("log_verbose_level", 1, "is 0, and cannot become 1", LEVEL_CURE),
        ("log_file", "x", 'is "", and cannot become "x"', "the log goes to standard error"),
        ("log_format", "ISO8601", 'is "default", and cannot become "ISO8601"',
         "its format is chosen when the server starts"),
    ],
)  # fmt: skip
def test_the_log_is_changed_at_the_next_start(
    name: str, value: object, said: str, cure: str
) -> None:
    with pytest.raises(NotOfferedError) as caught:
        check_log_update(write(**{name: value}), "info")
    assert str(caught.value) == f"setting '{name}' {said} while the server runs: {cure}"


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"trace_rate": 1000}, "setting 'trace_rate' is 1000, expected a string"),
        ({"trace_level": "OFF"}, "setting 'trace_level' is \"OFF\", expected a list of strings"),
        ({"trace_level": [1]}, "setting 'trace_level' is a list, expected a list of strings"),
        ({"trace_rate": ["1000"]}, "setting 'trace_rate' is a list, expected a string"),
        ({"trace_levels": None}, 'setting "trace_levels" is unknown, expected some of trace_level, '
         "trace_rate, trace_count, log_frequency, trace_file, trace_mode"),
    ],
)  # fmt: skip
def test_a_malformed_setting_of_the_trace_is_refused(wishes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_trace_update(write(trace_count="7", **wishes))
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"log_info": 1}, "setting 'log_info' is 1, expected true or false"),
        ({"log_verbose_level": False}, "setting 'log_verbose_level' is false, expected a whole "
         "number"),
        ({"log_verbose_level": 0.0}, "setting 'log_verbose_level' is 0.0, expected a whole number"),
        ({"log_warnings": True}, 'setting "log_warnings" is unknown, expected some of log_file, '
         "log_info, log_warning, log_error, log_verbose_level, log_format"),
    ],
)  # fmt: skip
def test_a_malformed_setting_of_the_log_is_refused(wishes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_log_update(write(**wishes), "info")
    assert str(caught.value) == said


@pytest.mark.parametrize("text", [b"[]", b"null", b"{", b'"OFF"', b"\xff", b'{"a": NaN}'])
def test_a_body_is_an_object(text: bytes) -> None:
    for check in (check_trace_update, lambda body: check_log_update(body, "info")):
        with pytest.raises(InvalidRequestError, match=r"^the request is "):
            check(text)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with suppress(InvalidRequestError, NotOfferedError):
        check_trace_update(text)
    with suppress(InvalidRequestError, NotOfferedError):
        check_log_update(text, "debug")


@pytest.mark.parametrize(
    ("names", "check", "model"),
    [
        ([*TRACE, "mine"], check_trace_update, TraceUpdate),
        ([*LOG, "mine"], partial(check_log_update, level="info"), LogUpdate),
    ],
    ids=["trace", "log"],
)
@given(st.data())
def test_the_model_that_openapi_is_made_from_refuses_what_is_malformed(
    names: list[str], check: Callable[[bytes], None], model: type[BaseModel], data: st.DataObject
) -> None:
    text = write(**data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(VALUES))))
    refused = False
    try:
        check(text)
    except InvalidRequestError:
        refused = True
    except NotOfferedError:
        pass
    try:
        model.model_validate_json(text)
    except ValidationError:
        assert refused, text
    else:
        assert not refused, text
