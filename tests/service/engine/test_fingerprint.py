"""What the file system says of a version's files."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from service.engine.directories import DEMO, LinkError
from service.engine.fingerprint import SETTLING_NS, Fingerprint

LATER_NS = SETTLING_NS + 1_000_000_000


@pytest.fixture(name="version")
def copy_demo(tmp_path: Path) -> Path:
    shutil.copytree(DEMO / "demo", tmp_path / "layer")
    return tmp_path / "layer" / "1"


def take(version: Path) -> Fingerprint:
    return Fingerprint.take(version, version.parents[1])


def rewrite(path: Path) -> None:
    """Other bytes of the same number, and the time of before, as copying tools leave them."""
    found, content = path.stat(), path.read_bytes()
    path.write_bytes(content[::-1])
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def replace(path: Path) -> None:
    """The same bytes and times in another file."""
    shutil.copy2(path, path.with_name("new"))
    path.with_name("new").rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "cut": lambda path: os.truncate(path, path.stat().st_size - 1),
    "rewritten": rewrite,
    "replaced": replace,
    "touched": Path.touch,
}


def test_what_does_not_change_keeps_its_fingerprint(version: Path) -> None:
    assert take(version) == take(version)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "file", ["weights.bin", "fused.onnx", "verification.json", "manifest.json", "../config.pbtxt"]
)
def test_every_change_of_every_file_is_seen(version: Path, file: str, change: str) -> None:
    before = take(version)
    time.sleep(0.02)  # a tick of the file system's clock
    CHANGES[change](version / file)
    assert take(version) != before


def test_files_that_do_not_belong_to_the_version_are_left_alone(version: Path) -> None:
    before = take(version)
    (version / "notes.txt").write_text("by hand")
    assert take(version) == before


@pytest.mark.parametrize("text", ["", "{", '{"format": 1}'])
def test_without_a_manifest_that_can_be_read_there_is_a_fingerprint_too(
    version: Path, text: str
) -> None:
    (version / "manifest.json").write_text(text)
    assert [name for name, _ in take(version).files] == ["config.pbtxt", "manifest.json"]
    (version / "manifest.json").unlink()
    assert dict(take(version).files)["manifest.json"] is None


def test_a_link_that_is_turned_is_seen_though_the_files_are_the_same(tmp_path: Path) -> None:
    shutil.copytree(DEMO / "demo", tmp_path / "..1" / "layer")
    (tmp_path / "..2").mkdir()
    (tmp_path / "..2" / "layer").symlink_to("../..1/layer")
    (tmp_path / "..3").symlink_to("..1")
    (tmp_path / "layer").symlink_to("..data/layer")
    found = []
    for target in ("..1", "..2", "..3"):
        (tmp_path / "new").symlink_to(target)
        (tmp_path / "new").rename(tmp_path / "..data")
        found.append(Fingerprint.take(tmp_path / "layer" / "1", tmp_path))
    assert found[0] == found[1] == found[2]  # all lead to the same place
    shutil.copytree(tmp_path / "..1", tmp_path / "..4", copy_function=os.link)
    (tmp_path / "new").symlink_to("..4")
    (tmp_path / "new").rename(tmp_path / "..data")
    turned = Fingerprint.take(tmp_path / "layer" / "1", tmp_path)
    assert turned.places != found[0].places


def test_a_directory_that_leads_out_or_is_absent_has_none(tmp_path: Path, version: Path) -> None:
    root = tmp_path / "models"
    root.mkdir()
    (root / "layer").symlink_to(version.parent)
    with pytest.raises(LinkError):
        Fingerprint.take(root / "layer" / "1", root)
    with pytest.raises(FileNotFoundError):
        Fingerprint.take(root / "other" / "1", root)


def test_it_is_settled_once_the_last_change_is_old(
    version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = take(version)
    assert not fingerprint.is_settled()
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + LATER_NS)
    assert fingerprint.is_settled()


def test_a_clock_that_was_set_back_does_not_keep_it_from_settling(
    version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = take(version)
    now_ns = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now_ns - LATER_NS)
    assert fingerprint.is_settled()


def test_a_time_of_modification_in_the_future_does_not_keep_it_from_settling(
    version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = time.time_ns()
    os.utime(version / "weights.bin", ns=(now_ns, now_ns * 2))
    monkeypatch.setattr(time, "time_ns", lambda: now_ns + LATER_NS)
    assert take(version).is_settled()
