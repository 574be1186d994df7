"""The directory of models: which versions it holds, and links that must not lead out of it."""

import os
from pathlib import Path

import pytest

from service.engine.directories import (
    DEMO,
    LinkError,
    Survey,
    find_models,
    resolve,
    survey_models,
)
from service.errors import StartError

OUTSIDE = "leads through a link out of the directory of models; put the files into it"


def make(*parts: Path | str) -> Path:
    directory = Path(*parts)
    directory.mkdir(parents=True)
    return directory


def add_manifest(*parts: Path | str) -> Path:
    directory = make(*parts)
    (directory / "manifest.json").write_text("{}")
    return directory


@pytest.fixture(name="root")
def make_root(tmp_path: Path) -> Path:
    return make(tmp_path, "models")


def test_versions_are_surveyed_by_model_in_the_order_of_their_numbers(root: Path) -> None:
    for parts in (("b-x.y", "10"), ("b-x.y", "9"), ("a", "1")):
        make(root, *parts)
    survey = survey_models(root)
    assert survey.root == root
    assert survey.names == ["a", "b-x.y"]
    assert survey.versions["b-x.y"] == [root / "b-x.y" / "9", root / "b-x.y" / "10"]
    assert survey.faults == {}


@pytest.mark.parametrize(
    "parts",
    [
        ("a", "0"), ("a", "01"), ("a", "v1"), ("a", "1234567890"), ("a", ".1"), (".a", "1"),
        ("..data", "1"), ("a b", "1"), ("-a", "1"), ("\N{SNOWMAN}", "1"), ("stats", "1"),
        ("a", "b", "1"),
    ],
    ids="/".join,
)  # fmt: skip
def test_directories_with_other_names_are_passed_over(root: Path, parts: tuple[str, ...]) -> None:
    make(root, *parts)
    make(root, "fine", "1")
    assert survey_models(root).versions == {"fine": [root / "fine" / "1"]}


def test_plain_files_and_links_to_nothing_are_passed_over(root: Path) -> None:
    make(root, "a")
    (root / "a" / "1").touch()
    (root / "b").touch()
    (root / "c").symlink_to("nothing")
    make(root, "d", "1")
    (root / "d" / "2").symlink_to("nothing")
    assert survey_models(root).versions == {"d": [root / "d" / "1"]}


def test_the_directory_of_one_model_is_a_repository_of_one(root: Path) -> None:
    for version in ("1", "3"):
        make(root, "layer", version)
    survey = survey_models(root / "layer")
    assert survey.versions == {"layer": [root / "layer" / "1", root / "layer" / "3"]}


def test_a_relative_directory_names_its_model_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, "layer", "1")
    monkeypatch.chdir(root / "layer")
    assert survey_models(Path()).names == ["layer"]


def test_an_empty_directory_holds_nothing_and_an_absent_one_is_no_empty_one(root: Path) -> None:
    assert survey_models(root) == Survey(root)
    with pytest.raises(FileNotFoundError):
        survey_models(root / "nothing")


def test_a_model_that_cannot_be_looked_at_is_told_and_the_others_are_found(root: Path) -> None:
    make(root, "fine", "1")
    make(root.parent, "elsewhere", "1")
    (root / "out").symlink_to(root.parent / "elsewhere")
    survey = survey_models(root)
    assert survey.names == ["fine", "out"]
    assert survey.faults == {"out": f"'out' {OUTSIDE}"}
    assert survey.versions == {"fine": [root / "fine" / "1"]}


