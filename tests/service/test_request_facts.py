"""What is noted of a request on its way."""

from typing import Any

import numpy as np

from service.inference import Answer, Inference, Times
from service.request_facts import STATE, RequestFacts, note_answer

TENSORS = {
    "query": np.zeros((2, 4, 6), np.float32),
    "key": np.zeros((2, 5, 6), np.float32),
    "mask": np.zeros((4, 5), np.bool_),
}
ANSWER = Answer(
    {"output": np.zeros((2, 4, 6), np.float32)},
    graph="fused_bias",
    model="demo",
    version="3",
    times=Times(queue_ns=1_234_567, input_ns=1_000, infer_ns=2_000_400, output_ns=1_000),
)


def test_what_was_asked_and_answered_is_noted() -> None:
    state: dict[str, Any] = {STATE: RequestFacts()}
    note_answer(state, Inference(TENSORS), ANSWER)
    assert state[STATE] == RequestFacts(
        model="demo",
        version="3",
        rows=2,
        shapes={"query": (2, 4, 6), "key": (2, 5, 6), "mask": (4, 5)},
        graph="fused_bias",
        queue_ms=1.235,
        compute_ms=2.002,
    )


def test_without_a_log_that_asks_nothing_is() -> None:
    state: dict[str, Any] = {}
    note_answer(state, Inference(TENSORS), ANSWER)
    assert state == {}
