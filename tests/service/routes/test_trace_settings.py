"""The settings of the trace over HTTP."""

import httpx
import pytest

from service.state import State

PATHS = ["/v2/trace/setting", "/v2/models/demo/trace/setting"]
EACH = pytest.mark.parametrize("path", PATHS)
TRACE = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}


@EACH
async def test_they_can_be_read(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (200, TRACE)


@EACH
@pytest.mark.parametrize("body", [b"", b"{}", b'{"trace_level": ["OFF"]}', b'{"trace_rate": null}'])
async def test_an_update_that_changes_nothing_is_answered_with_all(
    client: httpx.AsyncClient, path: str, body: bytes
) -> None:
    answer = await client.post(path, content=body)
    assert (answer.status_code, answer.json()) == (200, TRACE)


@EACH
async def test_a_trace_is_not_offered(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(path, json={"trace_level": ["TIMESTAMPS"]})
    assert answer.status_code == 501
    assert answer.json()["error"].startswith("setting 'trace_level' is [\"OFF\"], and cannot ")


@EACH
async def test_a_malformed_update_is_refused(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(path, json={"trace_rate": 5})
    assert answer.status_code == 400
    assert answer.json() == {"error": "setting 'trace_rate' is 5, expected a string"}


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_model_that_is_not_served_has_none(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/v2/models/other/trace/setting")
    assert answer.status_code == 404
    assert answer.json() == {"error": "model 'other' is not served here; served: demo"}


async def test_those_of_the_server_are_there_before_it_is_ready(
    client: httpx.AsyncClient, state: State
) -> None:
    state.phase = "starting"
    assert (await client.get(PATHS[0])).status_code == 200
    assert (await client.get(PATHS[1])).status_code == 503
