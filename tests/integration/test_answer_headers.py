"""What every answer carries beside its body, and what the metrics say of it."""

import re

import httpx
import pytest

from tests.integration.demo import B, H, L, S, draw_mask, draw_tokens
from tests.integration.doors import ATTENTION, DOORS, INFER

TENSORS = draw_tokens()
TIMING = re.compile(r"queue;dur=\d+(\.\d+)?, compute;dur=\d+(\.\d+)?")
GRAPHS = {
    ("cpu", "none"): {"fused_bias"},
    ("cpu", "per_head"): {"fused_weights"},
    ("cpu", "mean"): {"fused_weights"},
    ("cuda", "none"): {"fused", "fused_bias", "fused_causal"},
    ("cuda", "per_head"): {"model"},
    ("cuda", "mean"): {"model"},
}


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_tells_the_time_in_the_queue_and_of_the_computation(
    client: httpx.Client, door: str
) -> None:
    assert TIMING.fullmatch(DOORS[door](client, TENSORS).headers["Server-Timing"])


@pytest.mark.parametrize("weights", ["none", "per_head", "mean"])
@pytest.mark.parametrize("door", DOORS)
def test_an_answer_names_the_graph_that_ran(
    client: httpx.Client, provider: str, door: str, weights: str
) -> None:
    response = DOORS[door](client, TENSORS, weights=weights)
    assert response.headers["Limelight-Graph"] in GRAPHS[provider, weights]


def test_weights_that_nobody_asked_for_are_not_computed(
    client: httpx.Client, provider: str
) -> None:
    body = {"inputs": [{"name": "query", "shape": [1, 1, 6], "datatype": "FP32", "data": [1] * 6}]}
    response = client.post(INFER, json=body | {"outputs": [{"name": "output"}]})
    assert response.headers["Limelight-Graph"] in GRAPHS[provider, "none"]


def test_a_fit_request_id_is_echoed(client: httpx.Client) -> None:
    for path in ("/v2", "/v2/health/live", "/nothing", "/metrics", "/docs"):
        response = client.get(path, headers={"X-Request-Id": "a-Z_0.9"})
        assert response.headers["X-Request-Id"] == "a-Z_0.9"


@pytest.mark.parametrize("given", [b"", b"a b", b"x" * 129, b"\xc3\xa9", b"<b>", b"a\tb"], ids=str)
def test_an_unfit_request_id_is_replaced(client: httpx.Client, given: bytes) -> None:
    response = client.get("/v2", headers=[(b"X-Request-Id", given)])
    assert re.fullmatch(r"[A-Za-z0-9._-]{8,128}", response.headers["X-Request-Id"])


def test_every_answer_and_error_has_an_id_of_its_own(client: httpx.Client) -> None:
    responses = [
        client.get("/v2"),
        client.post(INFER, content=b"{"),
        client.post(ATTENTION, content=b""),
        client.get("/nothing"),
        DOORS["v2-json"](client, TENSORS),
        DOORS["v1-npz"](client, TENSORS),
    ]
    assert len({response.headers["X-Request-Id"] for response in responses}) == len(responses)


def read_metrics(client: httpx.Client) -> dict[str, float]:
    """The samples that the server publishes, by name and labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    lines = [line for line in response.text.splitlines() if line and not line.startswith("#")]
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines)}


def test_the_metrics_name_model_and_provider(client: httpx.Client, provider: str) -> None:
    wanted = f'limelight_model_info{{model="demo",provider="{provider}",version="1"}}'
    assert read_metrics(client)[wanted] == 1


def count(metrics: dict[str, float], name: str, *parts: str) -> float:
    """The sum of all samples of a metric whose labels hold all `parts`."""
    return sum(
        number
        for sample, number in metrics.items()
        if sample.startswith(f"{name}{{") and all(part in sample for part in parts)
    )


@pytest.mark.parametrize("name", ["queue", "compute", "total"])
def test_the_metrics_count_what_was_answered(client: httpx.Client, name: str) -> None:
    before = read_metrics(client)
    DOORS["v2-binary"](client, TENSORS)
    after = read_metrics(client)
    metric = f"limelight_{name}_seconds_count"
    assert count(after, metric, "demo") > count(before, metric, "demo")


@pytest.mark.parametrize("door", ["v2-json", "v1-json"])
def test_the_metrics_count_what_was_refused(client: httpx.Client, door: str) -> None:
    before = read_metrics(client)
    DOORS[door](client, TENSORS | {"mask": draw_mask(B * H, L, S)})
    after = read_metrics(client)
    name, outcome = "limelight_requests_total", 'outcome="400"'
    assert count(after, name, outcome) > count(before, name, outcome)


def test_what_a_client_sends_never_becomes_a_label(client: httpx.Client) -> None:
    client.post("/v2/models/evil-name/infer", content=b"{}")
    client.get("/evil-path")
    assert "evil" not in client.get("/metrics").text
