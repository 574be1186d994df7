"""The application: routes, errors, and its life from loading the models to the last answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from service.errors import ServiceError, StartError
from service.http.access import Access
from service.http.bare_prefix import BarePrefix
from service.http.cross_site import CrossSite
from service.http.cutoff import Cutoff
from service.http.gate import Gate
from service.http.key_file import KeyFile
from service.http.methods import list_methods
from service.http.origins import Cors, read_origins
from service.http.prefix import Prefix
from service.http.replies import render_error, render_fault
from service.http.request_id import HEADER, RequestId
from service.http.request_log import RequestLog
from service.http.security_headers import SecurityHeaders
from service.http.whole_files import WholeFiles
from service.openapi import TITLE, describe
from service.polling import Polling
from service.routes import (
    attention,
    documents,
    examples,
    health,
    infer,
    log_settings,
    model_config,
    models,
    repository,
    shared_memory,
    statistics,
    trace_settings,
)
from service.routes.entrance import Entrance
from service.routes.express import Express
from service.settings import Settings
from service.state import State
from service.tidying import PERIOD_S as TIDYING_PERIOD_S
from service.tidying import Tidying

# Requests have had their time: what computes still when the threads are to end serves nobody.
CLOSE_TIMEOUT_S: Final = 5

log = logging.getLogger("limelight")


def create_app(
    settings: Settings,
    on_ready: Callable[[State], None] = lambda _: None,
    on_failure: Callable[[str], None] = lambda _: None,
) -> FastAPI:
    """Build an application.

    Args:
        settings: of the process.
        on_ready: called when the models are loaded.
        on_failure: called with the reason when they cannot be.
    """
    state = State(settings)

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        state.scheduler.start()
        state.watchdog.start()
        state.pulse.start()
        tidying = Polling(Tidying(state.holdings, state.free_memory).look, TIDYING_PERIOD_S)
        tidying.start()
        polling = Polling(state.control.scan, settings.model_poll_interval_s)
        loading = asyncio.create_task(load(state, polling, on_ready, on_failure))
        yield
        await loading
        polling.stop()
        tidying.stop()
        state.pulse.stop()
        await finish_loading(state)
        state.watchdog.limit(CLOSE_TIMEOUT_S)
        await asyncio.to_thread(state.close)
        state.watchdog.stop()

    app = FastAPI(
        title=TITLE,
        version=state.version,
        lifespan=live,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = state
    add_routes(app)
    add_error_handlers(app)
    gate = add_layers(app, settings)
    app.state.express = Express(app, state, Entrance(settings.root_path, gate))
    app.openapi = lambda: describe(app, state.repository)  # type: ignore[method-assign] # FastAPI documents this way
    return app


async def finish_loading(state: State) -> None:
    """Wait for a model that is being loaded, no longer than requests are waited for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(state.settings.shutdown_timeout_s):
            await asyncio.to_thread(state.control.close)


async def load(
    state: State,
    polling: Polling,
    on_ready: Callable[[State], None],
    on_failure: Callable[[str], None],
) -> None:
    """Load the models beside the event loop, so that liveness answers meanwhile."""
    try:
        await asyncio.to_thread(state.load_models)
    except Exception as error:
        if state.phase == "stopping":
            return
        state.phase = "failed"
        if not isinstance(error, StartError):
            log.exception("the models could not be loaded")
        on_failure(str(error) or type(error).__name__)
        return
    if state.phase == "starting":  # and was not told to stop meanwhile
        state.phase = "ready"
        on_ready(state)
        if state.settings.model_control == "poll":
            polling.start()


def add_routes(app: FastAPI) -> None:
    """Every path that is served."""
    # Of two paths that fit the first one counts: /v2/models/stats goes before /v2/models/{name}.
    for module in (
        health,
        statistics,
        models,
        model_config,
        infer,
        repository,
        trace_settings,
        log_settings,
        shared_memory,
        attention,
        examples,
        documents,
    ):
        app.include_router(module.router)
    documents.mount_assets(app)


def add_layers(app: FastAPI, settings: Settings) -> Gate | None:
    """What a request passes on its way in, the innermost first.

    Returns:
        the gate, where there are keys.

    Raises:
        StartError: if the file of keys or the origins do not fit.
    """
    origins, gate = read_origins(settings.cors_origins), None
    app.add_middleware(WholeFiles)
    app.add_middleware(BarePrefix)
    app.add_middleware(Cutoff)
    if settings.api_keys_file is None:
        app.add_middleware(CrossSite, origins=origins)
    else:
        keys, access = KeyFile(settings.api_keys_file), Access(settings.metrics_without_key)
        app.add_middleware(Gate, keys=keys, access=access)
        gate = Gate(app, keys, access)
    if origins:
        app.add_middleware(Cors, origins=origins)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestId)
    if settings.log_requests:
        app.add_middleware(RequestLog)
    # Outside of all that reads a path: with it the path is whole, and root_path is set.
    app.add_middleware(Prefix, prefix=settings.root_path)
    return gate


def add_error_handlers(app: FastAPI) -> None:
    """Make every error, whatever its source, an object with the member `error`."""

    @app.exception_handler(ServiceError)
    async def answer_service_error(_: Request, error: ServiceError) -> Response:
        return render_error(str(error), error.status, dict(error.headers))

    @app.exception_handler(HTTPException)
    async def answer_http_error(request: Request, error: HTTPException) -> Response:
        texts = {
            404: f"nothing is served at {request.scope['path']}",
            405: f"{request.method} is not served at {request.scope['path']}",
        }
        text = texts.get(error.status_code, str(error.detail))
        headers = dict(error.headers or {})
        if error.status_code == 405 and (methods := list_methods(app.routes, request.scope)):
            headers["Allow"] = ", ".join(methods)
        return render_error(text, error.status_code, headers)

    @app.exception_handler(RequestValidationError)
    async def answer_validation_error(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return render_error(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400, {})

    @app.exception_handler(Exception)
    async def answer_fault(request: Request, _: Exception) -> Response:
        headers = {HEADER: request.state.request_id, "X-Content-Type-Options": "nosniff"}
        return render_fault(headers)
