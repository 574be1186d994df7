"""The application: routes, errors, and its life from loading the models to the last answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from service.cutoff import Cutoff
from service.errors import ServiceError, StartError
from service.openapi import TITLE, describe
from service.replies import render_error
from service.request_id import HEADER, RequestId
from service.routes import attention, documents, health, infer, models
from service.settings import Settings
from service.state import State

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
        loading = asyncio.create_task(load(state, on_ready, on_failure))
        yield
        await loading
        await asyncio.to_thread(state.close)

    app = FastAPI(
        title=TITLE,
        version=state.version,
        root_path=settings.root_path,
        lifespan=live,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = state
    add_routes(app)
    add_error_handlers(app)
    app.add_middleware(Cutoff)
    app.add_middleware(RequestId)
    app.openapi = lambda: describe(app, state.repository)  # type: ignore[method-assign] # FastAPI documents this way
    return app


async def load(
    state: State, on_ready: Callable[[State], None], on_failure: Callable[[str], None]
) -> None:
    """Load the models beside the event loop, so that liveness answers meanwhile."""
    try:
        await asyncio.to_thread(state.load_models)
    except Exception as error:
        state.phase = "failed"
        if not isinstance(error, StartError):
            log.exception("the models could not be loaded")
        on_failure(str(error) or type(error).__name__)
        return
    if state.phase == "starting":  # and was not told to stop meanwhile
        state.phase = "ready"
        on_ready(state)


def add_routes(app: FastAPI) -> None:
    """Every path that is served."""
    for module in (health, models, infer, attention, documents):
        app.include_router(module.router)
    documents.mount_assets(app)
    app.mount("/page", StaticFiles(directory=Path(__file__).parent / "page"), name="page")


def add_error_handlers(app: FastAPI) -> None:
    """Make every error, whatever its source, an object with the member `error`."""

    @app.exception_handler(ServiceError)
    async def answer_service_error(_: Request, error: ServiceError) -> Response:
        return render_error(str(error), error.status, dict(error.headers))

    @app.exception_handler(HTTPException)
    async def answer_http_error(request: Request, error: HTTPException) -> Response:
        texts = {
            404: f"nothing is served at {request.url.path}",
            405: f"{request.method} is not served at {request.url.path}",
        }
        text = texts.get(error.status_code, str(error.detail))
        return render_error(text, error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def answer_validation_error(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return render_error(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400, {})

    @app.exception_handler(Exception)
    async def answer_fault(request: Request, _: Exception) -> Response:
        headers = {HEADER: request.state.request_id}
        return render_error("the server failed; its log says why", 500, headers)
