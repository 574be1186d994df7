"""One request from body to answer, without HTTP: what the doors have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from service.deadline import limit_time
from service.engine.job import Timed
from service.engine.model import Model
from service.engine.runner import Computed
from service.engine.signature import Prepared
from service.errors import InvalidRequestError
from service.inference import Answer, Schedule
from service.protocol import attention_request, v2_request
from service.protocol.attention_request import AttentionRequest
from service.protocol.forms import Form
from service.protocol.v2_layout import V2Request
from service.room import wait_for_room
from service.state import State
from service.terms import UNKNOWN, Terms
from service.watch import Watch

Asked = TypeVar("Asked")
Encoded = tuple[tuple[bytes | memoryview, ...], dict[str, str]]
ADDED_AXIS: Final = "shapes and positions count the batch axis of 1 that was added to your tensors"
UNHURRIED: Final = Schedule()
# Of an answer's tensors: themselves and their bytes, or the text, which is three times as long.
BINARY_COPIES: Final = 2
TEXT_COPIES: Final = 4
ID_COPIES: Final = 4  # an id may be as long as a body, and a character as long as four bytes


@dataclass(frozen=True, slots=True)
class Work(Generic[Asked]):
    """A request that was read and checked.

    Attributes:
        asked: as its door reads it.
        model: that answers.
        prepared: what it computes on.
        held_bytes: that its answer will take.
        schedule: how it waits.
    """

    asked: Asked
    model: Model
    prepared: Prepared
    held_bytes: int
    schedule: Schedule = UNHURRIED


def refuse_early(state: State, model: Model) -> None:
    """Refuse a request before it is read, where it would find the queue full; it is counted.

    Under ten times the load that can be computed, nine requests of ten are refused: reading them
    first took a sixth of what computes the tenth (measured).

    Raises:
        UnavailableError: if the queue is full.
    """
    with Watch(state.metrics, model.name, model.version):
        state.scheduler.check_room()


async def answer_v2(
    state: State,
    model: Model,
    body: bytes | memoryview,
    header_lengths: list[str],
    terms: Terms = UNKNOWN,
) -> tuple[V2Request, Answer]:
    """Answer a request of the Open Inference Protocol.

    Args:
        state: of the application.
        model: that answers.
        body: of the request.
        header_lengths: all values of the header `Inference-Header-Content-Length`.
        terms: on which it is answered.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    prepare = partial(prepare_v2, state, model, body, header_lengths)
    watch = Watch(state.metrics, model.name, model.version)
    text_bytes, is_alone = count_text_bytes(len(body), header_lengths), terms.is_alone()
    is_quick = state.is_quick(len(body), text_bytes, is_alone=is_alone)
    return await carry_out(state, watch, prepare, terms, is_quick=is_quick)


def prepare_v2(
    state: State, model: Model, body: bytes | memoryview, header_lengths: list[str]
) -> Work[V2Request]:
    """Read and check a request of the Open Inference Protocol.

    The arguments are those of `answer_v2`.

    Raises:
        ServiceError: for a fault of the request.
    """
    max_depth = state.settings.max_json_depth
    asked = v2_request.decode_request(body, header_lengths, max_depth, state.layouts)
    prepared = model.check(asked.inference)
    copies = TEXT_COPIES if asked.is_text else BINARY_COPIES
    held_bytes = copies * prepared.output_bytes + ID_COPIES * len(asked.id)
    return Work(asked, model, prepared, held_bytes, asked.schedule)


def count_text_bytes(body_bytes: int, header_lengths: list[str]) -> int:
    """How much of a body is JSON; all of it where the header is at fault.

    That the header is there says nothing: load tools send it where all of the body is JSON.

    Args:
        body_bytes: size of the body.
        header_lengths: all values of the header `Inference-Header-Content-Length`.
    """
    try:
        return v2_request.read_header_length(header_lengths, body_bytes)
    except InvalidRequestError:
        return body_bytes


