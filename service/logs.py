"""What the server says on its standard error: a line for each record, and never a wait for it."""

import logging
import os
import threading
from functools import partial
from typing import Final, Literal

from service.log_lines import REQUEST, JsonLines, TextLines
from service.log_writer import LogWriter

LogFormat = Literal["auto", "json", "text"]

STDERR: Final = 2
REQUEST_BYTES: Final = 2048  # at most about what a request's line takes: `request_log` bounds it

log = logging.getLogger("limelight")


class LineHandler(logging.Handler):
    """Gives each record to a writer, as a line."""

    def __init__(self, descriptor: int, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._writer = LogWriter(descriptor, self._describe_loss)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if hasattr(record, REQUEST):
            # Its fields change no more, and making lines together, on another thread, is cheaper.
            self._writer.write(partial(self._render, record), REQUEST_BYTES)
        else:
            line = self._render(record)
            self._writer.write(line, len(line))

    def flush(self) -> None:
        """Wait a moment for what was written."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is left, and write no more."""
        self._writer.close()
        super().close()

    def _render(self, record: logging.LogRecord) -> bytes:
        try:
            return self.format(record).encode(errors="backslashreplace") + b"\n"
        except Exception as error:
            # A message whose arguments do not fit must cost no request, and is not to be lost.
            return self._say("a record of %s could not be written: %r", record.name, error)

    def _describe_loss(self, lines: int) -> bytes:
        return self._say("%d lines of this log were lost: it was slow, full or closed", lines)

    def _say(self, text: str, *arguments: object) -> bytes:
        """A line of the log's own."""
        level = logging.WARNING
        return self._render(logging.LogRecord(log.name, level, "", 0, text, arguments, None))


def configure_logging(level: str, log_format: LogFormat = "auto") -> None:
    """Send all loggers, warnings and the faults of threads to standard error.

    Args:
        level: least severe level that is written: debug, info, warning or error.
        log_format: json, text, or auto: text on a terminal, json elsewhere.
    """
    keep_descriptor()
    if log_format == "auto":
        log_format = "text" if os.isatty(STDERR) else "json"
    handler = LineHandler(STDERR, TextLines() if log_format == "text" else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    # None of it is written: https://docs.python.org/3/howto/logging.html#optimization
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    threading.excepthook = log_thread_fault
    # The server speaks for itself: uvicorn's own lines about its start say less.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))


def keep_descriptor() -> None:
    """Where standard error is closed, open it on nothing.

    Else the next file that the process opens becomes descriptor 2, be it the connection of a
    client, and the log would be written into it.
    """
    try:
        os.fstat(STDERR)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != STDERR:
            os.dup2(nothing, STDERR)
            os.close(nothing)


def log_thread_fault(fault: threading.ExceptHookArgs) -> None:
    """Log the exception that ended a thread."""
    if fault.exc_value is not None:
        name = fault.thread.name if fault.thread else "unknown"
        log.error("thread %s ended with a fault", name, exc_info=fault.exc_value)
