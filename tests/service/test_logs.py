"""What the server says on its standard error."""

import json
import logging
import os
import pty
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.logs import LineHandler, LogFormat, configure_logging

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def restored_loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The loggers of this process, as they were."""
    root, uvicorn = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, levels = root.handlers[:], (root.level, uvicorn.level)
    for name in ("logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, name, True)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    yield
    logging.captureWarnings(capture=False)
    for handler in root.handlers:
        if isinstance(handler, LineHandler):
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    uvicorn.setLevel(levels[1])


def read_lines(capture: Capture) -> list[str]:
    """What stands on standard error."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    return capture.readouterr().err.splitlines()


def test_a_record_is_one_line_with_its_level(capfd: Capture) -> None:
    configure_logging("info", "text")
    logging.getLogger("limelight").info("model %s is loaded", "demo")
    logging.getLogger("limelight").debug("unseen")
    (line,) = read_lines(capfd)
    assert line.endswith(" INFO    model demo is loaded")


@pytest.mark.parametrize("log_format", ["json", "auto"])
def test_elsewhere_than_on_a_terminal_it_is_one_object(
    log_format: LogFormat, capfd: Capture
) -> None:
    configure_logging("info", log_format)
    logging.getLogger("limelight").warning("model %s is gone", "demo")
    (line,) = read_lines(capfd)
    written = json.loads(line)
    assert written.pop("time")
    assert written == {
        "level": "warning",
        "logger": "limelight",
        "message": "model demo is gone",
    }


def test_on_a_terminal_it_is_text() -> None:
    outer, inner = pty.openpty()
    code = (
        "from service.logs import configure_logging; import logging;"
        "configure_logging('info'); logging.info('model demo is loaded')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=inner, check=True, timeout=60)
    os.close(inner)
    assert os.read(outer, 1024).endswith(b" INFO    model demo is loaded\r\n")
    os.close(outer)


def test_configuring_twice_writes_once(capfd: Capture) -> None:
    for _ in range(2):
        configure_logging("warning")
    logging.getLogger("limelight").warning("once")
    assert len(read_lines(capfd)) == 1


@pytest.mark.parametrize(
    ("level", "wanted"),
    [("debug", logging.WARNING), ("info", logging.WARNING), ("error", logging.ERROR)],
)
def test_uvicorn_says_nothing_of_its_own_start(level: str, wanted: int) -> None:
    configure_logging(level)
    assert logging.getLogger("uvicorn").level == wanted


def test_arguments_that_do_not_fit_cost_neither_the_caller_nor_the_log(capfd: Capture) -> None:
    configure_logging("info")
    logging.getLogger("limelight").info("two %s %s", *["one"])
    (line,) = read_lines(capfd)
    assert json.loads(line)["message"] == (
        "a record of limelight could not be written: "
        "TypeError('not enough arguments for format string')"
    )


def test_a_warning_of_python_is_a_record(capfd: Capture) -> None:
    configure_logging("info")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("deprecated\nlong ago", stacklevel=1)
        (line,) = read_lines(capfd)
        logging.captureWarnings(capture=False)
    assert "deprecated\nlong ago" in json.loads(line)["message"]


def test_a_fault_that_ends_a_thread_is_a_record(capfd: Capture) -> None:
    configure_logging("info")

    def fail() -> None:
        raise RuntimeError("broken")

    thread = threading.Thread(target=fail, name="compute")
    thread.start()
    thread.join()
    (line,) = read_lines(capfd)
    written = json.loads(line)
    assert written["message"] == "thread compute ended with a fault"
    assert written["exception"].endswith("RuntimeError: broken")


def test_a_closed_standard_error_becomes_no_file_of_the_process() -> None:
    """Else the next that it opens, perhaps the connection of a client, would receive the log."""
    code = (
        "from service.logs import configure_logging; import logging, os;"
        "configure_logging('info');"
        "file = os.open('/dev/null', os.O_RDONLY); assert file > 2, file;"
        "logging.info('unheard'); logging.shutdown();"
        "print(os.readlink('/proc/self/fd/2') if os.path.exists('/proc') else '/dev/null')"
    )
    shell = ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", code]
    done = subprocess.run(
        shell, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert done.stdout == "/dev/null\n"


def test_what_was_logged_is_written_when_the_process_ends() -> None:
    code = (
        "from service.logs import configure_logging; import logging;"
        "configure_logging('info'); [logging.info('%d', n) for n in range(500)]"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.PIPE, timeout=60)
    told = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert told == [str(n) for n in range(500)]
