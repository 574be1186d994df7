"""The friendly door: nested JSON, npz or safetensors."""

from functools import partial

from fastapi import APIRouter, Request, Response

from service.answering import answer_attention, encode
from service.body import read_body
from service.departure import work_while_present
from service.openapi import ATTENTION
from service.protocol.attention_answer import encode_answer
from service.protocol.forms import choose_answer_form, choose_request_form
from service.protocol.query_string import read_query_string
from service.routes.answers import respond
from service.routes.dependencies import StateDep

router = APIRouter(tags=["inference"])


@router.post("/v1/attention", **ATTENTION)
async def attend(request: Request, state: StateDep) -> Response:
    """Attend from every query token to every key token.

    Absent tensors: `key` is the query, `value` is the key. Tensors without a batch axis come
    back without one.
    """
    state.check_ready()
    options = read_query_string(request.query_params.multi_items())
    body = await read_body(request, state.settings.max_request_bytes)
    form = choose_request_form(request.headers.get("content-type", ""), body)
    wish, accept = options.pop("format", None), request.headers.get("accept", "")
    answer_form = choose_answer_form(wish, accept, form)
    work = answer_attention(state, body, form, options)
    asked, answer = await work_while_present(request, work)
    write = partial(encode_answer, answer, answer_form, asked)
    content, headers = await encode(state, answer, write)
    return respond(content, headers, answer)
