"""The graphs of one version: opened once, run for one request or several, and timed."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.contract import FUSED_BIAS
from service.engine.abandoned import AbandonedError
from service.engine.masks import Hiding
from service.engine.runner import Runner
from service.engine.session import Provider
from service.engine.slices import Slices
from service.inference import WeightsForm
from tests.service.engine.stand_ins import PREFIXES, B, H, L, Opener, S, StandIn, prepare

DIRECTORY = Path("/models/layer/3")


def test_on_cuda_the_graph_of_key_lengths_answers_without_weights() -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cuda", opener)
    (computed,) = runner.run([prepare(Hiding(key_mask=PREFIXES))])
    (feeds,) = opener.sessions["fused"].feeds
    assert feeds["key_lengths"].tolist() == [7, 1, 4, 6]
    assert computed.graph == "fused"
    assert computed.tensors.keys() == {"output"}


@pytest.mark.parametrize("weights", ["per_head", "mean"])
def test_on_cuda_the_decomposed_graph_answers_with_weights(weights: WeightsForm) -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cuda", opener)
    (computed,) = runner.run([prepare(Hiding(causal="top_left"), weights)])
    assert computed.graph == "model"
    assert opener.sessions["model"].feeds[0]["bias"].shape == (1, 1, L, 8), "keys come by eights"
    wanted = (B, H, L, S) if weights == "per_head" else (B, L, S)
    assert computed.tensors["attention_weights"].shape == wanted


def test_a_graph_is_opened_when_it_is_first_needed_and_once() -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cpu", opener)
    assert opener.opened == []
    for weights in ("none", "per_head", "none", "mean"):
        runner.run([prepare(weights=weights)])
    assert opener.opened == ["fused_bias.onnx", "fused_weights.onnx"]


@pytest.mark.parametrize(
    ("provider", "files"),
    [
        ("cpu", ["fused_bias.onnx", "fused_weights.onnx"]),
        ("cuda", ["fused.onnx", "fused_causal.onnx", "fused_bias.onnx", "model.onnx"]),
    ],
)
def test_all_graphs_of_the_provider_can_be_opened_before_they_are_needed(
    provider: Provider, files: list[str]
) -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, provider, opener)
    runner.open_all()
    runner.open_all()
    assert opener.opened == files


def test_threads_that_need_a_graph_at_the_same_time_share_one_session() -> None:
    opened, together = [], threading.Barrier(2)

    def open_slowly(path: Path) -> StandIn:
        opened.append(path)
        return StandIn(FUSED_BIAS)

    runner, sessions = Runner(DIRECTORY, "cpu", open_slowly), []

    def ask() -> None:
        together.wait(timeout=10)
        sessions.append(runner.open(FUSED_BIAS))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert opened == [DIRECTORY / "fused_bias.onnx"]
    assert sessions[0] is sessions[1]


def test_requests_are_joined_in_one_run_and_each_gets_its_rows() -> None:
    opener = Opener()
    requests = [prepare(rows=rows, weights="mean") for rows in (2, 1, 3)]
    found = Runner(DIRECTORY, "cpu", opener).run(requests)
    (feeds,) = opener.sessions["fused_weights"].feeds
    assert feeds["query"].shape[0] == 6
    for name in ("output", "attention_weights"):
        rows = [each.tensors[name].reshape(len(each.tensors[name]), -1)[:, 0] for each in found]
        assert [each.tolist() for each in rows] == [[0, 1], [2], [3, 4, 5]]
    assert [each.tensors["attention_weights"].shape for each in found] == [
        (2, L, S), (1, L, S), (3, L, S),
    ]  # fmt: skip


def test_a_run_counts_its_rows_once() -> None:
    runner = Runner(DIRECTORY, "cpu", Opener())
    found = runner.run([prepare(rows=rows) for rows in (2, 1, 3)])
    assert [each.executed_rows for each in found] == [6, 0, 0]
    assert runner.run([prepare()])[0].executed_rows == B


class Slow(StandIn):
    """A session that takes its time."""

    def run(self, names: list[str], feeds: dict[str, Any], _: Any = None) -> list[Any]:
        time.sleep(0.02)
        return super().run(names, feeds)


def test_the_time_in_the_session_is_told_from_the_time_around_it() -> None:
    def open_slowly(path: Path) -> StandIn:
        time.sleep(0.03)
        return Slow(FUSED_BIAS)

    runner = Runner(DIRECTORY, "cpu", open_slowly)
    first, second = runner.run([prepare(rows=1), prepare(rows=2)])
    assert first.times == second.times
    assert first.times.queue_ns == 0
    assert first.times.input_ns >= 30_000_000
    assert first.times.infer_ns >= 20_000_000
    assert 0 < first.times.output_ns < 20_000_000


def test_on_cuda_requests_of_unlike_graphs_are_not_joined() -> None:
    """A key mask that is no prefix would take the others' graph from them."""
    runner = Runner(DIRECTORY, "cuda", Opener())
    prefix = prepare(Hiding(key_mask=PREFIXES))
    scattered = prepare(Hiding(key_mask=~PREFIXES | np.eye(B, S, dtype=bool)))
    blind = prepare(Hiding(key_mask=np.zeros((B, S), bool)))
    assert runner.join_key(prefix) != runner.join_key(scattered)
    assert runner.join_key(scattered) == runner.join_key(blind)


