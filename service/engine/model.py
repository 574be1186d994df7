"""One version of a model: what it accepts, and the lane in which it computes."""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from model.contract import OUTPUT, AttentionSpec, GraphSpec
from service.engine.cost import is_small
from service.engine.cuda import CudaOptions
from service.engine.lane import Lane, no_item
from service.engine.masks import Hiding
from service.engine.model_config import ModelConfig
from service.engine.native import Native
from service.engine.padding import find_step
from service.engine.precedents import Precedents
from service.engine.runner import Computed, OpenGraph, Runner
from service.engine.session import DEFAULT_CUDA, Provider, Session, Width
from service.engine.signature import Prepared, check_request
from service.engine.sizes import Limits, Sizes, count_tokens, limit_rows
from service.inference import NO_WEIGHTS, Inference

UNCONFIGURED: Final = ModelConfig()
PROBE_QUERY_LENGTH: Final = 2
PROBE_KEY_LENGTH: Final = 3
KERNEL_WIDTHS: Final = 8
"""CUDA's kernels that hold no scores take heads whose width is a multiple of this one."""


class Model:
    """One version of a model.

    Attributes:
        directory: of its files.
        name: of the model.
        version: the number of its directory, as text.
        spec: its sizes.
        provider: where it computes.
        config: how it is served.
        limits: bounds of one request, those of the config among them.
        lane: of its requests in the queue.
    """

    def __init__(
        self,
        directory: Path,
        spec: AttentionSpec,
        provider: Provider,
        open_graph: OpenGraph,
        limits: Limits,
        config: ModelConfig = UNCONFIGURED,
        open_wide: OpenGraph | None = None,
        cuda: CudaOptions = DEFAULT_CUDA,
    ) -> None:
        self.directory = directory
        self.name = directory.parent.name
        self.version = directory.name
        self.spec = spec
        self.provider = provider
        self.config = config
        self.limits = limits.lower_batch_size(config.max_batch_size)
        has_kernel = spec.d_k % KERNEL_WIDTHS == 0
        self._precedents = Precedents()
        self._runner = Runner(directory, provider, open_graph, open_wide, has_kernel=has_kernel)
        self.lane = Lane(
            self._runner.run,
            self._runner.join_key,
            partial(limit_run, spec, self.limits, cuda if provider == "cuda" else None),
            max_running=config.instance_count,
            max_delay_us=find_delay_us(config, cuda.join_delay_us if provider == "cuda" else 0),
            run_alone=self._runner.run_alone,
            is_small=partial(is_small_and_open, self._runner) if provider == "cpu" else no_item,
        )

    def check(self, request: Inference) -> Prepared:
        """Accept or refuse the tensors of a request.

        Raises:
            InvalidRequestError: naming the tensor, what came and what was expected.
            RequestTooLargeError: if a bound is passed, naming the setting.
        """
        precedent = self._precedents.find(request.likeness)
        if precedent is not None:
            return precedent.prepare(request.tensors)
        prepared = check_request(self.spec, self.limits, request)
        self._precedents.keep(request.likeness, prepared)
        return prepared

    def run(self, prepared: Prepared) -> Computed:
        """Compute the answer to one checked request; blocks the calling thread."""
        (computed,) = self._runner.run([prepared])
        return computed

    def open(self, graph: GraphSpec, width: Width = "narrow") -> Session:
        """The session of a graph, opened if it is not."""
        return self._runner.open(graph, width)

    def open_all(self) -> None:
        """Open every graph that the provider may use; the files may vanish then."""
        self._runner.open_all()

    def give_back(self, shrinking: Native) -> None:
        """Give back the memory that is kept for the next run; `shrinking` are options of a run."""
        self._runner.give_back(self.make_probe(), shrinking)

    def warm_up(self) -> None:
        """Compute a real answer in every way, so that ready means able.

        Raises:
            RuntimeError: if the answer is not finite or has another shape.
        """
        for computed in self._runner.run_in_each_width(self.make_probe()):
            self.check_probe(computed)

    def make_probe(self) -> Prepared:
        """A request that costs next to nothing: ``[1, 2, D]`` and ``[1, 3, ·]``."""
        return Prepared(
            query=np.ones((1, PROBE_QUERY_LENGTH, self.spec.d_model), np.float32),
            key=np.ones((1, PROBE_KEY_LENGTH, self.spec.kdim), np.float32),
            value=np.ones((1, PROBE_KEY_LENGTH, self.spec.vdim), np.float32),
            hiding=Hiding(),
            weights=NO_WEIGHTS,
        )

    def check_probe(self, computed: Computed) -> None:
        """Accept or refuse the answer to a probe.

        Raises:
            RuntimeError: if it is not finite or has another shape.
        """
        output = computed.tensors[OUTPUT]
        expected = (1, PROBE_QUERY_LENGTH, self.spec.d_model)
        if output.shape != expected or not np.isfinite(output).all():
            raise RuntimeError(f"model '{self.name}' gave {output.shape} at warm-up")


def is_small_and_open(runner: Runner, prepared: Prepared) -> bool:
    """Whether a request is small, and its graph open: that of 64 MiB of weights takes 0.4 s."""
    return is_small(prepared) and runner.is_open(prepared)


def find_delay_us(config: ModelConfig, default_us: int) -> int:
    """How long a request waits for others: as the config says, else `default_us`."""
    # Where the batch is an axis like any other, rows are not requests'.
    return 0 if config.max_batch_size == 0 else config.max_queue_delay_us or default_us


def limit_run(
    spec: AttentionSpec, limits: Limits, cuda: CudaOptions | None, prepared: Prepared
) -> int:
    """Most rows of a run that joins requests like this one: it keeps the bounds of a request.

    Args:
        spec: of the model.
        limits: of one request.
        cuda: where requests are padded to equal lengths; its tokens are a bound too.
        prepared: the request.
    """
    sizes = Sizes(1, spec.num_heads, prepared.query.shape[1], prepared.key.shape[1])
    if cuda is None:
        return limit_rows(limits, sizes, spec.d_model, prepared.weights)
    # Those that it is joined with may be as long as this.
    longest = map(find_step, (sizes.query_length, sizes.key_length))
    sizes = Sizes(1, spec.num_heads, *longest)
    rows = limit_rows(limits, sizes, spec.d_model, prepared.weights)
    return max(1, min(rows, cuda.join_tokens // count_tokens(sizes)))
