"""One request from body to answer, without HTTP: what the doors have in common."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from service.engine.model import Model
from service.engine.signature import Prepared
from service.errors import ServiceError
from service.inference import Answer
from service.protocol import attention_request, v2_request
from service.protocol.attention_request import AttentionRequest
from service.protocol.forms import Form
from service.protocol.v2_request import V2Request
from service.state import State


async def answer_v2(
    state: State, model: Model, body: bytes, header_lengths: list[str]
) -> tuple[V2Request, Answer]:
    """Answer a request of the Open Inference Protocol.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """

    def prepare() -> tuple[V2Request, Prepared]:
        with counted_errors(state, model):
            asked = v2_request.decode_request(body, header_lengths)
            return asked, model.check(asked.inference)

    asked, prepared = await state.offload(prepare, len(body))
    return asked, await compute(state, model, prepared)


async def answer_attention(
    state: State, body: bytes, form: Form, options: Mapping[str, Any]
) -> tuple[AttentionRequest, Answer]:
    """Answer a request of /v1/attention.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    max_bytes = state.settings.max_request_bytes

    def prepare() -> tuple[AttentionRequest, Model, Prepared]:
        asked = attention_request.decode_request(body, form, options, max_bytes)
        model = find_model(state, asked)
        with counted_errors(state, model):
            return asked, model, model.check(asked.inference)

    asked, model, prepared = await state.offload(prepare, len(body))
    return asked, await compute(state, model, prepared)


def find_model(state: State, asked: AttentionRequest) -> Model:
    """The model that a request names, or the default.

    Raises:
        NotFoundError: if there is no such model.
    """
    if asked.model is None:
        default = state.repository.get_default()
        return state.repository.get(default.name, asked.version)
    return state.repository.get(asked.model, asked.version)


@contextmanager
def counted_errors(state: State, model: Model) -> Iterator[None]:
    """Count an error of a request to `model`, and pass it on."""
    try:
        yield
    except Exception as error:
        status = error.status if isinstance(error, ServiceError) else ServiceError.status
        state.metrics.count_error(model, status)
        raise


async def compute(state: State, model: Model, prepared: Prepared) -> Answer:
    """Queue a checked request, wait for its answer, and count it.

    Raises:
        ServiceError: if the queue is full.
    """
    started_s = time.perf_counter()
    with counted_errors(state, model):
        timed = await state.scheduler.submit(partial(model.run, prepared), prepared.size_bytes)
    computed = timed.result
    answer = Answer(
        computed.tensors,
        computed.graph,
        model.name,
        model.version,
        timed.queue_ms,
        timed.compute_ms,
    )
    state.metrics.count_answer(answer, time.perf_counter() - started_s)
    return answer
