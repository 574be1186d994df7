"""No more versions serve at the same time than the setting allows."""

import shutil
from pathlib import Path

from service.engine.repository import Repository
from tests.clients.versions import write_version
from tests.service.engine.control.facts import MakeControl, list_known, list_served

FULL = "2 versions of models are served already (LIMELIGHT_MAX_MODELS)"


def test_a_version_beyond_the_bound_waits_until_there_is_room(
    make: MakeControl, root: Path, repository: Repository
) -> None:
    control = make(max_models=2)
    for name in ("a", "b", "c"):
        write_version(root / name / "1", 1.5)
    control.scan()
    assert list_served(repository) == ["a/1", "b/1"]
    assert list_known(control)[-1] == ("c", "1", "UNAVAILABLE", FULL)
    shutil.rmtree(root / "a")
    control.scan()
    assert list_served(repository) == ["b/1", "c/1"]


def test_a_version_that_serves_can_be_loaded_again_at_the_bound(
    make: MakeControl, root: Path, repository: Repository
) -> None:
    control = make(max_models=2)
    for name in ("a", "b"):
        write_version(root / name / "1", 1.5)
        control.load(name)
    before = repository.get("a")
    control.load("a")
    assert repository.get("a") is not before


def test_a_version_takes_the_place_of_one_whose_directory_is_gone(
    make: MakeControl, root: Path, repository: Repository
) -> None:
    control = make(max_models=1)
    write_version(root / "a" / "1", 1.5)
    control.scan()
    write_version(root / "a" / "2", 2.0)
    control.scan()
    assert list_served(repository) == ["a/1"]
    shutil.rmtree(root / "a" / "1")
    control.scan()
    assert list_served(repository) == ["a/2"]
