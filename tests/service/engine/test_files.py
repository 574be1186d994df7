"""Files read within bounds."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.engine.files import explain, open_regular, read_bounded


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(OSError, match=r"^it is larger than 4 bytes$"):
        read_bounded(path, 4)


def test_a_link_to_a_file_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    (tmp_path / "l").symlink_to("f")
    assert read_bounded(tmp_path / "l", 1) == b"1"


MAKERS: dict[str, Callable[[Path], None]] = {"pipe": os.mkfifo, "directory": Path.mkdir}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_no_file_is_refused_and_closed(tmp_path: Path, kind: str) -> None:
    MAKERS[kind](tmp_path / "f")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - of links that vanish
    with pytest.raises(OSError, match=r"^it is no regular file$"):
        open_regular(tmp_path / "f")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_an_absent_file_is_explained_without_its_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open_regular(tmp_path / "f")
    assert explain(caught.value) == "No such file or directory"
    assert explain(OSError("it is no regular file")) == "it is no regular file"
