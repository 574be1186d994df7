"""The inference endpoint of the Open Inference Protocol V2."""

from typing import Final

from fastapi import APIRouter, Request, Response

from service.answering import Encoded, answer_v2, encode, refuse_early
from service.engine.model import Model
from service.http.compression import choose_coding, compress
from service.http.departure import get_presence, work_while_present
from service.http.fields import get_fields
from service.http.holdings import Held
from service.http.inlet import get_inlet
from service.openapi import INFER
from service.protocol.v2_answer import encode_answer
from service.protocol.v2_request import HEADER_LENGTH
from service.request_facts import note_answer
from service.routes.answers import AnswerResponse, respond
from service.routes.dependencies import StateDep
from service.state import State

MODEL: Final = "model"  # where the state of a request holds what was found for it
# A body that is here in a moment: by the end of a longer one there may be room.
SHORT_BYTES: Final = 2**20
LENGTH_FIELD: Final = HEADER_LENGTH.lower().encode()

router = APIRouter(tags=["inference"])


@router.post("/v2/models/{name}/infer", **INFER)
async def infer(request: Request, state: StateDep, name: str) -> Response:
    """Answer one request, JSON or binary tensor data, tensor by tensor as it was asked for."""
    return await answer(request, state, state.find_model(name))


@router.post("/v2/models/{name}/versions/{version}/infer", **INFER)
async def infer_version(request: Request, state: StateDep, name: str, version: str) -> Response:
    """The same of one version of a model."""
    return await answer(request, state, state.find_model(name, version))


async def answer_route(request: Request, state: State) -> AnswerResponse:
    """The same of a request whose path was taken apart already, and perhaps its model found."""
    # Taken out: a connection keeps its last scope, and would keep a model that was unloaded.
    model = request.scope["state"].pop(MODEL, None) or state.find_model(**request.path_params)
    return await answer(request, state, model)


async def answer(request: Request, state: State, model: Model) -> AnswerResponse:
    """Read a request, and write the answer of a model.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    with state.holdings.open() as held:
        work = reply(request, state, held, model)
        response = await work_while_present(request, work)
        response.on_taken = held.keep_answer()
        return response


async def reply(request: Request, state: State, held: Held, model: Model) -> AnswerResponse:
    """The response to a request whose bytes are held.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    inlet = get_inlet(request.scope)
    if inlet is not None and inlet.size_bytes <= SHORT_BYTES:
        refuse_early(state, model)
    fields = get_fields(request.scope)
    coding = choose_coding(fields.list(b"accept-encoding"))
    body = await held.read(request)
    lengths = fields.list(LENGTH_FIELD)
    presence = get_presence(request.scope)
    asked, answered = await answer_v2(state, model, body, lengths, held.make_terms(presence))
    presence.stage = "encode"

    def write() -> Encoded:
        return compress(*encode_answer(answered, asked.id, asked.outputs), coding)

    # What is binary is sent as it is.
    is_text = coding is not None or asked.is_text
    is_alone = presence.is_alone()
    content, headers = await encode(state, answered, write, is_text=is_text, is_alone=is_alone)
    response = respond(content, headers, answered)
    held.shrink_answer(response.size_bytes)
    note_answer(request.scope["state"], asked.inference, answered)
    return response
