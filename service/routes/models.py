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
from service.routes.dependencies import StateDep
from service.state import State

router = APIRouter(tags=["models"])
ABSENT: Final[dict[int | str, dict[str, Any]]] = {
    404: {"model": ErrorBody},
    503: {"model": ErrorBody},
}


@router.get("/v2", response_model=ServerMetadata)
@router.get("/v2/", response_model=ServerMetadata, include_in_schema=False)
async def read_server(state: StateDep) -> ServerMetadata:
    """Name, version and extensions of the server."""
    return describe_server(state.version, can_load=state.settings.model_control == "explicit")


@router.get("/v2/models", response_model=ModelList)
async def list_models(state: StateDep) -> ModelList:
    """Names of the models that are served."""
    return ModelList(models=state.repository.names)


# Paths with and without a version are functions of their own: FastAPI would read an optional
# `version` from the query string, which the protocol ignores.
@router.get("/v2/models/{name}", responses=ABSENT)
async def read_model(state: StateDep, name: str) -> ModelMetadata:
    """Inputs, outputs, sizes and provider of a model."""
    return describe(state, name)


@router.get("/v2/models/{name}/versions/{version}", responses=ABSENT)
async def read_version(state: StateDep, name: str, version: str) -> ModelMetadata:
    """Inputs, outputs, sizes and provider of one version of a model."""
    return describe(state, name, version)


@router.get("/v2/models/{name}/ready", responses=ABSENT)
async def read_model_ready(state: StateDep, name: str) -> ModelReady:
    """A model that is served has computed an answer, so it is ready."""
    state.check_model(name)
    return ModelReady(name=name, ready=True)


@router.get("/v2/models/{name}/versions/{version}/ready", responses=ABSENT)
async def read_version_ready(state: StateDep, name: str, version: str) -> ModelReady:
    """The same of one version."""
    state.check_model(name, version)
    return ModelReady(name=name, ready=True)


def describe(state: State, name: str, version: str | None = None) -> ModelMetadata:
    """The metadata of a model.

    Raises:
        ServiceError: if there is no such model or version, or the server is not ready.
    """
    model = state.find_model(name, version)
    return describe_model(name, state.repository.versions(name), model.spec, model.provider)
