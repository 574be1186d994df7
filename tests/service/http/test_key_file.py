"""A file of keys that changes while the server runs."""

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.http.key_file import INTERVAL_S, MAX_FILE_BYTES, KeyFile
from service.http.keys import KeysError

FIRST, SECOND = b"the first key", b"the second key"


def write_line(key: bytes, role: str = "infer") -> bytes:
    """The line of a key."""
    return f"{role}:{hashlib.sha256(key).hexdigest()}\n".encode()


class Clock:
    """A clock that a test moves."""

    now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that holds the first key."""
    path = tmp_path / "keys"
    path.write_bytes(write_line(FIRST))
    return path


Change = Callable[[Path], Any]


def replace_by_rename(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(write_line(SECOND))
    new.rename(path)


CHANGES: dict[str, Change] = {
    "written": lambda path: path.write_bytes(write_line(SECOND)),
    "renamed": replace_by_rename,
}


def who_fits(file: KeyFile) -> list[bytes]:
    """Which of the two keys are known."""
    return [key for key in (FIRST, SECOND) if file.find(key)]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_file_is_read_again_when_a_second_has_passed(
    path: Path, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    file = KeyFile(path, clock)
    before = path.stat()
    change(path)
    # Two changes may come within one tick of the file system, and a hash is as long as any other.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    clock.now_s += INTERVAL_S * 0.9
    assert who_fits(file) == [FIRST]
    clock.now_s += INTERVAL_S * 0.2
    with caplog.at_level(logging.INFO):
        assert who_fits(file) == [SECOND]
    assert [record.getMessage() for record in caplog.records] == [
        "the keys have changed: there are 1"
    ]


def test_a_secret_of_kubernetes_is_followed(tmp_path: Path) -> None:
    """It is a link to a link to a folder, and the second is turned to another folder at once."""
    for name, key in (("first", FIRST), ("second", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "keys").write_bytes(write_line(key))
    (tmp_path / "..data").symlink_to("first")
    (tmp_path / "keys").symlink_to("..data/keys")
    clock = Clock()
    file = KeyFile(tmp_path / "keys", clock)
    assert who_fits(file) == [FIRST]
    (tmp_path / "..new").symlink_to("second")
    (tmp_path / "..new").rename(tmp_path / "..data")
    clock.now_s += INTERVAL_S
    assert who_fits(file) == [SECOND]


def test_an_unchanged_file_is_looked_at_once_a_second(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, open_file, opened = Clock(), Path.open, list[Path]()
    file = KeyFile(path, clock)

    def open_noted(path: Path, mode: Any) -> Any:
        opened.append(path)
        return open_file(path, mode)

    monkeypatch.setattr(Path, "open", open_noted)
    for _ in range(40):
        clock.now_s += INTERVAL_S / 8
        file.find(FIRST)
    assert len(opened) == 5


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


BROKEN: dict[str, tuple[Change, str]] = {
    "no-key": (
        lambda path: path.write_bytes(b""),
        "LIMELIGHT_API_KEYS_FILE holds no key; limelight-serve hash-key --new makes one",
    ),
    "bad-line": (
        lambda path: path.write_bytes(write_line(SECOND) + b"infer:\n"),
        "LIMELIGHT_API_KEYS_FILE, line 2: expected role:hash, where role is infer or admin and "
        "hash is 64 hexadecimal digits; limelight-serve hash-key prints such a line",
    ),
    "gone": (
        Path.unlink,
        "LIMELIGHT_API_KEYS_FILE cannot be read: No such file or directory; name a file that this "
        "process may read",
    ),
    "a-folder": (
        put_folder,
        "LIMELIGHT_API_KEYS_FILE is not a file",
    ),
    "a-pipe": (
        put_pipe,
        "LIMELIGHT_API_KEYS_FILE is not a file",
    ),
    "too-large": (
        lambda path: path.write_bytes(b"#" * (MAX_FILE_BYTES + 1)),
        f"LIMELIGHT_API_KEYS_FILE is larger than {MAX_FILE_BYTES} bytes, expected a line a key",
    ),
}


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_leaves_the_keys_as_they_were_and_is_told_once(
    path: Path, change: Change, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    file = KeyFile(path, clock)
    change(path)
    for _ in range(3):
        clock.now_s += INTERVAL_S
        assert who_fits(file) == [FIRST]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", f"{said}; until then the keys stay as they were")
    ]


def test_a_file_that_was_mended_counts_again(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    file = KeyFile(path, clock)
    for data in (b"", write_line(SECOND), b""):
        path.write_bytes(data)
        clock.now_s += INTERVAL_S
        file.find(FIRST)
    assert who_fits(file) == [SECOND]
    levels = [record.levelname for record in caplog.records if record.levelno > logging.INFO]
    assert levels == ["ERROR", "ERROR"]


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_ends_the_start(path: Path, change: Change, said: str) -> None:
    change(path)
    with pytest.raises(KeysError) as caught:
        KeyFile(path)
    assert str(caught.value) == said