async def answer_attention(
    state: State,
    body: bytes | memoryview,
    form: Form,
    options: Mapping[str, Any],
    copies: int = BINARY_COPIES,
    terms: Terms = UNKNOWN,
) -> tuple[AttentionRequest, Answer]:
    """Answer a request of /v1/attention.

    Args:
        state: of the application.
        body: of the request.
        form: of the body.
        options: of the query string.
        copies: of the answer's tensors that will be held.
        terms: on which it is answered.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    max_bytes, max_depth = state.settings.max_request_bytes, state.settings.max_json_depth
    watch = Watch(state.metrics)

    def prepare() -> "Work[AttentionRequest]":
        asked = attention_request.decode_request(body, form, options, max_bytes, max_depth)
        model = find_model(state, asked)
        watch.model, watch.version = model.name, model.version
        prepared = check_as_sent(model, asked)
        return Work(asked, model, prepared, copies * prepared.output_bytes)

    # A small archive may hold large arrays.
    size_bytes, is_alone = max_bytes if form == "npz" else len(body), terms.is_alone()
    is_quick = state.is_quick(size_bytes, is_alone=is_alone)
    return await carry_out(state, watch, prepare, terms, is_quick=is_quick)


async def carry_out(
    state: State, watch: Watch, prepare: Callable[[], Work[Asked]], terms: Terms, *, is_quick: bool
) -> tuple[Asked, Answer]:
    """Read, check and compute a request.

    Args:
        state: of the application.
        watch: of the request.
        prepare: reads and checks it.
        terms: on which it is answered.
        is_quick: whether to prepare it takes less time than a switch of threads.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    with watch:
        work = prepare() if is_quick else None
        if work is not None and (timed := compute_here(state, work, terms)) is not None:
            return work.asked, finish(state, work.model, timed, watch.started_ns)
        async with limit_time(state.settings.request_timeout_ms):
            if work is None:
                work = await state.hand_over(prepare)
            timed = await compute(state, work, terms)
        return work.asked, finish(state, work.model, timed, watch.started_ns)


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


def compute_here(state: State, work: Work[Asked], terms: Terms) -> Timed[Computed] | None:
    """Compute a request in the event loop; nothing where it has to wait for anything."""
    may_wait = work.schedule.timeout_us or not terms.is_alone()
    if may_wait or not state.scheduler.is_for_here(work.model.lane, work.prepared):
        return None
    if not terms.try_hold(work.held_bytes):
        return None
    return state.scheduler.run_here(work.model.lane, work.prepared)


async def compute(state: State, work: Work[Asked], terms: Terms) -> Timed[Computed]:
    """Queue a request, and wait until it is computed.

    Raises:
        ServiceError: if it is not computed, or not in time.
    """
    schedule = await wait_for_room(terms.hold, work.held_bytes, work.schedule)
    return await state.scheduler.submit(
        work.model.lane, work.prepared, schedule, is_alone=terms.is_alone()
    )


def finish(state: State, model: Model, timed: Timed[Computed], started_ns: int) -> Answer:
    """The answer that a model computed; the run is counted.

    Args:
        state: of the application.
        model: that answers.
        timed: what it computed.
        started_ns: when the request's body was whole.
    """
    computed = timed.result
    answer = Answer(
        computed.tensors,
        computed.graph,
        model.name,
        model.version,
        computed.executed_rows,
        computed.times.after(timed.queue_ns),
        started_ns,
    )
    # Here and not with the request: the run has been, whether or not its answer can be written.
    state.metrics.count_execution(answer)
    return answer


async def encode(
    state: State,
    answer: Answer,
    write: Callable[[], Encoded],
    *,
    is_text: bool = True,
    is_alone: bool = False,
) -> Encoded:
    """Write an answer, and count how the request ended.

    Args:
        state: of the application.
        answer: of the model.
        write: makes its bytes.
        is_text: whether that looks at every number.
        is_alone: whether no other request is there.

    Raises:
        ServiceError: if the answer cannot be written in the form that was asked for.
    """
    with Watch(state.metrics, answer.model, answer.version, answer.started_ns) as watch:
        size_bytes = answer.size_bytes
        text_bytes = size_bytes if is_text else 0
        encoded = await state.offload(write, size_bytes, text_bytes, is_alone=is_alone)
        state.metrics.count_answer(answer, watch.elapsed_ns)
        return encoded
