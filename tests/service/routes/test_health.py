"""Readiness: what the phase, the watchdog and the pulse make of it."""

from typing import Any

import httpx
import pytest

from service.state import State

READY = ("/v2/health/ready", "/v2/models/demo/ready", "/v2/models/demo/versions/1/ready")


class Faulty:
    """Stands for the pulse or the watchdog."""

    fault = "something of it is stuck"


async def ask(client: httpx.AsyncClient) -> set[tuple[int, str | None]]:
    """What the questions for readiness are answered."""
    answers = [await client.get(path) for path in READY]
    return {(answer.status_code, answer.json().get("error")) for answer in answers}


async def test_a_server_that_computes_is_ready(client: httpx.AsyncClient) -> None:
    assert await ask(client) == {(200, None)}


@pytest.mark.parametrize("part", ["pulse", "watchdog"])
async def test_a_fault_of_a_part_is_one_of_the_server(
    client: httpx.AsyncClient, state: State, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(state, part, Faulty())
    assert await ask(client) == {(503, "the server is not ready: something of it is stuck")}
    body: Any = {"query": [[1] * 6]}
    assert (await client.post("/v1/attention", json=body)).status_code == 200
    assert (await client.get("/v2/health/live")).json() == {"live": True}


async def test_while_it_drains_a_server_is_not_ready_and_works(
    client: httpx.AsyncClient, state: State
) -> None:
    assert state.drain()
    assert await ask(client) == {(503, "the server is not ready: draining")}
    assert (await client.post("/v1/attention", json={"query": [[1] * 6]})).status_code == 200
    assert not state.drain()


@pytest.mark.parametrize("phase", ["starting", "failed", "stopping"])
def test_a_server_that_takes_no_work_does_not_drain(state: State, phase: Any) -> None:
    state.phase = phase
    assert not state.drain()
    assert state.phase == phase
