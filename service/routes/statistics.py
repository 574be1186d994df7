"""What has been counted of the models: Triton's statistics extension."""

from collections.abc import Iterable

from fastapi import APIRouter, Response

from service.protocol.v2_statistics import StatisticsAnswer, describe_statistics
from service.routes.dependencies import StateDep
from service.routes.models import ABSENT
from service.statistics import ModelCounts

router = APIRouter(tags=["models"])


# Has to be matched before the model of that name, which there cannot be. A plain function, which
# FastAPI calls on a thread: with hundreds of models it takes tens of milliseconds.
@router.get("/v2/models/stats", response_model=StatisticsAnswer)
def read_all(state: StateDep) -> Response:
    """Counts of every version that is served; zeros before its first request."""
    return render(state.counts.read_all())


@router.get("/v2/models/{name}/stats", responses=ABSENT, response_model=StatisticsAnswer)
async def read_model(state: StateDep, name: str) -> Response:
    """Counts of every version of a model."""
    state.check_ready()
    return render(await state.counts.read(name, state.repository.versions(name)))


@router.get(
    "/v2/models/{name}/versions/{version}/stats", responses=ABSENT, response_model=StatisticsAnswer
)
async def read_version(state: StateDep, name: str, version: str) -> Response:
    """Counts of one version of a model."""
    model = state.find_model(name, version)
    return render(await state.counts.read(model.name, [model.version]))


def render(counted: Iterable[ModelCounts]) -> Response:
    """The answer, written here: FastAPI would write it on the event loop."""
    text = describe_statistics(counted).model_dump_json()
    return Response(text, media_type="application/json")
