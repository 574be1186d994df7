"""The inference endpoint of the Open Inference Protocol V2."""

from functools import partial

from fastapi import APIRouter, Request, Response

from service.answering import answer_v2, encode
from service.body import read_body
from service.departure import work_while_present
from service.openapi import INFER
from service.protocol.v2_answer import encode_answer
from service.protocol.v2_request import HEADER_LENGTH
from service.routes.answers import respond
from service.routes.dependencies import StateDep
from service.state import State

router = APIRouter(tags=["inference"])


@router.post("/v2/models/{name}/infer", **INFER)
async def infer(request: Request, state: StateDep, name: str) -> Response:
    """Answer one request, JSON or binary tensor data, tensor by tensor as it was asked for."""
    return await answer(request, state, name)


@router.post("/v2/models/{name}/versions/{version}/infer", **INFER)
async def infer_version(request: Request, state: StateDep, name: str, version: str) -> Response:
    """The same of one version of a model."""
    return await answer(request, state, name, version)


async def answer(request: Request, state: State, name: str, version: str | None = None) -> Response:
    """Read a request, and write the answer of a model.

    Raises:
        ServiceError: for a fault of the request, or of the server.
    """
    model = state.find_model(name, version)
    body = await read_body(request, state.settings.max_request_bytes)
    lengths = request.headers.getlist(HEADER_LENGTH)
    work = answer_v2(state, model, body, lengths)
    asked, answered = await work_while_present(request, work)
    write = partial(encode_answer, answered, asked.id, asked.outputs)
    content, headers = await encode(state, answered, write)
    return respond(content, headers, answered)
