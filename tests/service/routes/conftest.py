"""An application with the embedded demo, below a socket, and two servers of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import httpx
import pytest
import pytest_asyncio

from service.app import create_app
from service.settings import Settings
from service.state import State
from tests.service.routes.front import Front, open_front
from tests.service.routes.pair import Pair, open_pair


@pytest_asyncio.fixture
async def client(state: State) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application with the demo, without its life around it."""
    app = create_app(state.settings)
    app.state.service = state
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://limelight"
    ) as opened:
        yield opened


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends servers with the test."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def root_path() -> str:
    """The prefix of a proxy; none."""
    return ""


@pytest.fixture
def pair(stack: ExitStack, settings: Settings, root_path: str) -> Pair:
    """A server with express in front, and one without."""
    return open_pair(stack, settings.model_copy(update={"root_path": root_path}))


@pytest.fixture
def one_thread(settings: Settings) -> Iterator[Front]:
    """A server with one thread."""
    with open_front(settings.model_copy(update={"inference_threads": 1})) as front:
        yield front
