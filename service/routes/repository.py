"""The model repository extension: which models there are, and loading and unloading them.

https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_model_repository.md
"""

from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel

from model.contract import MODEL_NAME
from service.errors import NotFoundError, NotOfferedError
from service.http.body import read_body
from service.openapi import list_errors
from service.protocol.repository_request import decode_index, decode_load, decode_unload
from service.protocol.repository_schema import Done, IndexBody, IndexedModel, LoadBody, UnloadBody
from service.routes.dependencies import StateDep
from service.state import State

router = APIRouter(prefix="/v2/repository", tags=["repository"])


def describe_body(schema: type[BaseModel], *statuses: int) -> dict[str, Any]:
    """An endpoint that reads a small body, if there is one, of any Content-Type.

    Args:
        schema: of the body.
        *statuses: of the errors.
    """
    content = {"application/json": {"schema": schema.model_json_schema(), "example": {}}}
    return {
        "responses": list_errors(*statuses),
        "openapi_extra": {"requestBody": {"required": False, "content": content}},
    }


INDEX: Final = describe_body(IndexBody, 400, 408, 413, 415)
LOAD: Final = describe_body(LoadBody, 400, 404, 408, 413, 415, 501, 503)
UNLOAD: Final = describe_body(UnloadBody, 400, 404, 408, 413, 415, 501, 503)


@router.post("/index", **INDEX)
async def list_models(request: Request, state: StateDep) -> list[IndexedModel]:
    """State of every version of every model, and why it does not serve if it does not."""
    ready = decode_index(await read_small(request, state))
    return [
        IndexedModel(name=e.name, version=e.version, state=e.state, reason=e.reason)
        for e in await state.control.list_entries()
        if e.state == "READY" or not ready
    ]


@router.post("/models/{name}/load", **LOAD)
async def load(request: Request, state: StateDep, name: str) -> Done:
    """Load all versions of a model, or load them again; those that serve go on meanwhile."""
    check_name(name)
    state.check_ready()
    body = await read_small(request, state)
    await state.offload(partial(decode_load, body), len(body))
    await state.control.load(name)
    return Done()


@router.post("/models/{name}/unload", **UNLOAD)
async def unload(request: Request, state: StateDep, name: str) -> Done:
    """Serve a model no longer; its requests in flight are answered."""
    check_name(name)
    state.check_ready()
    body = await read_small(request, state)
    await state.offload(partial(decode_unload, body), len(body))
    await state.control.unload(name)
    return Done()


# Triton can have several repositories, and answers 501 here as well.
@router.post("/{repository}/index", include_in_schema=False)
@router.post("/{repository}/models/{name}/load", include_in_schema=False)
@router.post("/{repository}/models/{name}/unload", include_in_schema=False)
async def refuse_repository() -> None:
    """Say that there is one repository, which has no name."""
    raise NotOfferedError(
        "repositories have no names here: leave it out, as in /v2/repository/index"
    )


async def read_small(request: Request, state: State) -> bytes:
    """A body that may be absent; its Content-Type is whatever the client sends."""
    return await read_body(request, state.settings.max_request_bytes, required=False)


def check_name(name: str) -> None:
    """Refuse what can be no model's name, before it is looked for.

    Raises:
        NotFoundError: if it can be none.
    """
    if not MODEL_NAME.fullmatch(name):
        raise NotFoundError(
            f"no model can be called {name[:64]!a}: names hold letters, digits, '_', '.' and '-'"
        )
