"""A file of keys that may change while the server runs."""

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from service.http.keys import SETTING, Key, KeysError, parse_keys

MAX_FILE_BYTES: Final = 2**20
INTERVAL_S: Final = 1.0

log = logging.getLogger("limelight")


class KeyFile:
    """The keys of a file, read again when it changes; a broken one leaves the keys as they were.

    It is looked at when a key comes, once in `INTERVAL_S` at most. Its content is compared, not its
    times: they may stay the same where two changes come within one tick of the file system.

    Raises:
        KeysError: if the file cannot be read or is not a file of keys.
    """

    def __init__(self, path: Path, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock_s = clock_s
        self._data = read_file(path)
        self._keys = parse_keys(self._data)
        self._next_look_s = clock_s() + INTERVAL_S
        self._complaint = ""

    def find(self, key: bytes) -> Key | None:
        """What is known of a key that a client sent; none if it is not one of ours."""
        now_s = self._clock_s()
        if now_s >= self._next_look_s:
            self._next_look_s = now_s + INTERVAL_S
            self._look()
        return self._keys.find(key)

    def _look(self) -> None:
        try:
            data = read_file(self._path)
            if data != self._data:
                self._keys, self._data = parse_keys(data), data
                log.info("the keys have changed: there are %d", len(self._keys.known))
            self._complaint = ""
        except KeysError as error:
            self._complain(str(error))

    def _complain(self, text: str) -> None:
        """Say once what is wrong with the file."""
        if text != self._complaint:
            self._complaint = text
            log.error("%s; until then the keys stay as they were", text)


def read_file(path: Path) -> bytes:
    """The content of a file of keys.

    Raises:
        KeysError: if it cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would wait for its other end
            raise KeysError(f"{SETTING} is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # the error's own text repeats the path
        raise KeysError(
            f"{SETTING} cannot be read: {reason}; name a file that this process may read"
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise KeysError(f"{SETTING} is larger than {MAX_FILE_BYTES} bytes, expected a line a key")
    return data
