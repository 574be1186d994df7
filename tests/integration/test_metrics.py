"""The metrics: Triton's names and ours, under load, and on a port of their own."""

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.demo import B, H, L, S, draw_mask, draw_tokens
from tests.integration.doors import DOORS
from tests.integration.server_process import start_server

ours = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server has settings of its own"
)
TRITON: Final = {
    "nv_inference_request_success": "counter",
    "nv_inference_request_failure": "counter",
    "nv_inference_count": "counter",
    "nv_inference_exec_count": "counter",
    "nv_inference_request_duration_us": "counter",
    "nv_inference_queue_duration_us": "counter",
    "nv_inference_compute_input_duration_us": "counter",
    "nv_inference_compute_infer_duration_us": "counter",
    "nv_inference_compute_output_duration_us": "counter",
    "nv_inference_pending_request_count": "gauge",
}
LIMELIGHT: Final = {
    "limelight_info": ("gauge", {"version"}),
    "limelight_model_info": ("gauge", {"model", "version", "provider"}),
    "limelight_requests_total": ("counter", {"model", "version", "outcome"}),
    "limelight_departures_total": ("counter", {"stage"}),
    "limelight_connections_cut_total": ("counter", {"setting"}),
    "limelight_held_bytes": ("gauge", {"kind"}),
    "limelight_stuck_threads": ("gauge", set()),
    "limelight_queue_seconds": ("histogram", {"model", "version"}),
    "limelight_compute_seconds": ("histogram", {"model", "version"}),
    "limelight_total_seconds": ("histogram", {"model", "version"}),
}
SAMPLE: Final = re.compile(r'(\w+)(?:\{((?:\w+="[^"]*",?)*)\})? (\S+)')
UNKNOWN_NAMES: Final = 2_000
Samples = dict[str, float]


def read(client: httpx.Client) -> str:
    """The text that is published."""
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    return response.text