def test_on_the_cpu_the_key_mask_decides_no_graph() -> None:
    runner = Runner(DIRECTORY, "cpu", Opener())
    scattered = prepare(Hiding(key_mask=~PREFIXES))
    assert runner.join_key(prepare(Hiding(key_mask=PREFIXES))) == runner.join_key(scattered)


def test_joined_prefixes_keep_the_graph_of_key_lengths() -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cuda", opener)
    requests = [prepare(Hiding(key_mask=PREFIXES[:n]), rows=n) for n in (1, 3)]
    found = runner.run(requests)
    assert [each.graph for each in found] == ["fused", "fused"]
    assert opener.sessions["fused"].feeds[0]["key_lengths"].tolist() == [7, 7, 1, 4]


def test_a_long_request_is_run_slice_by_slice_and_alone() -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cpu", opener)
    long = replace(prepare(), slices=Slices(B, L, 2, 2))
    (computed,) = runner.run([long])
    shapes = [feeds["bias"].shape for feeds in opener.sessions["fused_bias"].feeds]
    assert shapes == [(1, 1, 2, S), (1, 1, 3, S)] * 2
    # Each run answers with the numbers of its rows.
    assert computed.tensors["output"][:, 0, 0].tolist() == [0, 1, 0, 1]
    assert computed.tensors["output"].shape == long.query.shape
    assert (computed.graph, computed.executed_rows) == ("fused_bias", B)
    assert computed.times.infer_ns > 0
    assert runner.join_key(long) is None


def test_what_ends_the_waiting_ends_the_run_before_its_next_slice() -> None:
    opener, asked = Opener(), list[int]()
    long = replace(prepare(Hiding(causal="top_left")), slices=Slices(B, L, 1, 5))

    def check_wanted() -> None:
        asked.append(1)
        if opener.sessions and len(opener.sessions["fused_bias"].feeds) == 2:
            raise AbandonedError

    with pytest.raises(AbandonedError):
        Runner(DIRECTORY, "cpu", opener).run([long], check_wanted)
    assert len(opener.sessions["fused_bias"].feeds) == 2
    assert len(asked) == 5 + 3  # before each slice: for keys that nobody sees, and to compute


@pytest.mark.parametrize(("provider", "count"), [("cpu", 1), ("cuda", 0)])
def test_sessions_that_are_open_give_back_what_they_keep(provider: Provider, count: int) -> None:
    options: list[Any] = []

    class Keeping(StandIn):
        def run(self, names: list[str], feeds: dict[str, Any], run_options: Any = None) -> Any:
            options.append(run_options)
            return super().run(names, feeds)

    runner = Runner(DIRECTORY, provider, lambda _: Keeping(FUSED_BIAS))
    runner.open(FUSED_BIAS)
    runner.give_back(prepare(), "shrinking")
    assert options == ["shrinking"] * count


def test_a_run_that_is_alone_has_the_wide_session_and_others_the_narrow_one() -> None:
    narrow, wide = Opener(number=1), Opener(number=2)
    runner = Runner(DIRECTORY, "cpu", narrow, wide)
    (beside,), (alone,) = runner.run([prepare()]), runner.run_alone([prepare()])
    assert (beside.tensors["output"] == 1).all()
    assert (alone.tensors["output"] == 2).all()
    assert narrow.opened == wide.opened == ["fused_bias.onnx"]


def test_without_a_wide_session_all_runs_share_one() -> None:
    opener = Opener()
    runner = Runner(DIRECTORY, "cpu", opener)
    runner.run([prepare()])
    runner.run_alone([prepare()])
    assert len(runner.run_in_each_width(prepare())) == 1
    assert opener.opened == ["fused_bias.onnx"]
    assert len(opener.sessions["fused_bias"].feeds) == 3


def test_a_long_request_that_is_alone_is_wide_in_every_slice() -> None:
    narrow, wide = Opener(), Opener()
    long = replace(prepare(), slices=Slices(B, L, 2, 2))
    Runner(DIRECTORY, "cpu", narrow, wide).run_alone([long])
    assert narrow.opened == []
    assert len(wide.sessions["fused_bias"].feeds) == 4


def test_both_widths_are_opened_warmed_up_and_give_back() -> None:
    narrow, wide = Opener(number=1), Opener(number=2)
    runner = Runner(DIRECTORY, "cpu", narrow, wide)
    runner.open_all()
    assert narrow.opened == wide.opened == ["fused_bias.onnx", "fused_weights.onnx"]
    found = [each.tensors["output"][0, 0, 0] for each in runner.run_in_each_width(prepare())]
    assert found == [1, 2]
    runner.give_back(prepare(), "shrinking")
    for opener in (narrow, wide):
        assert [len(each.feeds) for each in opener.sessions.values()] == [2, 1]


def test_a_graph_is_open_for_those_alone_once_the_widest_session_is() -> None:
    runner = Runner(DIRECTORY, "cpu", Opener(), Opener())
    runner.run([prepare(weights="mean")])
    assert not runner.is_open(prepare(weights="mean"))
    runner.run_alone([prepare(weights="mean")])
    assert runner.is_open(prepare(weights="per_head"))
    assert not runner.is_open(prepare())
