"""What is noted of a request on its way, for its line in the log."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.inference import Answer, Inference

STATE: Final = "facts"  # in the state of a request, where the log put them


@dataclass(slots=True)
class RequestFacts:
    """Filled by whoever knows; empty where a request came to no model.

    Attributes:
        model: that was asked, if it is served.
        version: of the model.
        rows: B, sequences in the request.
        shapes: of the tensors that came, by name.
        graph: that ran.
        queue_ms: time spent waiting for a thread.
        compute_ms: time spent computing.
    """

    model: str | None = None
    version: str | None = None
    rows: int | None = None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    graph: str | None = None
    queue_ms: float | None = None
    compute_ms: float | None = None


def note_answer(state: MutableMapping[str, Any], inference: Inference, answer: Answer) -> None:
    """Note what was asked and answered, where a log wants to know.

    Args:
        state: of the request, ``scope["state"]``.
        inference: what was asked.
        answer: to it.
    """
    facts = state.get(STATE)
    if isinstance(facts, RequestFacts):
        facts.model, facts.version, facts.graph = answer.model, answer.version, answer.graph
        facts.rows = answer.batch_size
        facts.shapes = {name: array.shape for name, array in inference.tensors.items()}
        facts.queue_ms, facts.compute_ms = round(answer.queue_ms, 3), round(answer.compute_ms, 3)
