"""How a log record is written: one line, whatever a client chose for a part of it."""

import json
import logging
import re
import sys
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.log_lines import MAX_EXCEPTION_CHARACTERS, REQUEST, JsonLines, TextLines

FIELDS: dict[str, Any] = {
    "id": "7",
    "method": "POST",
    "path": "/v2/models/{name}/infer",
    "model": "demo",
    "version": "1",
    "rows": 2,
    "shapes": {"query": (2, 4, 6), "key": (2, 5, 6)},
    "graph": "fused_bias",
    "total_ms": 1.25,
    "status": 200,
}
FORGERIES = {
    "lf": "a\nb",
    "crlf": 'a\r\n{"level":"error"}',
    "escape": "a\x1b[31mb",
    "c1": "a\x9b31mb",
    "delete": "a\x7fb",
    "nul": "a\0b",
    "line-separator": "a\u2028b",
    "next-line": "a\x85b",
    "right-to-left": "a\u202eb",
    "astral": "a\U000e0041b",
    "surrogate": "a\ud800b",
    "quote": 'a"b\\',
}


def make_record(message: str, *arguments: object, **extra: Any) -> logging.LogRecord:
    """A record of 30 Nov 2026, 12:34:56.789 UTC."""
    record = logging.LogRecord("limelight", logging.INFO, "", 0, message, arguments, None)
    record.created, record.msecs = 1796042096.789, 789.0
    for name, value in extra.items():
        setattr(record, name, value)
    return record


def make_fault(text: str) -> logging.LogRecord:
    """A record with a traceback."""
    try:
        raise RuntimeError(text)
    except RuntimeError:
        return make_record("the request failed", exc_info=sys.exc_info())


def test_a_record_is_one_object() -> None:
    line = JsonLines().format(make_record("model %s is loaded on %s", "demo/1", "cpu"))
    assert line == (
        '{"time":"2026-11-30T12:34:56.789Z","level":"info","logger":"limelight",'
        '"message":"model demo/1 is loaded on cpu"}'
    )


def test_a_request_is_one_object_in_its_order() -> None:
    line = JsonLines().format(make_record("%s", "unused", **{REQUEST: FIELDS}))
    assert line == (
        '{"time":"2026-11-30T12:34:56.789Z","level":"info","logger":"limelight","id":"7",'
        '"method":"POST","path":"/v2/models/{name}/infer","model":"demo","version":"1","rows":2,'
        '"shapes":{"query":[2,4,6],"key":[2,5,6]},"graph":"fused_bias","total_ms":1.25,'
        '"status":200}'
    )


@pytest.mark.parametrize("second", [1796042096, 1796042097, 0])
def test_the_time_is_that_of_each_record(second: int) -> None:
    lines, record = JsonLines(), make_record("first")
    lines.format(record)
    record.created, record.msecs = second + 0.0625, 62.0
    written = json.loads(lines.format(record))["time"]
    assert datetime.fromisoformat(written).timestamp() == second + 0.062


def test_a_traceback_is_one_text() -> None:
    written = json.loads(JsonLines().format(make_fault("broken\nhere")))
    assert written["message"] == "the request failed"
    assert written["exception"].startswith("Traceback (most recent call last):\n")
    assert written["exception"].endswith("RuntimeError: broken\nhere")


@pytest.mark.parametrize("text", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("field", ["message", "request"])
def test_json_holds_what_came_and_shows_nothing_that_a_terminal_obeys(
    text: str, field: str
) -> None:
    if field == "message":
        line = JsonLines().format(make_record("came: %s", text))
        came = json.loads(line)["message"].removeprefix("came: ")
    else:
        line = JsonLines().format(make_record("", **{REQUEST: {"path": text}}))
        came = json.loads(line)["path"]
    assert line.isprintable()
    assert came == text


@pytest.mark.parametrize("text", FORGERIES.values(), ids=FORGERIES)
def test_so_does_text(text: str) -> None:
    for record in (
        make_record("came: %s", text),
        make_record("", **{REQUEST: FIELDS | {"path": text}}),
        make_record("", **{REQUEST: FIELDS | {"error": text}}),
    ):
        line = TextLines().format(record)
        assert line.isprintable()
        assert "a" in line


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_stays_within_its_line(message: str, name: str) -> None:
    for record in (make_record("%s", message), make_record("", **{REQUEST: {name: message}})):
        line = JsonLines().format(record)
        assert line.isprintable()
        assert json.loads(line) is not None
    assert TextLines().format(make_record("%s", message)).isprintable()


def test_text_is_short() -> None:
    shown = TextLines().format(make_record("model %s is loaded", "demo/1"))
    assert re.fullmatch(r"\d\d:\d\d:56 INFO    model demo/1 is loaded", shown)
    shown = TextLines().format(make_record("", **{REQUEST: FIELDS}))
    assert shown[9:] == (
        "INFO    POST /v2/models/{name}/infer 200, 1.2 ms, demo/1 fused_bias, query 2x4x6, "
        "key 2x5x6"
    )
    refused = {"method": "GET", "path": "/x", "status": 404, "total_ms": 0.25, "error": "no /x"}
    shown = TextLines().format(make_record("", **{REQUEST: refused}))
    assert shown[9:] == "INFO    GET /x 404, 0.2 ms, no /x"


def test_no_line_of_a_traceback_can_be_taken_for_a_record() -> None:
    shown = TextLines().format(make_fault("broken\n12:34:56 ERROR   forged")).split("\n")
    assert shown[0].endswith(" INFO    the request failed")
    assert all(line.startswith("  | ") for line in shown[1:])
    assert shown[-1] == "  | 12:34:56 ERROR   forged"


def test_long_texts_are_shortened() -> None:
    written = json.loads(JsonLines().format(make_record("%s", "a" * 50_000 + "z")))
    assert len(written["message"]) < 10_000
    assert written["message"].endswith("az")
    written = json.loads(JsonLines().format(make_fault("a" * 10**6 + "z")))
    assert len(written["exception"]) < MAX_EXCEPTION_CHARACTERS + 100
    assert written["exception"].endswith("az")
