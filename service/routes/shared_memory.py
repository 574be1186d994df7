"""Shared memory, of which no region is ever registered: Triton's extension of this name.

Load tools unregister all regions before they begin, whether or not there are any.
"""

from typing import Annotated, NoReturn

from fastapi import APIRouter
from pydantic import Field

from service.errors import NotOfferedError
from service.openapi import REGISTRATION
from service.protocol.repository_schema import Done

Regions = Annotated[list[str], Field(max_length=0)]

router = APIRouter(tags=["shared memory"])


@router.get("/v2/systemsharedmemory/status")
@router.get("/v2/cudasharedmemory/status")
async def list_regions() -> Regions:
    """All regions: none."""
    return []


@router.get("/v2/systemsharedmemory/region/{region}/status")
@router.get("/v2/cudasharedmemory/region/{region}/status")
async def list_region(region: str) -> Regions:  # noqa: ARG001 - part of the path
    """The regions of a name: none."""
    return []


@router.post("/v2/systemsharedmemory/unregister")
@router.post("/v2/cudasharedmemory/unregister")
async def unregister_regions() -> Done:
    """All regions are gone, as there were none."""
    return Done()


@router.post("/v2/systemsharedmemory/region/{region}/unregister")
@router.post("/v2/cudasharedmemory/region/{region}/unregister")
async def unregister_region(region: str) -> Done:  # noqa: ARG001 - part of the path
    """A region is gone, as there was none."""
    return Done()


@router.post("/v2/systemsharedmemory/region/{region}/register", **REGISTRATION)
@router.post("/v2/cudasharedmemory/region/{region}/register", **REGISTRATION)
async def register_region(region: str) -> NoReturn:
    """Shared memory is not offered: tensors come with their request.

    Raises:
        NotOfferedError: always.
    """
    raise NotOfferedError(
        f"shared memory is not offered, so region '{region}' cannot be registered; send the data "
        "of tensors with their request, as JSON or as binary data"
    )
