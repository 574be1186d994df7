"""The statistics extension on a server of its own, so that every number is known."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from tests.integration.demo import B, H, L, S, draw_mask, draw_tokens
from tests.integration.doors import DOORS
from tests.integration.server_process import start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="others may ask a deployed server"
)
ALL: Final = "/v2/models/stats"
MODEL: Final = "/v2/models/demo/stats"
VERSION: Final = "/v2/models/demo/versions/1/stats"
PER_ANSWER: Final = ("success", "queue", "compute_input", "compute_infer", "compute_output")
WORKERS: Final = 8
# tritonclient carries the messages; its package of them asks for grpcio, which is not needed here.
READ_AS_PROTOBUF: Final = """
import json, sys, types
from importlib.util import find_spec
from pathlib import Path
package = types.ModuleType("tritonclient.grpc")
package.__path__ = [str(Path(find_spec("tritonclient").submodule_search_locations[0]) / "grpc")]
sys.modules["tritonclient.grpc"] = package
from google.protobuf.json_format import MessageToDict, ParseDict
from tritonclient.grpc import service_pb2
message = ParseDict(json.load(sys.stdin), service_pb2.ModelStatisticsResponse())
options = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
json.dump(MessageToDict(message, **options), sys.stdout)
"""


@pytest.fixture(name="fresh")
def start_fresh() -> Iterator[httpx.Client]:
    """A client of a server that nobody has asked anything."""
    with start_server() as server, httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def read(client: httpx.Client, path: str = ALL) -> dict[str, Any]:
    """The statistics of the only model."""
    response = client.get(path)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    (stats,) = response.json()["model_stats"]
    return dict(stats)


def list_numbers(value: Any) -> Iterator[Any]:
    """Every leaf that is not a text."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from list_numbers(each)
    elif not isinstance(value, str):
        yield value


def check_sums(stats: dict[str, Any]) -> None:
    """What agrees within the statistics whenever no request is under way."""
    requests, runs = stats["inference_stats"], stats["batch_stats"]
    assert all(type(number) is int and number >= 0 for number in list_numbers(stats))
    assert {requests[name]["count"] for name in PER_ANSWER} == {requests["success"]["count"]}
    assert sum(requests[name]["ns"] for name in PER_ANSWER[1:]) <= requests["success"]["ns"]
    assert [run["batch_size"] for run in runs] == sorted({run["batch_size"] for run in runs})
    assert sum(run["compute_infer"]["count"] for run in runs) == stats["execution_count"]
    rows = sum(run["batch_size"] * run["compute_infer"]["count"] for run in runs)
    assert rows == stats["inference_count"]
    assert requests["cache_hit"] == requests["cache_miss"] == {"count": 0, "ns": 0}
    assert (stats["response_stats"], stats["memory_usage"]) == ({}, [])


def test_answers_of_every_door_move_the_counts(fresh: httpx.Client) -> None:
    assert set(list_numbers(read(fresh))) == {0}
    before_ms = time.time_ns() // 1_000_000
    asked = {"v2-json": 1, "v2-binary": 3, "v1-json": 2, "v1-npz": 3, "v1-safetensors": 5}
    for door, rows in asked.items():
        assert DOORS[door](fresh, draw_tokens(rows)).status_code == 200
    after_ms = time.time_ns() // 1_000_000
    stats = read(fresh)
    check_sums(stats)
    assert (stats["name"], stats["version"]) == ("demo", "1")
    assert (stats["inference_count"], stats["execution_count"]) == (14, 5)
    assert stats["inference_stats"]["success"]["count"] == 5
    assert stats["inference_stats"]["fail"] == {"count": 0, "ns": 0}
    assert all(stats["inference_stats"][name]["ns"] > 0 for name in PER_ANSWER)
    assert before_ms <= stats["last_inference"] <= after_ms
    runs = {run["batch_size"]: run["compute_infer"]["count"] for run in stats["batch_stats"]}
    assert runs == {1: 1, 2: 1, 3: 2, 5: 1}
    assert read(fresh, MODEL) == read(fresh, VERSION) == stats


