"""One request from body to answer, without HTTP: what the doors have in common."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from service.engine.model import Model
from service.engine.signature import Prepared
from service.errors import InvalidRequestError, ServiceError
from service.inference import Answer
from service.protocol import attention_request, v2_request
from service.protocol.attention_request import AttentionRequest
from service.protocol.forms import Form
from service.protocol.v2_request import V2Request
from service.state import State

Encoded = tuple[bytes, dict[str, str]]
ADDED_AXIS: Final = "shapes and positions count the batch axis of 1 that was added to your tensors"
NO_MODEL: Final = ""  # label of requests that were refused before their model was known


async def answer_v2(
    state: State, model: Model, body: bytes, header_lengths: list[str]
) -> tuple[V2Request, Answer]:
    """Answer a request of the Open Inference Protocol.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """

    def prepare() -> tuple[V2Request, Prepared]:
        with counted_errors(state, model.name, model.version):
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
        with counted_errors(state, NO_MODEL, NO_MODEL):
            asked = attention_request.decode_request(body, form, options, max_bytes)
            model = find_model(state, asked)
        with counted_errors(state, model.name, model.version):
            return asked, model, check_as_sent(model, asked)

    # A small archive may hold large arrays.
    size_bytes = max_bytes if form == "npz" else len(body)
    asked, model, prepared = await state.offload(prepare, size_bytes)
    return asked, await compute(state, model, prepared)


def check_as_sent(model: Model, asked: AttentionRequest) -> Prepared:
    """Hold a request against the tensor contract; say so where shapes are not as they were sent.

    Raises:
        ServiceError: if the model does not take it.
    """
    try:
        return model.check(asked.inference)
    except InvalidRequestError as error:
        if asked.batched:
            raise
        raise InvalidRequestError(f"{error} ({ADDED_AXIS})") from None


def find_model(state: State, asked: AttentionRequest) -> Model:
    """The model that a request names, or the default.

    Raises:
        NotFoundError: if there is no such model.
    """
    if asked.model is None:
        default = state.repository.get_default()
        return state.repository.get(default.name, asked.version)
    return state.repository.get(asked.model, asked.version)


async def compute(state: State, model: Model, prepared: Prepared) -> Answer:
    """Queue a checked request, and wait for its answer.

    Raises:
        ServiceError: if the queue is full.
    """
    with counted_errors(state, model.name, model.version):
        timed = await state.scheduler.submit(partial(model.run, prepared), prepared.size_bytes)
    computed = timed.result
    return Answer(
        computed.tensors,
        computed.graph,
        model.name,
        model.version,
        timed.queue_ms,
        timed.compute_ms,
    )


async def encode(state: State, answer: Answer, write: Callable[[], Encoded]) -> Encoded:
    """Write an answer, and count how the request ended.

    Raises:
        ServiceError: if the answer cannot be written in the form that was asked for.
    """
    started_s = time.perf_counter()
    with counted_errors(state, answer.model, answer.version):
        encoded = await state.offload(write, answer.size_bytes)
    written_s = time.perf_counter() - started_s
    state.metrics.count_answer(answer, written_s + (answer.queue_ms + answer.compute_ms) / 1000)
    return encoded


@contextmanager
def counted_errors(state: State, model: str, version: str) -> Iterator[None]:
    """Count how a request to a model that is served ended, if it did not end well."""
    try:
        yield
    except asyncio.CancelledError:
        state.metrics.count_departure(model, version)
        raise
    except Exception as error:
        status = error.status if isinstance(error, ServiceError) else ServiceError.status
        state.metrics.count_error(model, version, status)
        raise
