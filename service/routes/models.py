"""What is served: the server, its models, and whether they answer."""

from typing import Any, Final

from fastapi import APIRouter

from service.protocol.v2_metadata import describe_model, describe_server
from service.protocol.v2_schema import (
    ErrorBody,
    ModelList,
    ModelMetadata,
    ModelReady,
    ServerMetadata,
)
from service.state import StateDep

router = APIRouter(tags=["models"])
NOT_FOUND: Final[dict[int | str, dict[str, Any]]] = {404: {"model": ErrorBody}}


@router.get("/v2", response_model=ServerMetadata)
@router.get("/v2/", response_model=ServerMetadata, include_in_schema=False)
async def read_server(state: StateDep) -> ServerMetadata:
    """Name, version and extensions of the server."""
    return describe_server(state.version)


@router.get("/v2/models", response_model=ModelList)
async def list_models(state: StateDep) -> ModelList:
    """Names of the models that are served."""
    return ModelList(models=state.repository.names)


@router.get("/v2/models/{name}", response_model=ModelMetadata, responses=NOT_FOUND)
@router.get("/v2/models/{name}/versions/{version}", responses=NOT_FOUND)
async def read_model(state: StateDep, name: str, version: str | None = None) -> ModelMetadata:
    """Inputs, outputs, sizes and provider of a model."""
    model = state.repository.get(name, version)
    return describe_model(name, state.repository.versions(name), model.spec, model.provider)


@router.get("/v2/models/{name}/ready", response_model=ModelReady, responses=NOT_FOUND)
@router.get("/v2/models/{name}/versions/{version}/ready", responses=NOT_FOUND)
async def read_model_ready(state: StateDep, name: str, version: str | None = None) -> ModelReady:
    """A model that is served has computed an answer, so it is ready."""
    state.repository.get(name, version)
    return ModelReady(name=name, ready=True)
