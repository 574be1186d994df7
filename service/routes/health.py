"""Liveness and readiness of the server."""

from fastapi import APIRouter, Response

from service.protocol.v2_schema import ErrorBody, Live, Ready
from service.routes.dependencies import StateDep

router = APIRouter(prefix="/v2/health", tags=["health"])


@router.get("/live", response_model=Live)
async def live() -> Live:
    """The process answers, whether or not its models are loaded."""
    return Live(live=True)


@router.get("/ready", response_model=Ready, responses={503: {"model": ErrorBody}})
async def ready(state: StateDep) -> Response | Ready:
    """The models are loaded, and an inference has succeeded of late."""
    state.check_able()
    return Ready(ready=True)
