"""How a model is served: Triton's extension model_configuration."""

from fastapi import APIRouter

from service.engine.machine import count_cores
from service.protocol.v2_config import ModelConfiguration, describe_config
from service.routes.dependencies import StateDep
from service.routes.models import ABSENT
from service.state import State

router = APIRouter(tags=["models"])


@router.get("/v2/models/{name}/config", responses=ABSENT, response_model_exclude_none=True)
async def read_config(state: StateDep, name: str) -> ModelConfiguration:
    """Inputs and outputs of a model, the optional ones marked, and how it is served."""
    return describe(state, name)


@router.get(
    "/v2/models/{name}/versions/{version}/config",
    responses=ABSENT,
    response_model_exclude_none=True,
)
async def read_version_config(state: StateDep, name: str, version: str) -> ModelConfiguration:
    """The same of one version of a model."""
    return describe(state, name, version)


def describe(state: State, name: str, version: str | None = None) -> ModelConfiguration:
    """The configuration of a model.

    Raises:
        ServiceError: if there is no such model or version, or the server is not ready.
    """
    model = state.find_model(name, version)
    threads = state.settings.inference_threads or count_cores(state.settings.workers)
    is_unbatched = model.config.max_batch_size == 0
    return describe_config(
        name,
        model.spec,
        max_batch_size=0 if is_unbatched else model.limits.max_batch_size,
        max_queue_delay_us=0 if is_unbatched else model.config.max_queue_delay_us,
        kind="KIND_GPU" if model.provider == "cuda" else "KIND_CPU",
        count=min(model.config.instance_count or threads, threads),
    )
