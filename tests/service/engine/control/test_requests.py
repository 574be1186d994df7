"""Models loaded and unloaded on request, while the server runs."""

import gc
import shutil
import weakref
from pathlib import Path

import pytest

from service.engine.control import Control
from service.engine.renewal import Renewal
from service.engine.repository import Repository
from service.errors import InvalidRequestError, NotFoundError, UnavailableError
from tests.clients.versions import write_version
from tests.service.engine.control.facts import (
    DIFFERS,
    MISSING,
    OUTSIDE,
    MakeControl,
    break_version,
    events_of,
    infer,
    list_known,
    list_served,
)


def test_a_model_is_loaded_with_all_its_versions(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    for version in ("2", "10"):
        write_version(root / "layer" / version, 1.5)
    control.load("layer")
    assert list_served(repository) == events_of(events, "+") == ["layer/2", "layer/10"]
    assert list_known(control) == [("layer", "2", "READY", ""), ("layer", "10", "READY", "")]


def test_a_model_is_loaded_again_with_new_sessions(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.load("layer")
    before = repository.get("layer")
    control.load("layer")
    assert repository.get("layer") is not before
    assert infer(repository.get("layer")) == infer(before)
    assert events == ["+layer/1", "+layer/1"]


def test_a_model_that_is_not_there_is_not_loaded(control: Control, root: Path) -> None:
    (root / "empty").mkdir()
    for name in ("layer", "empty", "..", "../models"):
        with pytest.raises(NotFoundError) as caught:
            control.load(name)
        assert str(caught.value) == (
            f"the directory of models has no model '{name}', expected {name}/<version>/"
            "manifest.json, as limelight-export writes it"
        )


def test_versions_that_fail_are_told_and_the_others_serve(
    control: Control, root: Path, repository: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    for version in ("1", "2", "3"):
        write_version(root / "layer" / version, 1.5)
    break_version(root / "layer" / "2")
    (root / "layer" / "3" / "weights.bin").write_bytes(b"half")
    for _ in range(2):
        with pytest.raises(InvalidRequestError) as caught:
            control.load("layer")
        assert str(caught.value) == (
            f"model 'layer' is not loaded: version 2: {MISSING}; version 3: {DIFFERS}"
        )
    assert list_served(repository) == ["layer/1"]
    assert list_known(control) == [
        ("layer", "1", "READY", ""),
        ("layer", "2", "UNAVAILABLE", MISSING),
        ("layer", "3", "UNAVAILABLE", DIFFERS),
    ]
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"model layer/2: {MISSING}", f"model layer/3: {DIFFERS}"]


def test_a_version_that_fails_leaves_the_same_one_that_served(
    control: Control, root: Path, repository: Repository
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.load("layer")
    before = repository.get("layer")
    break_version(root / "layer" / "1")
    with pytest.raises(InvalidRequestError):
        control.load("layer")
    assert repository.get("layer") is before
    assert infer(before)
    assert list_known(control) == [("layer", "1", "READY", MISSING)]


def test_a_version_whose_directory_is_gone_is_unloaded_by_the_next_load(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    for version in ("1", "2"):
        write_version(root / "layer" / version, 1.5)
    control.load("layer")
    shutil.rmtree(root / "layer" / "1")
    control.load("layer")
    assert list_served(repository) == ["layer/2"]
    assert events_of(events, "-") == ["layer/1"]
    assert list_known(control) == [("layer", "2", "READY", "")]


def test_a_model_behind_a_link_that_leads_out_is_not_loaded(control: Control, root: Path) -> None:
    write_version(root.parent / "elsewhere" / "1", 1.5)
    (root / "layer").symlink_to("../elsewhere")
    with pytest.raises(InvalidRequestError) as caught:
        control.load("layer")
    assert str(caught.value) == f"model 'layer' is not loaded: {OUTSIDE}"
    assert list_known(control) == [("layer", "", "UNAVAILABLE", OUTSIDE)]
    (root / "layer").unlink()
    (root.parent / "elsewhere").rename(root / "layer")
    control.load("layer")
    assert list_known(control) == [("layer", "1", "READY", "")]


def test_a_directory_that_cannot_be_read_is_told(make: MakeControl, root: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        make(root / "nothing").load("layer")
    assert str(caught.value) == (
        "the directory of models cannot be read: No such file or directory"
    )


def test_a_model_is_unloaded_and_loaded_again(
    control: Control, root: Path, repository: Repository, events: list[str]
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.load("layer")
    control.unload("layer")
    assert list_served(repository) == []
    assert events == ["+layer/1", "-layer/1"]
    assert list_known(control) == [("layer", "1", "UNAVAILABLE", "unloaded")]
    control.unload("layer")
    control.load("layer")
    assert list_known(control) == [("layer", "1", "READY", "")]


def test_a_model_that_was_never_loaded_may_be_unloaded_but_not_one_that_is_not_there(
    control: Control, root: Path
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.unload("layer")
    assert list_known(control) == []
    with pytest.raises(NotFoundError, match=r"^the directory of models has no model 'other'$"):
        control.unload("other")


def test_a_model_whose_directory_is_gone_may_be_unloaded(control: Control, root: Path) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.load("layer")
    shutil.rmtree(root)
    control.unload("layer")
    assert list_known(control) == [("layer", "1", "UNAVAILABLE", "unloaded")]


def test_an_unloaded_model_is_gone_with_its_last_request(
    control: Control, root: Path, repository: Repository
) -> None:
    """Nothing but references holds it: collecting garbage would stop all requests."""
    write_version(root / "layer" / "1", 1.5)
    control.load("layer")
    in_flight = repository.get("layer")
    gone = weakref.ref(in_flight)
    gc.disable()
    try:
        control.unload("layer")
        shutil.rmtree(root)
        assert infer(in_flight)
        del in_flight
        assert gone() is None
    finally:
        gc.enable()


def test_while_a_model_loads_and_unloads_the_index_says_so(
    control: Control, root: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_version(root / "layer" / "1", 1.5)
    seen = []
    load, exchange = Renewal.load, Repository.exchange

    def look_and_load(*arguments: object) -> object:
        seen.append(list_known(control))
        return load(*arguments)  # type: ignore[arg-type]

    def look_and_exchange(*arguments: object) -> None:
        seen.append(list_known(control))
        exchange(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Renewal, "load", look_and_load)
    control.load("layer")
    control.load("layer")
    monkeypatch.setattr(Repository, "exchange", look_and_exchange)
    control.unload("layer")
    states = [[entry[2] for entry in entries] for entries in seen]
    assert states == [["LOADING"], ["READY"], ["UNLOADING"]]


def test_all_models_or_some_are_loaded_at_the_start_whatever_fails(
    make: MakeControl, root: Path, repository: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        write_version(root / name / "1", 1.5)
    break_version(root / "b" / "1")
    make().load_all(["c", "other", "b"])
    assert list_served(repository) == ["c/1"]
    assert "the directory of models has no model 'other'" in caplog.messages
    make().load_all(None)
    assert list_served(repository) == ["a/1", "c/1"]
    make().load_all([])


def test_a_directory_that_is_not_there_yet_does_not_stop_the_start(
    make: MakeControl, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for start in (make(root / "x").scan, lambda: make(root / "x").load_all(None)):
        caplog.clear()
        start()
        assert caplog.messages == [
            "the directory of models cannot be read: No such file or directory"
        ]


def test_what_was_never_loaded_is_listed_too(control: Control, root: Path) -> None:
    for name in ("a", "b"):
        write_version(root / name / "1", 1.5)
    (root / "c").symlink_to("../..")
    control.load("b")
    assert [(e.name, e.version, e.state, e.reason) for e in control.list_entries()] == [
        ("a", "1", "UNAVAILABLE", "not loaded"),
        ("b", "1", "READY", ""),
        ("c", "", "UNAVAILABLE", OUTSIDE.replace("layer", "c")),
    ]


def test_what_is_neither_served_nor_there_is_not_listed(control: Control, root: Path) -> None:
    for version in ("1", "2"):
        write_version(root / "layer" / version, 1.5)
    control.load("layer")
    control.unload("layer")
    shutil.rmtree(root / "layer" / "1")
    assert [entry.version for entry in control.list_entries()] == ["2"]
    shutil.rmtree(root)
    assert [entry.version for entry in control.list_entries()] == ["1", "2"]  # who knows


def test_a_server_that_stops_loads_no_more(
    control: Control, root: Path, repository: Repository
) -> None:
    write_version(root / "layer" / "1", 1.5)
    control.stop()
    with pytest.raises(UnavailableError, match=r"^the server is stopping$"):
        control.load("layer")
    control.scan()
    control.load_all(None)
    assert list_served(repository) == []
