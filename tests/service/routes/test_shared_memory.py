"""Shared memory: nothing is registered, nothing can be, and forgetting it succeeds."""

import httpx
import pytest

KINDS = pytest.mark.parametrize("kind", ["system", "cuda"])


@KINDS
@pytest.mark.parametrize("region", ["", "/region/mine"])
async def test_no_region_is_registered(client: httpx.AsyncClient, kind: str, region: str) -> None:
    answer = await client.get(f"/v2/{kind}sharedmemory{region}/status")
    assert (answer.status_code, answer.json()) == (200, [])


@KINDS
@pytest.mark.parametrize("region", ["", "/region/mine"])
async def test_any_region_can_be_forgotten(
    client: httpx.AsyncClient, kind: str, region: str
) -> None:
    answer = await client.post(f"/v2/{kind}sharedmemory{region}/unregister")
    assert (answer.status_code, answer.json()) == (200, {})


@KINDS
async def test_no_region_can_be_registered(client: httpx.AsyncClient, kind: str) -> None:
    answer = await client.post(f"/v2/{kind}sharedmemory/region/mine/register", json={"key": "/k"})
    assert answer.status_code == 501
    assert answer.json() == {
        "error": "shared memory is not offered, so region 'mine' cannot be registered; send the "
        "data of tensors with their request, as JSON or as binary data"
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v2/systemsharedmemory/status", 405),
        ("GET", "/v2/systemsharedmemory/unregister", 405),
        ("GET", "/v2/cudasharedmemory/region/mine/register", 405),
        ("POST", "/v2/systemsharedmemory/register", 404),
        ("POST", "/v2/systemsharedmemory/region/a/b/register", 404),
        ("GET", "/v2/tpusharedmemory/status", 404),
    ],
)
async def test_other_paths_and_methods_are_refused(
    client: httpx.AsyncClient, method: str, path: str, status: int
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]
