"""The page, the documentation of the API, and the metrics: all served from here, no CDN."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from service.http.page_files import PageFiles
from service.metrics import MEDIA_TYPE
from service.routes.dependencies import StateDep

PAGE: Final = Path(__file__).parents[1] / "page"
SWAGGER: Final = Path(__file__).parents[1] / "swagger"
ASSETS: Final = "/docs/assets"

router = APIRouter(tags=["documents"])


def mount_assets(app: FastAPI) -> None:
    """Serve what the page loads, and Swagger UI's files, which `fastapi-offline` carries."""
    app.mount("/page", PageFiles(directory=PAGE), name="page")
    static = Path(str(files("fastapi_offline"))) / "static"
    app.mount(ASSETS, StaticFiles(directory=static), name="docs-assets")


@router.get("/", include_in_schema=False)
async def read_page(request: Request) -> Response:
    """The page."""
    return await PageFiles(directory=PAGE).get_response("index.html", request.scope)


@router.get("/docs", include_in_schema=False)
async def read_docs() -> FileResponse:
    """Swagger UI."""
    return FileResponse(SWAGGER / "index.html")


@router.get("/docs/start.js", include_in_schema=False)
async def read_docs_script() -> FileResponse:
    """What starts it: a script of our own, since our CSP allows none within a page."""
    return FileResponse(SWAGGER / "start.js")


# A plain function, which FastAPI calls on a thread: it takes half a millisecond for each model.
@router.head("/metrics", include_in_schema=False)
@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
def read_metrics(state: StateDep) -> Response:
    """Metrics in Prometheus' text format."""
    return Response(state.counts.render(), media_type=MEDIA_TYPE)
