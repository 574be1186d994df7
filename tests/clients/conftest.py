"""Clients that others wrote, as they come, each connected to the server."""

import gc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

# Its assertions are to be explained like those of the tests that call them.
pytest.register_assert_rewrite("tests.clients.readings")

Connect = Callable[..., Any]


@pytest.fixture(scope="session", name="http")
def import_tritonclient() -> ModuleType:
    """The module of tritonclient; it may be absent where these tests are skipped."""
    import tritonclient.http

    return tritonclient.http  # type: ignore[no-any-return]


@pytest.fixture(scope="session", name="authorize")
def make_plugin(http: Any, auth_headers: Mapping[str, str]) -> Any:
    """A plugin of tritonclient that adds the key, where the server wants one."""

    class Authorize(http.InferenceServerClientPlugin):  # type: ignore[misc] # untyped
        def __call__(self, request: Any) -> None:
            request.headers.update(auth_headers)

    return Authorize()


@pytest.fixture(name="connect")
def make_connections(http: Any, server_url: str, authorize: Any) -> Iterator[Connect]:
    """Connect a client of tritonclient that waits for its answers; it is closed at the end."""
    clients = []

    def connect(url: str = server_url, **options: Any) -> Any:
        client = http.InferenceServerClient(url.partition("://")[2], **options)
        client.register_plugin(authorize)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


@pytest.fixture(name="triton")
def connect_sync(connect: Connect) -> Any:
    """A client of tritonclient that waits for its answers."""
    return connect()


@pytest.fixture(name="connect_aio")
async def make_aio_connections(server_url: str, authorize: Any) -> AsyncIterator[Connect]:
    """Connect a client of tritonclient for an event loop; it is closed at the end."""
    import tritonclient.http.aio

    clients = []

    def connect(url: str = server_url, **options: Any) -> Any:
        client = tritonclient.http.aio.InferenceServerClient(url.partition("://")[2], **options)
        client.register_plugin(authorize)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        await client.close()
    gc.collect(1)  # what was dropped unread is found here and in no later test; all takes 0.3 s


@pytest.fixture(name="aio")
async def connect_asyncio(connect_aio: Connect) -> Any:
    """A client of tritonclient for an event loop."""
    return connect_aio()


@pytest.fixture(scope="session", name="kserve")
def import_kserve() -> ModuleType:
    """The module of KServe's SDK; it may be absent where these tests are skipped."""
    import kserve

    return kserve  # type: ignore[no-any-return]


@pytest.fixture(name="rest")
async def connect_kserve(kserve: Any) -> AsyncIterator[Any]:
    """KServe's client."""
    async with kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2")) as client:
        yield client
