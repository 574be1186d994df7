"""What the server says on its standard error."""

import logging
from collections.abc import Iterator

import pytest

from service.logs import configure_logging

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def restored_loggers() -> Iterator[None]:
    """The loggers of this process, as they were."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, levels = root.handlers[:], (root.level, uvicorn.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    uvicorn.setLevel(levels[1])


def test_a_record_is_one_line_with_its_level(capsys: Capture) -> None:
    configure_logging("info")
    logging.getLogger("limelight").info("model %s is loaded", "demo")
    logging.getLogger("limelight").debug("unseen")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" INFO    model demo is loaded")


def test_configuring_twice_writes_once(capsys: Capture) -> None:
    for _ in range(2):
        configure_logging("warning")
    logging.getLogger("limelight").warning("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("debug", logging.WARNING), ("info", logging.WARNING), ("error", logging.ERROR)],
)
def test_uvicorn_says_nothing_of_its_own_start(level: str, wanted: int) -> None:
    configure_logging(level)
    assert logging.getLogger("uvicorn").level == wanted
