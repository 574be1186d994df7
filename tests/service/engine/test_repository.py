"""The models that are served, asked for by name and version."""

import threading
from pathlib import Path

import pytest

from model.contract import AttentionSpec
from service.engine.model import Model
from service.engine.repository import Repository
from service.engine.session import Session
from service.engine.sizes import Limits
from service.errors import NotFoundError


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


def make_model(name: str, version: str, limits: Limits) -> Model:
    return Model(Path("/m") / name / version, AttentionSpec(6, 3), "cpu", open_nothing, limits)


def serve(limits: Limits, *versions: tuple[str, str], default: str | None = None) -> Repository:
    repository = Repository(default)
    for name, version in versions:
        repository.add(make_model(name, version, limits))
    return repository


def test_names_and_versions_are_sorted_as_numbers(limits: Limits) -> None:
    repository = serve(limits, ("b", "10"), ("a", "1"), ("b", "9"))
    assert repository.names == ["a", "b"]
    assert repository.versions("b") == ["9", "10"]


def test_the_highest_version_answers_where_none_is_named(limits: Limits) -> None:
    repository = serve(limits, ("b", "10"), ("b", "9"))
    assert repository.get("b").version == "10"
    assert repository.get("b", "9").version == "9"


@pytest.mark.parametrize("version", ["2", "01", "", "latest"])
def test_an_unknown_version_is_refused_with_those_there_are(limits: Limits, version: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        serve(limits, ("b", "10"), ("b", "9")).get("b", version)
    assert str(caught.value) == f"model 'b' has no version '{version}', expected one of 9, 10"


def test_an_unknown_model_is_refused_with_those_there_are(limits: Limits) -> None:
    repository = serve(limits, ("b", "1"), ("a", "1"))
    for ask in (repository.get, repository.versions):
        with pytest.raises(NotFoundError, match=r"^model 'c' is not served here; served: a, b$"):
            ask("c")
    with pytest.raises(NotFoundError, match=r"^model 'c' is not served here; served: none$"):
        Repository().get("c")


def test_the_only_model_is_the_default(limits: Limits) -> None:
    assert serve(limits, ("a", "1"), ("a", "2")).get_default().version == "2"


def test_of_several_models_the_settings_choose_the_default(limits: Limits) -> None:
    versions = [("a", "1"), ("b", "1")]
    assert serve(limits, *versions, default="b").get_default().name == "b"
    with pytest.raises(NotFoundError) as caught:
        serve(limits, *versions).get_default()
    assert str(caught.value) == (
        "no model is named and 2 are served: add ?model=NAME with one of a, b, or set "
        "LIMELIGHT_DEFAULT_MODEL"
    )
    with pytest.raises(NotFoundError, match=r"^model 'c' is not served here; served: a, b$"):
        serve(limits, *versions, default="c").get_default()


def test_without_a_model_there_is_no_default() -> None:
    with pytest.raises(NotFoundError) as caught:
        Repository().get_default()
    assert str(caught.value) == "no model is served; load one, or look into the repository's index"


def test_every_version_is_listed_in_order(limits: Limits) -> None:
    repository = serve(limits, ("b", "10"), ("a", "1"), ("b", "9"))
    found = [(model.name, model.version) for model in repository.models]
    assert found == [("a", "1"), ("b", "9"), ("b", "10")]


def test_a_version_takes_the_place_of_the_same_one(limits: Limits) -> None:
    repository = serve(limits, ("a", "1"))
    before, after = repository.get("a"), make_model("a", "1", limits)
    repository.add(after)
    assert repository.get("a") is after is not before


def test_a_model_without_versions_is_served_no_longer(limits: Limits) -> None:
    repository = serve(limits, ("a", "1"), ("a", "2"), ("b", "1"))
    repository.exchange([], [("a", "2"), ("c", "1"), ("b", "3")])
    assert repository.versions("a") == ["1"]
    repository.exchange([], [("a", "1")])
    assert repository.names == ["b"]


def test_an_exchange_is_seen_as_a_whole(limits: Limits) -> None:
    """Versions come and go in turns; who looks at any moment finds exactly one."""
    repository = serve(limits, ("a", "1"))
    found, stop = set[tuple[str, ...]](), threading.Event()

    def look() -> None:
        while not stop.is_set():
            found.add(tuple(repository.versions("a")))
            found.add((repository.get("a").version,))
            found.add((repository.get_default().version,))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(1000):
        old, new = str(1 + turn % 2), str(2 - turn % 2)
        repository.exchange([make_model("a", new, limits)], [("a", old)])
    stop.set()
    for thread in threads:
        thread.join()
    assert found <= {("1",), ("2",)}
