"""Faults that come back at every look, said once in the log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from service.engine.files import explain

log = logging.getLogger("limelight")


class Complaints:
    """Remembers the last fault of each subject; a subject that was well may complain again."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    @contextmanager
    def about(self, subject: str) -> Iterator[None]:
        """Log what a block raises, unless that was the last fault of this subject, and go on."""
        try:
            yield
        except OSError as error:
            if self._is_news(subject, explain(error)):
                log.warning("%s cannot be read: %s", subject, explain(error))
        except Exception as error:
            if self._is_news(subject, repr(error)):
                log.exception("%s cannot be looked at", subject)
        else:
            self._said.pop(subject, None)

    def _is_news(self, subject: str, fault: str) -> bool:
        if self._said.get(subject) == fault:
            return False
        self._said[subject] = fault
        return True
