"""What tests of held requests share."""

from collections.abc import Callable, Iterator

import pytest

from service.http import prompting
from tests.service.http.live_server import LiveServer, serve
from tests.service.http.prompter import Prompter
from tests.service.http.reader import Reader

LONG_S = 600.0


@pytest.fixture
def patience_s(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Chooses how long a request is held."""
    return lambda seconds: monkeypatch.setattr(prompting, "PATIENCE_S", seconds)


@pytest.fixture
def prompter() -> Prompter:
    """Answers at once what it is asked."""
    return Prompter()


@pytest.fixture
def reader() -> Reader:
    """Answers the others."""
    return Reader()


@pytest.fixture
def unhurried(
    reader: Reader, prompter: Prompter, patience_s: Callable[[float], None]
) -> Iterator[LiveServer]:
    """A server that never loses its patience."""
    patience_s(LONG_S)
    with serve(reader, answerer=prompter) as server:
        yield server
    assert not prompter.is_waiting


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Reader, Prompter, LiveServer]]:
    """A server for many examples."""
    reader, prompter = Reader(), Prompter()
    with serve(reader, answerer=prompter) as server:
        yield reader, prompter, server