def test_what_failed_counts_as_nothing_else(fresh: httpx.Client) -> None:
    unfit = draw_tokens() | {"mask": draw_mask(B * H, L, S)}
    for number, door in enumerate(DOORS, start=1):
        assert DOORS[door](fresh, unfit).status_code == 400
        stats = read(fresh)
        assert stats["inference_stats"].pop("fail")["count"] == number
        assert set(list_numbers(stats)) == {0}
    fail = read(fresh)["inference_stats"]["fail"]
    assert fail["ns"] > 0
    # No model is charged with what was asked of another one, or of none.
    assert fresh.post("/v2/models/other/infer", content=b"{}").status_code == 404
    assert fresh.post("/v1/attention", content=b"{").status_code == 400
    assert fresh.post("/v1/attention", json={"query": [[0]], "model": "x"}).status_code == 404
    assert read(fresh)["inference_stats"]["fail"] == fail


def test_an_answer_that_json_cannot_hold_is_a_run_and_a_failure(fresh: httpx.Client) -> None:
    tensors = draw_tokens()
    tensors["query"][0, 0, 0] = float("nan")
    assert 400 <= DOORS["v2-json"](fresh, tensors).status_code < 500
    stats = read(fresh)
    assert (stats["execution_count"], stats["inference_count"]) == (1, 0)
    counts = {name: stats["inference_stats"][name]["count"] for name in ("success", "fail")}
    assert counts == {"success": 0, "fail": 1}


def test_requests_at_the_same_time_are_all_counted(fresh: httpx.Client) -> None:
    rows = [1 + number % 3 for number in range(60)]
    tensors = {number: draw_tokens(number) for number in set(rows)}

    def ask(number: int) -> int:
        return DOORS["v2-binary"](fresh, tensors[number]).status_code

    with ThreadPoolExecutor(WORKERS) as pool:
        assert set(pool.map(ask, rows)) == {200}
    stats = read(fresh)
    check_sums(stats)
    assert stats["inference_count"] == sum(rows)
    assert stats["inference_stats"]["success"]["count"] == len(rows)
    assert 1 <= stats["execution_count"] <= len(rows)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v2/models/other/stats", "model 'other' is not served here; served: demo"),
        ("/v2/models/other/versions/1/stats", "model 'other' is not served here; served: demo"),
        ("/v2/models/demo/versions/2/stats", "model 'demo' has no version '2', expected one of 1"),
    ],
)
def test_what_is_not_served_is_404_with_what_there_is(
    client: httpx.Client, path: str, text: str
) -> None:
    response = client.get(path)
    assert (response.status_code, response.json()) == (404, {"error": text})


@pytest.mark.clients
def test_the_answer_is_the_protobuf_message_of_triton(fresh: httpx.Client) -> None:
    DOORS["v2-binary"](fresh, draw_tokens(3))
    answer = fresh.get(ALL).json()
    # It refuses members that it does not know, and numbers of other types.
    (stats,) = read_as_protobuf(answer)["model_stats"]
    assert stats["version"] == "1"
    assert (stats["inference_count"], stats["execution_count"]) == ("3", "1")
    assert stats["inference_stats"]["success"]["count"] == "1"
    assert stats["batch_stats"][0]["compute_infer"]["count"] == "1"
    assert stats.keys() == answer["model_stats"][0].keys()


def read_as_protobuf(answer: dict[str, Any]) -> Any:
    """The answer read into Triton's message and written again, by an interpreter of its own.

    KServe's messages have the same names, and one process cannot hold both.
    """
    command = [sys.executable, "-c", READ_AS_PROTOBUF]
    text = json.dumps(answer).encode()
    done = subprocess.run(command, input=text, check=True, capture_output=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.clients
def test_tritonclient_reads_the_statistics(fresh: httpx.Client) -> None:
    from tritonclient.http import InferenceServerClient

    DOORS["v2-json"](fresh, draw_tokens(3))
    wanted = fresh.get(ALL).json()
    client = InferenceServerClient(str(fresh.base_url).removeprefix("http://"))
    try:
        assert client.get_inference_statistics() == wanted
        assert client.get_inference_statistics("demo") == wanted
        assert client.get_inference_statistics("demo", "1") == wanted
    finally:
        client.close()


def test_the_time_of_a_request_is_within_that_of_the_client(fresh: httpx.Client) -> None:
    started_ns = time.perf_counter_ns()
    assert DOORS["v2-binary"](fresh, draw_tokens()).status_code == 200
    elapsed_ns = time.perf_counter_ns() - started_ns
    assert 0 < read(fresh)["inference_stats"]["success"]["ns"] < elapsed_ns