def test_a_model_that_may_not_be_read_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(root, "locked", "1")
    iterate = Path.iterdir

    def refuse(path: Path) -> object:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return iterate(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert survey_models(root).faults == {
        "locked": "its directory cannot be read: Permission denied"
    }


LINKS = {
    "model": ("layer", "store/layer"),
    "version": ("layer/1", "../store/layer/1"),
    "file": ("layer/1/weights.bin", "../../store/layer/1/weights.bin"),
    "chain": ("layer", "..data/layer"),
    "dots": ("layer", "./store/../store//layer/."),
}


def link(root: Path, place: str, target: Path | str) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


@pytest.mark.parametrize("kind", LINKS)
def test_links_within_the_directory_are_followed_to_their_end(root: Path, kind: str) -> None:
    make(root, "store", "layer", "1", "weights.bin")
    (root / "..data").symlink_to("..2024_1")
    (root / "..2024_1").symlink_to("store")
    link(root, *LINKS[kind])
    found = resolve(root, root / "layer" / "1" / "weights.bin")
    assert found == root / "store" / "layer" / "1" / "weights.bin"
    assert str(found) == os.path.realpath(root / "layer" / "1" / "weights.bin")


def test_what_is_no_link_stays_as_it_is(root: Path) -> None:
    path = make(root, "layer", "1")
    assert resolve(root, path) == path
    assert resolve(root, root) == root


@pytest.mark.parametrize("given", ["link", "real"])
@pytest.mark.parametrize("target", ["link", "real"])
def test_an_absolute_link_may_name_the_directory_as_it_is_given_or_really_is(
    tmp_path: Path, given: str, target: str
) -> None:
    make(tmp_path, "real", "store")
    (tmp_path / "link").symlink_to("real")
    root = tmp_path / given
    link(root, "layer", tmp_path / target / "store")
    if (given, target) == ("real", "link"):
        with pytest.raises(LinkError):
            resolve(root, root / "layer")
    else:
        assert resolve(root, root / "layer") == root / "store"


def test_a_directory_whose_real_path_is_another_processes_is_read_as_it_is_given(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KServe mounts models as a link through /proc, whose real path is not there for us."""
    make(root, "store", "1")
    link(root, "layer", "/models/store")
    monkeypatch.setattr(os.path, "realpath", lambda _: "/models")
    assert resolve(root, root / "layer" / "1") == root / "store" / "1"
    link(root, "other", "/models2/store")
    with pytest.raises(LinkError):
        resolve(root, root / "other")


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("layer", "../outside"),
        ("layer", "../models/store"),
        ("layer", "store/../../outside"),
        ("layer", "/etc"),
        ("layer", "/"),
        ("layer/1", "../../outside/1"),
        ("layer/1", "chain"),
    ],
)
def test_a_link_that_leads_out_is_refused(root: Path, place: str, target: str) -> None:
    make(root.parent, "outside", "1")
    make(root, "store", "1")
    path = link(root, place, target)
    (path.parent / "chain").symlink_to("../../outside")
    with pytest.raises(LinkError) as caught:
        resolve(root, root / "layer" / "1")
    assert str(caught.value) == f"'layer/1' {OUTSIDE}"


def test_an_absolute_link_that_only_begins_like_the_directory_is_refused(root: Path) -> None:
    make(root.parent, "models2")
    link(root, "layer", root.parent / "models2")
    with pytest.raises(LinkError):
        resolve(root, root / "layer")


def test_an_absolute_link_may_not_climb_back_out(root: Path) -> None:
    make(root.parent, "outside")
    link(root, "layer", f"{root}/../outside")
    with pytest.raises(LinkError):
        resolve(root, root / "layer")


def test_links_in_circles_are_refused(root: Path) -> None:
    link(root, "a", "b")
    link(root, "b", "a")
    with pytest.raises(LinkError, match=r"^'a' leads through links in circles$"):
        resolve(root, root / "a")


def test_what_is_not_there_is_said_to_be_absent(root: Path) -> None:
    link(root, "layer", "nothing")
    for name in ("layer", "other"):
        with pytest.raises(FileNotFoundError):
            resolve(root, root / name)


def test_without_a_directory_the_demo_is_found() -> None:
    assert find_models(None, demo=False).versions == {"demo": [DEMO / "demo" / "1"]}


def test_directories_without_a_manifest_are_no_versions_at_the_start(root: Path) -> None:
    make(root, "a", "1")
    make(root, "b", "2")
    wanted = add_manifest(root, "b", "12")
    assert find_models(root, demo=False).versions == {"b": [wanted]}


@pytest.mark.parametrize("kind", ["empty", "absent", "file", "without manifest"])
def test_without_models_the_demo_stands_in_where_the_settings_say_so(root: Path, kind: str) -> None:
    if kind == "without manifest":
        make(root, "a", "1")
    models = root if kind in ("empty", "without manifest") else root / "nothing"
    if kind == "file":
        models.touch()
    assert find_models(models, demo=True).names == ["demo"]
    with pytest.raises(StartError) as caught:
        find_models(models, demo=False)
    assert str(caught.value) == (
        f"LIMELIGHT_MODELS is {models}, where no model was found, expected "
        "<name>/<version>/manifest.json, as limelight-export writes it"
    )


def test_the_demo_does_not_stand_in_for_models_that_are_there(root: Path) -> None:
    add_manifest(root, "a", "1")
    assert find_models(root, demo=True).names == ["a"]


def test_a_link_that_leads_out_stops_the_start(root: Path) -> None:
    add_manifest(root, "fine", "1")
    link(root, "layer", DEMO / "demo")
    with pytest.raises(StartError) as caught:
        find_models(root, demo=True)
    assert str(caught.value) == f"model layer: 'layer' {OUTSIDE}"


def test_a_directory_that_may_not_be_read_stops_the_start(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(StartError, match=r"^LIMELIGHT_MODELS cannot be read: Permission denied$"):
        find_models(root, demo=True)
