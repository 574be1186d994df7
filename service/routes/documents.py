"""The page, the documentation of the API, and the metrics: all served from here, no CDN."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.staticfiles import StaticFiles

from service.metrics import MEDIA_TYPE
from service.routes.dependencies import StateDep

PAGE: Final = Path(__file__).parents[1] / "page"
ASSETS: Final = "/docs/assets"

router = APIRouter(tags=["documents"])


def mount_assets(app: FastAPI) -> None:
    """Serve the scripts and styles of Swagger UI, which `fastapi-offline` carries."""
    static = Path(str(files("fastapi_offline"))) / "static"
    app.mount(ASSETS, StaticFiles(directory=static), name="docs-assets")


@router.get("/", include_in_schema=False)
async def read_page() -> FileResponse:
    """The page."""
    return FileResponse(PAGE / "index.html")


@router.get("/docs", include_in_schema=False)
async def read_docs(request: Request) -> HTMLResponse:
    """Swagger UI."""
    root = request.scope.get("root_path", "")
    return get_swagger_ui_html(
        openapi_url=f"{root}/openapi.json",
        title="Limelight",
        swagger_js_url=f"{root}{ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{root}{ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{root}{ASSETS}/favicon.png",
    )


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
async def read_metrics(state: StateDep) -> Response:
    """Metrics in Prometheus' text format."""
    return Response(state.metrics.render(), media_type=MEDIA_TYPE)
