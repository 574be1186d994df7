"""Models that follow their directory, while the server runs."""

import shutil
from pathlib import Path

import pytest

from service.engine.control import Control
from service.engine.directories import Survey, survey_models
from service.engine.renewal import Renewal
from service.engine.repository import Repository
from tests.clients.versions import write_version
from tests.service.engine.control.facts import (
    DIFFERS,
    MISSING,
    OUTSIDE,
    MakeControl,
    break_version,
    infer,
    list_known,
    list_served,
)

KEPT = "its directory is gone; it serves until another version of the model does"


def test_a_scan_loads_what_is_new_and_unloads_what_is_gone(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    write_version(root / "a" / "2", 2.0)
    write_version(root / "b" / "1", 0.5)
    control.scan()
    assert list_served(repository) == ["a/1", "a/2", "b/1"]
    shutil.rmtree(root / "a" / "1")
    shutil.rmtree(root / "b")
    control.scan()
    assert list_served(repository) == ["a/2"]
    assert events == ["+a/1", "+a/2", "+b/1", "-a/1", "-b/1"]
    assert list_known(control) == [("a", "2", "READY", "")]


def test_a_scan_leaves_alone_what_has_not_changed(
    control: Control, root: Path, repository: Repository
) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    before = repository.get("a")
    (root / "a" / "1" / "weights.bin").touch()
    control.scan()
    assert repository.get("a") is before


def test_a_version_that_is_overwritten_serves_on_until_it_is_whole(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    before, answer = repository.get("a"), infer(repository.get("a"))
    write_version(root / ".new", 2.0)
    for file in ("weights.bin", "manifest.json"):
        shutil.copy(root / ".new" / file, root / "a" / "1" / file)
        control.scan()
        if file == "weights.bin":
            assert list_known(control) == [("a", "1", "READY", DIFFERS)]
            assert repository.get("a") is before
            assert infer(before) == answer
    assert list_known(control) == [("a", "1", "READY", "")]
    assert infer(repository.get("a")) != answer
    assert events == ["+a/1", "+a/1"]


def test_a_version_that_is_mended_is_ready_without_a_reason(control: Control, root: Path) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    (root / "a" / "1" / "weights.bin").rename(root / "aside")
    control.scan()
    assert list_known(control) == [("a", "1", "READY", MISSING)]
    (root / "aside").rename(root / "a" / "1" / "weights.bin")
    control.scan()
    assert list_known(control) == [("a", "1", "READY", "")]


def test_a_version_that_is_copied_is_loaded_when_it_is_whole(
    control: Control, root: Path, repository: Repository
) -> None:
    write_version(root / ".whole", 1.5)
    files = sorted(path.name for path in (root / ".whole").iterdir())
    (root / "a" / "1").mkdir(parents=True)
    for file in files:
        control.scan()
        assert list_served(repository) == []
        shutil.copy(root / ".whole" / file, root / "a" / "1" / file)
    control.scan()
    assert list_served(repository) == ["a/1"]


def test_a_version_that_never_served_is_forgotten_with_its_directory(
    control: Control, root: Path
) -> None:
    write_version(root / "a" / "1", 1.5)
    break_version(root / "a" / "1")
    control.scan()
    (root / "a").rename(root / ".aside")
    control.scan()
    assert list_known(control) == []
    (root / ".aside").rename(root / "a")
    control.scan()
    assert list_known(control) == [("a", "1", "UNAVAILABLE", MISSING)]


def test_a_fault_is_logged_once_and_again_when_it_is_another(
    control: Control, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_version(root / "a" / "1", 1.5)
    break_version(root / "a" / "1")
    for _ in range(3):
        control.scan()
    (root / "a" / "1" / "weights.bin").write_bytes(b"half")
    for _ in range(3):
        control.scan()
    assert caplog.messages == [f"model a/1: {MISSING}", f"model a/1: {DIFFERS}"]


def test_fields_that_are_ignored_are_named_once_for_each_content(
    control: Control, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for version in ("1", "2"):
        write_version(root / "a" / version, 1.5)
    for text in ("x: 1", "x: 2 y { z: 3 }", "x: 3 y: 4", "max_batch_size: 3", "x: 5 y: 6"):
        (root / "a" / "config.pbtxt").write_text(text)
        for _ in range(2):
            control.scan()
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    said = "model a: fields of config.pbtxt are ignored"
    assert warnings == [f"{said}: x", f"{said}: x, y"]


def test_a_new_version_that_is_broken_leaves_the_old_one_though_its_directory_is_gone(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    shutil.rmtree(root / "a" / "1")
    write_version(root / "a" / "2", 2.0)
    (root / "a" / "2" / "weights.bin").rename(root / "aside")
    for _ in range(2):
        control.scan()
    assert list_served(repository) == ["a/1"]
    assert list_known(control) == [("a", "1", "READY", KEPT), ("a", "2", "UNAVAILABLE", MISSING)]
    (root / "aside").rename(root / "a" / "2" / "weights.bin")
    control.scan()
    assert list_served(repository) == ["a/2"]
    assert events == ["+a/1", "+a/2", "-a/1"]
    assert list_known(control) == [("a", "2", "READY", "")]


def test_a_link_is_turned_without_a_moment_without_a_model(
    control: Control, root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kubernetes mounts files: a link by the name of the model into ``..data``."""
    write_version(root / "..1" / "a" / "1", 1.5)
    write_version(root / "..2" / "a" / "2", 2.0)
    (root / "..data").symlink_to("..1")
    (root / "a").symlink_to("..data/a")
    seen, exchange = [], Repository.exchange

    def look_and_exchange(*arguments: object) -> None:
        exchange(*arguments)  # type: ignore[arg-type]
        seen.append(list_served(repository))

    monkeypatch.setattr(Repository, "exchange", look_and_exchange)
    control.scan()
    (root / "..new").symlink_to("..2")
    (root / "..new").rename(root / "..data")
    shutil.rmtree(root / "..1")
    control.scan()
    assert list_served(repository) == ["a/2"]
    assert [] not in seen


def test_nothing_is_unloaded_because_a_link_was_turned_while_it_was_followed(
    control: Control, root: Path, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_version(root / "a" / "1", 1.5)
    control.scan()
    torn = [Survey(root), None]

    def look(path: Path) -> Survey:
        return torn.pop(0) or survey_models(path)

    monkeypatch.setattr("service.engine.control.survey_models", look)
    control.scan()
    assert torn == []
    assert events == ["+a/1"]


def test_a_directory_that_vanishes_for_a_moment_changes_nothing(
    make: MakeControl, root: Path, events: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    control = make(demo=True)
    write_version(root / "a" / "1", 1.5)
    control.scan()
    root.rename(root.parent / "aside")
    for _ in range(3):
        control.scan()
    (root.parent / "aside").rename(root)
    control.scan()
    assert events == ["+a/1"]
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["the directory of models cannot be read: No such file or directory"]


def test_one_bad_directory_stops_no_scan(
    control: Control,
    root: Path,
    repository: Repository,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "bad", "c"):
        write_version(root / name / "1", 1.5)
    check = Renewal.check

    def fail_for_bad(self: Renewal, directory: Path, *arguments: object, **options: bool) -> object:
        if directory.parent.name == "bad":
            raise RuntimeError("bug")
        return check(self, directory, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Renewal, "check", fail_for_bad)
    for _ in range(3):
        control.scan()
    assert list_served(repository) == ["a/1", "c/1"]
    assert caplog.messages.count("model bad cannot be looked at") == 1


def test_a_model_that_leads_out_after_a_while_serves_on(
    control: Control, root: Path, repository: Repository
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.scan()
    (root / "layer").rename(root.parent / "elsewhere")
    (root / "layer").symlink_to("../elsewhere")
    control.scan()
    assert list_served(repository) == ["layer/1"]
    assert list_known(control) == [
        ("layer", "", "UNAVAILABLE", OUTSIDE),
        ("layer", "1", "READY", ""),
    ]


def test_the_demo_stands_in_until_there_is_a_model(
    make: MakeControl, root: Path, repository: Repository
) -> None:
    control = make(root / "later", demo=True)
    control.scan()
    assert list_served(repository) == ["demo/1"]
    (root / "later").mkdir()
    control.scan()
    assert list_served(repository) == ["demo/1"]
    write_version(root / "later" / "a" / "3", 1.5)
    control.scan()
    assert list_served(repository) == ["a/3"]


def test_without_a_directory_the_demo_is_there(make: MakeControl, repository: Repository) -> None:
    make(None).load("demo")
    assert list_served(repository) == ["demo/1"]
