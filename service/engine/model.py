"""One version of a model: its graphs, opened when they are first needed, and how to run them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import (
    BIAS,
    DECOMPOSED,
    FUSED,
    FUSED_BIAS,
    FUSED_WEIGHTS,
    KEY,
    KEY_LENGTHS,
    OUTPUT,
    QUERY,
    VALUE,
    WEIGHTS,
    AttentionSpec,
    GraphSpec,
)
from service.engine.masks import Hiding, add_hiding, clear_tokens, find_unseen, find_visible
from service.engine.session import Provider, Session
from service.engine.signature import Prepared, check_request
from service.engine.sizes import Limits
from service.inference import Inference

OpenGraph = Callable[[Path], Session]


@dataclass(frozen=True, slots=True)
class Computed:
    """What one run gave: tensors by the contract's names, and the graph that ran."""

    tensors: dict[str, NDArray[Any]]
    graph: str


class Model:
    """One version of a model.

    Attributes:
        name: of the model.
        version: the number of its directory, as text.
        spec: its sizes.
        provider: where it computes.
    """

    def __init__(
        self,
        directory: Path,
        spec: AttentionSpec,
        provider: Provider,
        open_graph: OpenGraph,
        limits: Limits,
    ) -> None:
        self.name = directory.parent.name
        self.version = directory.name
        self.spec = spec
        self.provider = provider
        self.limits = limits
        self._directory = directory
        self._open_graph = open_graph
        self._sessions: dict[str, Session] = {}
        self._opening = threading.Lock()

    def check(self, request: Inference) -> Prepared:
        """Accept or refuse the tensors of a request.

        Raises:
            InvalidRequestError: naming the tensor, what came and what was expected.
            RequestTooLargeError: if a bound is passed, naming the setting.
        """
        return check_request(self.spec, self.limits, request)

    def run(self, prepared: Prepared) -> Computed:
        """Compute the answer to one checked request; blocks the calling thread."""
        key_lengths = find_key_lengths(prepared)
        graph = choose_graph(self.provider, prepared, key_lengths)
        feeds = build_feeds(graph, prepared, key_lengths)
        results = self.open(graph).run(list(graph.outputs), feeds)
        tensors = dict(zip(graph.outputs, results, strict=True))
        if prepared.weights == "mean":
            tensors[WEIGHTS] = tensors[WEIGHTS].mean(axis=1)
        return Computed(tensors, graph.name)

    def open(self, graph: GraphSpec) -> Session:
        """The session of a graph; each holds its own copy of the weights, so only when needed."""
        session = self._sessions.get(graph.name)
        if session is None:
            with self._opening:
                session = self._sessions.get(graph.name)
                if session is None:
                    session = self._open_graph(self._directory / graph.file)
                    self._sessions[graph.name] = session
        return session

    def warm_up(self) -> None:
        """Compute one real answer, so that ready means able.

        Raises:
            RuntimeError: if the answer is not finite or has another shape.
        """
        batch_size, query_length, key_length = 1, 2, 3
        prepared = Prepared(
            query=np.ones((batch_size, query_length, self.spec.d_model), np.float32),
            key=np.ones((batch_size, key_length, self.spec.kdim), np.float32),
            value=np.ones((batch_size, key_length, self.spec.vdim), np.float32),
            hiding=Hiding(),
            weights="none",
        )
        output = self.run(prepared).tensors[OUTPUT]
        expected = (batch_size, query_length, self.spec.d_model)
        if output.shape != expected or not np.isfinite(output).all():
            raise RuntimeError(f"model '{self.name}' gave {output.shape} at warm-up")


def choose_graph(
    provider: Provider, prepared: Prepared, key_lengths: NDArray[np.int64] | None
) -> GraphSpec:
    """The graph that answers a request on a provider.

    On the CPU the Attention operator answers with and without weights: the decomposed graph's
    bits depend on the batch and on the number of threads there. On CUDA the operator cannot
    return weights, and its flash kernel takes key lengths but no bias.
    """
    if prepared.weights != "none":
        return FUSED_WEIGHTS if provider == "cpu" else DECOMPOSED
    if provider == "cuda" and key_lengths is not None:
        return FUSED
    return FUSED_BIAS


def find_key_lengths(prepared: Prepared) -> NDArray[np.int64] | None:
    """int64 ``[B]``, if a non-empty run of real keys first is all that hides or biases."""
    hiding, batch_size = prepared.hiding, prepared.query.shape[0]
    if hiding.mask is not None or hiding.bias is not None or hiding.causal:
        return None
    if hiding.key_mask is None:
        return np.full(batch_size, prepared.key.shape[1], np.int64)
    lengths = hiding.key_mask.sum(axis=1, dtype=np.int64)
    is_prefix = (hiding.key_mask == (np.arange(prepared.key.shape[1]) < lengths[:, None])).all()
    return lengths if is_prefix and lengths.all() else None


def build_feeds(
    graph: GraphSpec, prepared: Prepared, key_lengths: NDArray[np.int64] | None
) -> dict[str, NDArray[Any]]:
    """The inputs of `graph` by name."""
    query_length, key_length = prepared.query.shape[1], prepared.key.shape[1]
    visible = find_visible(prepared.hiding, query_length, key_length)
    unseen = None if visible is None else find_unseen(visible)
    feeds: dict[str, NDArray[Any]] = {
        QUERY: prepared.query,
        KEY: clear_tokens(prepared.key, unseen),
        VALUE: clear_tokens(prepared.value, unseen),
    }
    if graph is FUSED and key_lengths is not None:
        return feeds | {KEY_LENGTHS: key_lengths}
    return feeds | {BIAS: add_hiding(prepared.hiding.bias, visible, query_length, key_length)}
