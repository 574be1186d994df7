"""The friendly door: nested JSON, npz or safetensors."""

from functools import partial

from fastapi import APIRouter, Request, Response

from service.answering import BINARY_COPIES, TEXT_COPIES, Encoded, answer_attention, encode
from service.http.compression import choose_coding, compress
from service.http.departure import get_presence, work_while_present
from service.http.fields import get_fields
from service.http.holdings import Held
from service.openapi import ATTENTION
from service.protocol.attention_answer import encode_answer
from service.protocol.forms import choose_answer_form, choose_request_form
from service.protocol.npz import count_bytes
from service.protocol.query_string import read_query_string
from service.request_facts import note_answer
from service.routes.answers import AnswerResponse, respond
from service.routes.dependencies import StateDep
from service.state import State

router = APIRouter(tags=["inference"])


@router.post("/v1/attention", **ATTENTION)
async def attend(request: Request, state: StateDep) -> Response:
    """Attend from every query token to every key token.

    Absent tensors: `key` is the query, `value` is the key. Tensors without a batch axis come
    back without one.
    """
    return await answer(request, state)


async def answer(request: Request, state: State) -> AnswerResponse:
    """Read a request, and write the answer of a model.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    with state.holdings.open() as held:
        response = await work_while_present(request, reply(request, state, held))
        response.on_taken = held.keep_answer()
        return response


async def reply(request: Request, state: State, held: Held) -> AnswerResponse:
    """The response to a request whose bytes are held.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    state.check_ready()
    fields = get_fields(request.scope)
    coding = choose_coding(fields.list(b"accept-encoding"))
    options = read_query_string(request.query_params.multi_items())
    body = await held.read(request)
    form = choose_request_form(fields.get(b"content-type"), body)
    if form == "npz":
        count = partial(count_bytes, body, state.settings.max_request_bytes)
        await held.hold_arrays(await state.offload(count, len(body)))
    wish, accept = options.pop("format", None), fields.get(b"accept")
    answer_form = choose_answer_form(wish, accept, form)
    copies = TEXT_COPIES if answer_form == "json" else BINARY_COPIES
    presence = get_presence(request.scope)
    asked, answered = await answer_attention(
        state, body, form, options, copies, held.make_terms(presence)
    )
    presence.stage = "encode"

    def write() -> Encoded:
        text, marks = encode_answer(answered, answer_form, asked)
        return compress((text,), marks, coding)

    content, headers = await encode(state, answered, write, is_alone=presence.is_alone())
    response = respond(content, headers, answered)
    held.shrink_answer(response.size_bytes)
    note_answer(request.scope["state"], asked.inference, answered)
    return response
