"""The settings of the trace: Triton's extension of this name."""

from functools import partial

from fastapi import APIRouter, Request

from service.http.body import read_body
from service.openapi import MODEL_TRACE_UPDATE, TRACE_UPDATE
from service.protocol.v2_settings import TraceSettings, check_trace_update, describe_trace
from service.routes.dependencies import StateDep
from service.routes.models import ABSENT
from service.state import State

router = APIRouter(tags=["settings"])


@router.get("/v2/trace/setting")
async def read_trace() -> TraceSettings:
    """The settings of the trace."""
    return describe_trace()


@router.get("/v2/models/{name}/trace/setting", responses=ABSENT)
async def read_model_trace(state: StateDep, name: str) -> TraceSettings:
    """The settings of the trace of one model, which are those of all."""
    state.find_model(name)
    return describe_trace()


@router.post("/v2/trace/setting", **TRACE_UPDATE)
async def update_trace(request: Request, state: StateDep) -> TraceSettings:
    """The settings of the trace, if they are what the body asks for."""
    return await update(request, state)


@router.post("/v2/models/{name}/trace/setting", **MODEL_TRACE_UPDATE)
async def update_model_trace(request: Request, state: StateDep, name: str) -> TraceSettings:
    """The same of one model."""
    state.find_model(name)
    return await update(request, state)


async def update(request: Request, state: State) -> TraceSettings:
    """Read an update, and refuse it if it changes anything.

    Raises:
        ServiceError: if it does, or is malformed.
    """
    text = await read_body(request, state.settings.max_request_bytes, required=False)
    await state.offload(partial(check_trace_update, text), len(text))
    return describe_trace()
