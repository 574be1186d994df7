"""The graphs of one version, opened when they are first needed, and how to run them."""

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.contract import FUSED, FUSED_BIAS, FUSED_CAUSAL, OUTPUT, QUERY, GraphSpec
from service.engine.feeds import (
    PROVIDER_GRAPHS,
    build_feeds,
    build_feeds_apart,
    choose_graph,
    find_key_lengths,
)
from service.engine.joining import join, join_key, split
from service.engine.lane import go_on
from service.engine.native import Native
from service.engine.padding import Feeds, cut_apart, join_feeds, pad_key
from service.engine.session import Provider, Session, Width
from service.engine.signature import Prepared
from service.engine.slices import Slices
from service.engine.weights import reduce_weights
from service.inference import Times

OpenGraph = Callable[[Path], Session]


@dataclass(frozen=True, slots=True)
class Computed:
    """What a run gave for one request.

    Attributes:
        tensors: by the contract's names.
        graph: name of the graph that ran.
        times: of the whole run, without the queue.
        executed_rows: B of the run, for the first of the requests that were joined in it; 0 for
            the others.
    """

    tensors: dict[str, NDArray[Any]]
    graph: str
    times: Times
    executed_rows: int


class Runner:
    """Runs the graphs of one version.

    Not a part of `Model`: a model and the lane that calls back into it would be a circle, and the
    weights of a version that was unloaded would stay until the garbage collector runs.

    Args:
        directory: of the version.
        provider: where its graphs run.
        open_graph: opens a file of it.
        open_wide: opens one for runs with all cores; there are none unless given.
        has_kernel: whether CUDA has a kernel for the layer that never holds the scores.
    """

    def __init__(
        self,
        directory: Path,
        provider: Provider,
        open_graph: OpenGraph,
        open_wide: OpenGraph | None = None,
        *,
        has_kernel: bool = True,
    ) -> None:
        self._has_kernel = has_kernel
        self._directory = directory
        self._provider: Provider = provider
        self._open_graph: dict[Width, OpenGraph] = {"narrow": open_graph}
        if open_wide is not None:
            self._open_graph["wide"] = open_wide
        self._sessions: dict[tuple[str, Width], Session] = {}
        self._opening = threading.Lock()

    def open(self, graph: GraphSpec, width: Width = "narrow") -> Session:
        """The session of a graph; each holds its own copy of the weights, so only when needed."""
        session = self._sessions.get((graph.name, width))
        if session is None:
            with self._opening:
                session = self._sessions.get((graph.name, width))
                if session is None:
                    session = self._open_graph[width](self._directory / graph.file)
                    self._sessions[graph.name, width] = session
        return session

    def open_all(self) -> None:
        """Open every graph that the provider may use; the files may vanish then."""
        for graph in PROVIDER_GRAPHS[self._provider]:
            for width in self._open_graph:
                self.open(graph, width)

    def is_open(self, prepared: Prepared) -> bool:
        """Whether a run of this request alone would not have to open its graph first."""
        graph, _ = self._choose(prepared)
        return (graph.name, [*self._open_graph][-1]) in self._sessions

    def give_back(self, probe: Prepared, shrinking: Native) -> None:
        """Give back the memory that sessions keep for their next run; on the CPU alone.

        Args:
            probe: a request that costs next to nothing.
            shrinking: options of a run that does so.
        """
        if self._provider != "cpu":
            return
        for graph in PROVIDER_GRAPHS[self._provider]:
            feeds = build_feeds(graph, probe, None)
            for width in self._open_graph:
                session = self._sessions.get((graph.name, width))
                if session is not None:
                    session.run(list(graph.outputs), feeds, shrinking)

    def join_key(self, prepared: Prepared) -> Hashable | None:
        """Requests with equal keys may be joined: none gets another graph than it has alone.

        One that is computed in slices has none: it is large enough alone.
        """
        if prepared.slices is not None:
            return None
        graph, _ = self._choose(prepared)
        if self._provider == "cuda":
            return pad_key(graph, prepared)
        return graph.name, join_key(prepared)

    def run_in_each_width(self, prepared: Prepared) -> list[Computed]:
        """The answer to one request, beside other runs and alone."""
        return [self.run([prepared], width=width)[0] for width in self._open_graph]

    def run_alone(
        self, requests: Sequence[Prepared], check_wanted: Callable[[], None] = go_on
    ) -> list[Computed]:
        """The same as `run` while nothing else computes: with all cores."""
        return self.run(requests, check_wanted, [*self._open_graph][-1])

    def run(
        self,
        requests: Sequence[Prepared],
        check_wanted: Callable[[], None] = go_on,
        width: Width = "narrow",
    ) -> list[Computed]:
        """Compute the answers to checked requests in one run; blocks the calling thread.

        Args:
            requests: with equal `join_key`.
            check_wanted: is called between the slices of a request; what it raises ends the run.
            width: of the run; the answers do not depend on it.
        """
        slices = requests[0].slices
        if slices is not None and not self._is_whole(requests[0]):
            return [self._run_slices(requests[0], slices, check_wanted, width)]
        started_ns = time.perf_counter_ns()
        graph, feeds = self._feed(requests)
        session = self.open(graph, width)
        fed_ns = time.perf_counter_ns()
        results = session.run(list(graph.outputs), feeds)
        inferred_ns = time.perf_counter_ns()
        tensors = dict(zip(graph.outputs, results, strict=True))
        parts = (split if self._provider == "cpu" else cut_apart)(tensors, requests)
        if (wanted := requests[0].weights).form != "none":
            parts = [reduce_weights(part, wanted) for part in parts]
        times = Times(
            input_ns=fed_ns - started_ns,
            infer_ns=inferred_ns - fed_ns,
            output_ns=time.perf_counter_ns() - inferred_ns,
        )
        first, *others = parts
        return [
            Computed(first, graph.name, times, sum(request.rows for request in requests)),
            *(Computed(part, graph.name, times, 0) for part in others),
        ]

    def _run_slices(
        self,
        prepared: Prepared,
        slices: Slices,
        check_wanted: Callable[[], None],
        width: Width,
    ) -> Computed:
        started_ns = time.perf_counter_ns()
        graph, key_lengths = self._choose(prepared)
        session = self.open(graph, width)
        output = np.empty(prepared.query.shape, np.float32)
        infer_ns = 0
        for part, feeds in build_feeds_apart(graph, prepared, slices, key_lengths, check_wanted):
            padded = feeds if self._provider == "cpu" else join_feeds([feeds])
            fed_ns = time.perf_counter_ns()
            (result,) = session.run([OUTPUT], padded)
            infer_ns += time.perf_counter_ns() - fed_ns
            output[part] = result[:, : feeds[QUERY].shape[1]]
            del feeds, padded, result  # or its bias would be there still while the next one is made
        times = Times(input_ns=time.perf_counter_ns() - started_ns - infer_ns, infer_ns=infer_ns)
        return Computed({OUTPUT: output}, graph.name, times, prepared.rows)

    def _feed(self, requests: Sequence[Prepared]) -> tuple[GraphSpec, Feeds]:
        """The graph that answers requests with equal keys in one run, and its inputs by name."""
        if self._provider == "cpu":
            joined = join(requests)
            graph, _ = self._choose(joined)
            return graph, build_feeds(graph, joined, None)
        chosen = [self._choose(request) for request in requests]
        feeds = [build_feeds(graph, r, n) for (graph, n), r in zip(chosen, requests, strict=True)]
        return chosen[0][0], join_feeds(feeds)

    def _is_whole(self, prepared: Prepared) -> bool:
        """Whether a long request need not be computed in slices, as nothing holds its scores."""
        return self._has_kernel and self._choose(prepared)[0] in (FUSED, FUSED_CAUSAL)

    def _choose(self, prepared: Prepared) -> tuple[GraphSpec, NDArray[np.int64] | None]:
        key_lengths = find_key_lengths(prepared) if self._provider == "cuda" else None
        graph = choose_graph(self._provider, prepared, key_lengths)
        # Without a kernel of its own the causal form needs all scores at once, and knows no slices.
        if graph is FUSED_CAUSAL and not self._has_kernel:
            graph = FUSED_BIAS
        return graph, key_lengths
