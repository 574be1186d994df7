"""One version of a model: which graph answers, what goes into it, and what comes out."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from model.contract import (
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_WEIGHTS,
    GRAPHS,
    AttentionSpec,
    GraphSpec,
)
from model.reference import attend
from model.weights import Weights
from service.engine.masks import Hiding
from service.engine.model import Model, choose_graph, find_key_lengths
from service.engine.session import Provider
from service.engine.signature import Prepared
from service.engine.sizes import Limits
from service.inference import Inference, WeightsForm

B, L, S, D, H = 4, 5, 7, 6, 3
PREFIXES = np.arange(S) < np.array([7, 1, 4, 6])[:, None]


class StandIn:
    """A session that notes what it was asked for, and answers zeros of the right shapes."""

    def __init__(self, graph: GraphSpec, number: float = 0) -> None:
        self.feeds: list[dict[str, NDArray[Any]]] = []
        self._graph = graph
        self._number = number

    def run(self, names: list[str], feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        assert names == list(self._graph.outputs)
        assert tuple(feeds) == self._graph.inputs
        self.feeds.append(feeds)
        batch, length, width = feeds["query"].shape
        shapes = {
            "output": (batch, length, width),
            "attention_weights": (batch, H, length, feeds["key"].shape[1]),
        }
        return [np.full(shapes[name], self._number, np.float32) for name in names]

    def get_providers(self) -> list[str]:
        return ["CUDAExecutionProvider"]


class Opener:
    """Opens stand-ins, and knows which files were opened."""

    def __init__(self, number: float = 0) -> None:
        self.opened: list[str] = []
        self.sessions: dict[str, StandIn] = {}
        self._number = number

    def __call__(self, path: Path) -> StandIn:
        graph = next(graph for graph in GRAPHS if graph.file == path.name)
        self.opened.append(str(path))
        self.sessions[graph.name] = StandIn(graph, self._number)
        return self.sessions[graph.name]


def make_model(provider: Provider, opener: Callable[[Path], Any]) -> Model:
    spec, limits = AttentionSpec(D, H), Limits(256, 2**20, 2**30, 2**30)
    return Model(Path("/models/layer/3"), spec, provider, opener, limits)


def prepare(hiding: Hiding | None = None, weights: WeightsForm = "none") -> Prepared:
    generator = np.random.default_rng(6)
    query, key, value = (
        generator.standard_normal((B, length, D)).astype(np.float32) for length in (L, S, S)
    )
    return Prepared(query, key, value, hiding or Hiding(), weights)


@pytest.mark.parametrize(
    ("provider", "weights", "graph"),
    [
        ("cpu", "none", FUSED_BIAS),
        ("cpu", "per_head", FUSED_WEIGHTS),
        ("cpu", "mean", FUSED_WEIGHTS),
        ("cuda", "none", FUSED),
        ("cuda", "per_head", DECOMPOSED),
        ("cuda", "mean", DECOMPOSED),
    ],
)
def test_the_graph_depends_on_the_provider_and_the_weights(
    provider: Provider, weights: WeightsForm, graph: GraphSpec
) -> None:
    prepared = prepare(weights=weights)
    assert choose_graph(provider, prepared, find_key_lengths(prepared)) is graph


HIDINGS = {
    "a mask": Hiding(mask=np.ones((1, 1, L, S), bool)),
    "a bias": Hiding(bias=np.zeros((1, 1, L, S), np.float32)),
    "causal": Hiding(causal="top_left"),
    "keys that are no prefix": Hiding(key_mask=~PREFIXES | np.eye(B, S, dtype=bool)),
    "an item without keys": Hiding(key_mask=PREFIXES & (np.arange(B) != 2)[:, None]),
    "a prefix beside a mask": Hiding(mask=np.ones((1, 1, 1, S), bool), key_mask=PREFIXES),
}


@pytest.mark.parametrize("hiding", HIDINGS.values(), ids=HIDINGS)
def test_on_cuda_key_lengths_answer_nothing_else_that_hides(hiding: Hiding) -> None:
    assert find_key_lengths(prepare(hiding)) is None
    assert choose_graph("cuda", prepare(hiding), None) is FUSED_BIAS


def test_a_prefix_of_real_keys_becomes_key_lengths() -> None:
    prepared = prepare(Hiding(key_mask=PREFIXES))
    lengths = find_key_lengths(prepared)
    assert lengths is not None
    assert lengths.dtype == np.int64
    assert lengths.tolist() == [7, 1, 4, 6]
    assert choose_graph("cuda", prepared, lengths) is FUSED
    assert choose_graph("cpu", prepared, lengths) is FUSED_BIAS


def test_without_hiding_all_keys_count() -> None:
    lengths = find_key_lengths(prepare())
    assert lengths is not None
    assert lengths.tolist() == [S] * B


def test_on_cuda_the_graph_of_key_lengths_gets_them_and_no_bias() -> None:
    opener = Opener()
    computed = make_model("cuda", opener).run(prepare(Hiding(key_mask=PREFIXES)))
    (feeds,) = opener.sessions["fused"].feeds
    assert feeds["key_lengths"].tolist() == [7, 1, 4, 6]
    assert computed.graph == "fused"
    assert computed.tensors.keys() == {"output"}


@pytest.mark.parametrize("weights", ["per_head", "mean"])
def test_on_cuda_the_decomposed_graph_answers_with_weights(weights: WeightsForm) -> None:
    opener = Opener()
    computed = make_model("cuda", opener).run(prepare(Hiding(causal="top_left"), weights))
    assert computed.graph == "model"
    assert opener.sessions["model"].feeds[0]["bias"].shape == (1, 1, L, S)
    wanted = (B, H, L, S) if weights == "per_head" else (B, L, S)
    assert computed.tensors["attention_weights"].shape == wanted


def test_a_model_is_named_by_its_directories() -> None:
    model = make_model("cpu", Opener())
    assert (model.name, model.version, model.provider) == ("layer", "3", "cpu")


def test_a_graph_is_opened_when_it_is_first_needed_and_once() -> None:
    opener = Opener()
    model = make_model("cpu", opener)
    assert opener.opened == []
    for weights in ("none", "per_head", "none", "mean"):
        model.run(prepare(weights=weights))
    assert opener.opened == [
        "/models/layer/3/fused_bias.onnx",
        "/models/layer/3/fused_weights.onnx",
    ]


def test_threads_that_need_a_graph_at_the_same_time_share_one_session() -> None:
    opened, together = [], threading.Barrier(2)

    def open_slowly(path: Path) -> StandIn:
        opened.append(path)
        return StandIn(FUSED_BIAS)

    model, sessions = make_model("cpu", open_slowly), []

    def ask() -> None:
        together.wait(timeout=10)
        sessions.append(model.open(FUSED_BIAS))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(opened) == 1
    assert sessions[0] is sessions[1]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_model_whose_first_answer_is_not_finite_is_not_ready(number: float) -> None:
    with pytest.raises(RuntimeError, match=r"^model 'layer' gave \(1, 2, 6\) at warm-up$"):
        make_model("cpu", Opener(number)).warm_up()


def test_a_warm_up_computes_one_answer() -> None:
    opener = Opener()
    make_model("cpu", opener).warm_up()
    (feeds,) = opener.sessions["fused_bias"].feeds
    assert (feeds["query"].shape, feeds["key"].shape) == ((1, 2, D), (1, 3, D))


@pytest.mark.parametrize("weights_form", ["none", "per_head", "mean"])
def test_the_demo_answers_as_the_formula_says(
    demo: Model, weights: Weights, tokens: dict[str, Any], weights_form: WeightsForm
) -> None:
    generator = np.random.default_rng(8)
    hiding = {
        "mask": generator.random((B, 1, L, S)) < 0.7,
        "key_mask": generator.random((B, S)) < 0.7,
        "bias": generator.standard_normal((1, H, 1, S)).astype(np.float32),
    }
    asked = Inference(tokens | hiding, "bottom_right", weights_form)
    computed = demo.run(demo.check(asked))
    output, attention = attend(
        weights, tokens["query"], tokens["key"], tokens["value"],
        mask=hiding["mask"], key_mask=hiding["key_mask"], bias=hiding["bias"],
        causal="bottom_right",
    )  # fmt: skip
    np.testing.assert_allclose(computed.tensors["output"], output, atol=1e-6)
    assert computed.graph == ("fused_bias" if weights_form == "none" else "fused_weights")
    if weights_form == "none":
        assert computed.tensors.keys() == {"output"}
    else:
        wanted = attention if weights_form == "per_head" else attention.mean(axis=1)
        np.testing.assert_allclose(computed.tensors["attention_weights"], wanted, atol=1e-6)
