"""The body of an error is short, whatever a client called its tensors."""

import json

from service.http.replies import render_error


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = f"input '{'x' * 10**6}' is unknown"
    body = json.loads(bytes(render_error(text, 400, {}).body))
    assert len(body["error"]) == 1005
    assert body["error"].startswith("input 'xxx")
    assert body["error"].endswith("xxx' is unknown")


def test_half_a_surrogate_is_escaped() -> None:
    body = bytes(render_error("input '\ud800'", 400, {}).body)
    assert json.loads(body) == {"error": "input '\\ud800'"}
