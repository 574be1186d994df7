"""The inference endpoint of the Open Inference Protocol V2."""

from functools import partial

from fastapi import APIRouter, Request, Response

from service.answering import answer_v2
from service.body import read_body
from service.openapi import INFER
from service.protocol.v2_answer import encode_answer
from service.protocol.v2_request import HEADER_LENGTH
from service.routes.answers import respond
from service.state import StateDep

router = APIRouter(tags=["inference"])


@router.post("/v2/models/{name}/infer", **INFER)
@router.post("/v2/models/{name}/versions/{version}/infer", **INFER)
async def infer(
    request: Request, state: StateDep, name: str, version: str | None = None
) -> Response:
    """Answer one request, JSON or binary tensor data, tensor by tensor as it was asked for."""
    state.check_ready()
    model = state.repository.get(name, version)
    body = await read_body(request, state.settings.max_request_bytes)
    asked, answer = await answer_v2(state, model, body, request.headers.getlist(HEADER_LENGTH))
    encode = partial(encode_answer, answer, asked.id, asked.outputs)
    content, headers = await state.offload(encode, answer.size_bytes)
    return respond(content, headers, answer)
