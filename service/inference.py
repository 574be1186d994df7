"""What is asked of a model and what it answers, whatever door the request came through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from numpy.typing import NDArray

from model.contract import OUTPUT, Causal

WeightsForm = Literal["none", "per_head", "mean", "top_k"]

WEIGHTS_FORMS: Final = ("none", "per_head", "mean", "top_k")


@dataclass(frozen=True, slots=True)
class WantedWeights:
    """Which attention weights a request asks for.

    Attributes:
        form: none, those of every head, their mean over the heads, or the largest of each row.
        heads: numbers of the heads, in the order of the answer; all of them where absent.
        top_k: how many keys of each row, where the form is "top_k".
    """

    form: WeightsForm = "none"
    heads: tuple[int, ...] | None = None
    top_k: int | None = None

    def count_numbers(self, num_heads: int, key_length: int) -> int:
        """Numbers of four bytes that they are for one query, of H heads and S keys."""
        heads = num_heads if self.heads is None else len(self.heads)
        match self.form:
            case "none":
                return 0
            case "mean":
                return key_length
            case "per_head":
                return heads * key_length
            case "top_k":
                return 2 * heads * min(self.top_k or key_length, key_length)


NO_WEIGHTS: Final = WantedWeights()


@dataclass(frozen=True, slots=True)
class Inference:
    """One request to a model.

    Attributes:
        tensors: by the names of the tensor contract, as they came.
        causal: alignment of the causal mask, False for none; absent: that of the model.
        weights: the attention weights that are asked for.
        likeness: the same for requests that differ in nothing but the numbers of their tensors;
            absent where that is not known.
    """

    tensors: Mapping[str, NDArray[Any]]
    causal: Causal | None = None
    weights: WantedWeights = NO_WEIGHTS
    likeness: object | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a request wants to wait, as Triton's extension schedule_policy words it.

    Attributes:
        priority: 1 goes first, then 2, and so on; 0, the default, goes after all of them.
        timeout_us: longest time in the queue; without end where absent.
    """

    priority: int = 0
    timeout_us: int | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """Where the time of one request went, as Triton's statistics divide it.

    Attributes:
        queue_ns: waiting for a thread.
        input_ns: making the inputs of the graph.
        infer_ns: in onnxruntime.
        output_ns: making the outputs of the answer from those of the graph.
    """

    queue_ns: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0

    def after(self, queue_ns: int) -> "Times":
        """The same after a wait."""
        return Times(queue_ns, self.input_ns, self.infer_ns, self.output_ns)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered.

    Attributes:
        tensors: ``output`` ``[B, L, D]`` and, where asked for, ``attention_weights``
            ``[B, H, L, S]``, or ``[B, L, S]`` for their mean over the heads, or ``top_k_weights``
            and ``top_k_keys``, both ``[B, H, L, min(top_k, S)]``; H counts the heads asked for.
        graph: name of the graph that ran.
        model: name of the model.
        version: of the model.
        executed_rows: B of the run, all requests that were joined in it; 0 for those of them
            that are not the first, so that each run counts once.
        times: where the time went.
        started_ns: when the request's body was whole, by `time.perf_counter_ns`.
    """

    tensors: dict[str, NDArray[Any]]
    graph: str
    model: str
    version: str
    executed_rows: int = field(default=0, compare=False)
    times: Times = field(default=Times(), compare=False)
    started_ns: int = field(default=0, compare=False)

    @property
    def batch_size(self) -> int:
        """B of the request."""
        return int(self.tensors[OUTPUT].shape[0])

    @property
    def queue_ms(self) -> float:
        """Time spent waiting for a thread."""
        return self.times.queue_ns / 1e6

    @property
    def compute_ms(self) -> float:
        """Time spent computing."""
        times = self.times
        return (times.input_ns + times.infer_ns + times.output_ns) / 1e6

    @property
    def size_bytes(self) -> int:
        """Memory that the tensors take."""
        return sum(array.nbytes for array in self.tensors.values())
