"""Examples that models bring with them: tensors, and the words that they stand for."""

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Response

from model.contract import EXAMPLE_FILE
from service.engine.files import read_bounded
from service.engine.model import Model
from service.protocol.forms import MEDIA_TYPES
from service.routes.dependencies import StateDep
from service.routes.models import ABSENT

router = APIRouter(tags=["models"])

MAX_BYTES: Final = 2**24
MEDIA_TYPE: Final = MEDIA_TYPES["safetensors"]
FOUND: Final[dict[str, Any]] = {
    "description": "A body of /v1/attention; its metadata has `labels`, words as JSON.",
    "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
}
EXAMPLE: Final[dict[str, Any]] = {
    "response_class": Response,
    "responses": {200: FOUND, 204: {"description": "The model brings no example."}, **ABSENT},
}


@router.get("/v1/models/{name}/example", **EXAMPLE)
async def read_example(state: StateDep, name: str) -> Response:
    """The example of a model."""
    return await send_example(state.find_model(name))


@router.get("/v1/models/{name}/versions/{version}/example", **EXAMPLE)
async def read_version_example(state: StateDep, name: str, version: str) -> Response:
    """The example of one version of a model."""
    return await send_example(state.find_model(name, version))


async def send_example(model: Model) -> Response:
    """The file beside the graphs; no content where there is none."""
    file = model.directory / EXAMPLE_FILE
    try:
        content = await asyncio.to_thread(read_bounded, file, MAX_BYTES)
    except OSError:
        return Response(status_code=204)
    return Response(content, media_type=MEDIA_TYPE)
