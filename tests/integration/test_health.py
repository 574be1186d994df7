"""Probes: a body as well as a status, since some clients read it."""

import httpx


def test_a_live_server_says_so(client: httpx.Client) -> None:
    response = client.get("/v2/health/live")
    assert (response.status_code, response.json()) == (200, {"live": True})


def test_a_ready_server_says_so(client: httpx.Client) -> None:
    response = client.get("/v2/health/ready")
    assert (response.status_code, response.json()) == (200, {"ready": True})