def list_samples(text: str) -> Samples:
    """The samples by name and labels, as they are written."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    matches = [SAMPLE.fullmatch(line) for line in lines]
    assert all(matches), lines
    return {f"{m[1]}{{{m[2] or ''}}}": float(m[3]) for m in matches if m}


def name_sample(name: str, reason: str = "") -> str:
    """A sample of the demo in the metrics of Triton."""
    reason = f'reason="{reason}",' if reason else ""
    return f'nv_inference_{name}{{model="demo",{reason}version="1"}}'


def test_every_family_has_its_name_type_and_labels(client: httpx.Client) -> None:
    assert DOORS["v2-json"](client, draw_tokens()).status_code == 200
    text = read(client)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    assert types == TRITON | {name: kind for name, (kind, _) in LIMELIGHT.items()} | {
        name: kind for name, kind in types.items() if name.endswith("_created")
    }
    labels: dict[str, set[str]] = {}
    for sample in list_samples(text):
        name, _, rest = sample.partition("{")
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=", rest))
    for name in TRITON:
        more = {"reason"} if name == "nv_inference_request_failure" else set()
        assert labels[name] == {"model", "version"} | more, name
    for name, (kind, wanted) in LIMELIGHT.items():
        assert labels[f"{name}_sum" if kind == "histogram" else name] == wanted, name


def test_a_parser_of_prometheus_reads_all_of_it(client: httpx.Client) -> None:
    families = {each.name: each for each in text_string_to_metric_families(read(client))}
    for name, kind in TRITON.items():
        assert families[name].type == kind
        assert families[name].documentation
        assert all(sample.labels["model"] == "demo" for sample in families[name].samples)
    reasons = [s.labels["reason"] for s in families["nv_inference_request_failure"].samples]
    assert sorted(reasons) == ["BACKEND", "CANCELED", "OTHER", "REJECTED"]


def test_the_numbers_are_those_of_the_statistics(client: httpx.Client) -> None:
    for rows in (1, 3):
        assert DOORS["v2-binary"](client, draw_tokens(rows)).status_code == 200
    assert DOORS["v2-json"](client, {"mask": draw_mask(B * H, L, S)}).status_code == 400
    samples = list_samples(read(client))
    (stats,) = client.get("/v2/models/stats").json()["model_stats"]
    requests = stats["inference_stats"]
    wanted = {
        "request_success": requests["success"]["count"],
        "count": stats["inference_count"],
        "exec_count": stats["execution_count"],
        "request_duration_us": requests["success"]["ns"] // 1000,
        "queue_duration_us": requests["queue"]["ns"] // 1000,
        "compute_input_duration_us": requests["compute_input"]["ns"] // 1000,
        "compute_infer_duration_us": requests["compute_infer"]["ns"] // 1000,
        "compute_output_duration_us": requests["compute_output"]["ns"] // 1000,
        "pending_request_count": 0,
    }
    assert {name: samples[name_sample(name)] for name in wanted} == wanted
    failures = [
        samples[name_sample("request_failure", reason)]
        for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    ]
    assert sum(failures) == requests["fail"]["count"]


def test_requests_move_the_metrics(client: httpx.Client) -> None:
    before = list_samples(read(client))
    for rows in (1, 3):
        assert DOORS["v2-binary"](client, draw_tokens(rows)).status_code == 200
    assert DOORS["v1-json"](client, draw_tokens() | {"mask": draw_mask(2, L, S)}).status_code == 400
    after = list_samples(read(client))
    moved = {
        name: after[name_sample(name)] - before[name_sample(name)]
        for name in ("request_success", "count", "exec_count")
    }
    assert moved == {"request_success": 2, "count": 4, "exec_count": 2}
    other = name_sample("request_failure", "OTHER")
    assert after[other] - before[other] == 1


def test_names_that_are_not_served_add_no_series(client: httpx.Client) -> None:
    # The first request without a model makes the series of all that follow.
    client.post("/v1/attention", json={"query": [[0.5]], "model": "first"})
    before = list_samples(read(client)).keys()
    for number in range(UNKNOWN_NAMES // 4):
        name = f"evil{number}"
        answers = [
            client.post(f"/v2/models/{name}/infer", content=b"{}"),
            client.post("/v1/attention", json={"query": [[0.5]], "model": name}),
            client.post(f"/v2/models/demo/versions/{number + 2}/infer", content=b"{}"),
            client.get(f"/v2/models/{name}/stats"),
        ]
        assert {answer.status_code for answer in answers} == {404}
    assert list_samples(read(client)).keys() == before


def test_a_scrape_under_load_is_whole_and_never_goes_back(client: httpx.Client) -> None:
    over, tensors, statuses = threading.Event(), draw_tokens(3), list[int]()

    def ask() -> None:
        while not over.is_set():
            statuses.append(DOORS["v2-binary"](client, tensors).status_code)

    workers = [threading.Thread(target=ask) for _ in range(4)]
    for worker in workers:
        worker.start()
    try:
        scrapes = [list_samples(read(client)) for _ in range(30)]
    finally:
        over.set()
        for worker in workers:
            worker.join()
    assert set(statuses) == {200}
    gauges = {name_sample("pending_request_count")}
    gauges |= {name for name in scrapes[0] if name.startswith("limelight_held_bytes")}
    for earlier, later in pairwise(scrapes):
        assert earlier.keys() <= later.keys()
        assert all(later[name] >= earlier[name] for name in earlier if name not in gauges)
    moved = {name: scrapes[-1][name_sample(name)] - scrapes[0][name_sample(name)] for name in
             ("request_success", "count", "exec_count")}  # fmt: skip
    assert moved["count"] == 3 * moved["request_success"]
    assert moved["exec_count"] > 0


def test_the_metrics_can_be_asked_for_without_being_sent(client: httpx.Client) -> None:
    response = client.head("/metrics")
    assert (response.status_code, response.content) == (200, b"")


@ours
def test_a_model_that_is_unloaded_leaves_no_series_even_under_load() -> None:
    over, tensors = threading.Event(), draw_tokens(3)
    with (
        start_server(LIMELIGHT_MODEL_CONTROL="explicit") as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):

        def ask() -> None:
            while not over.is_set():
                assert DOORS["v2-binary"](client, tensors).status_code in {200, 404}

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                for _ in range(20):
                    assert client.post("/v2/repository/models/demo/unload").status_code == 200
                    assert client.post("/v2/repository/models/demo/load").status_code == 200
                assert client.post("/v2/repository/models/demo/unload").status_code == 200
            finally:
                over.set()
            for each in asking:
                each.result()
        assert '"demo"' not in read(client)
        assert client.get("/v2/models/stats").json() == {"model_stats": []}
        assert client.post("/v2/repository/models/demo/load").status_code == 200
        samples = list_samples(read(client))
        assert samples[name_sample("request_success")] == 0
        assert DOORS["v2-json"](client, tensors).status_code == 200
        # Loaded again while it serves, it goes on counting.
        assert client.post("/v2/repository/models/demo/load").status_code == 200
        assert list_samples(read(client))[name_sample("request_success")] == 1
