"""The settings of the log: Triton's extension logging."""

from functools import partial

from fastapi import APIRouter, Request

from service.http.body import read_body
from service.openapi import LOG_UPDATE
from service.protocol.v2_settings import LogSettings, check_log_update, describe_log
from service.routes.dependencies import StateDep

router = APIRouter(tags=["settings"])


@router.get("/v2/logging")
async def read_log(state: StateDep) -> LogSettings:
    """The settings of the log."""
    return describe_log(state.settings.log_level)


@router.post("/v2/logging", **LOG_UPDATE)
async def update_log(request: Request, state: StateDep) -> LogSettings:
    """The settings of the log, if they are what the body asks for."""
    level = state.settings.log_level
    text = await read_body(request, state.settings.max_request_bytes, required=False)
    await state.offload(partial(check_log_update, text, level), len(text))
    return describe_log(level)
