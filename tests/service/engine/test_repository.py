"""The models that are served: how they are found, loaded, and asked for by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from model.contract import FUSED_WEIGHTS, AttentionSpec
from service.engine.model import Model
from service.engine.repository import DEMO, Loader, Repository, find_versions
from service.engine.session import Session
from service.engine.sizes import Limits
from service.errors import NotFoundError, ServiceError, StartError

VERSION = DEMO / "demo" / "1"


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


def make_model(name: str, version: str, limits: Limits) -> Model:
    return Model(Path("/m") / name / version, AttentionSpec(6, 3), "cpu", open_nothing, limits)


def serve(limits: Limits, *versions: tuple[str, str], default: str | None = None) -> Repository:
    repository = Repository(default)
    for name, version in versions:
        repository.add(make_model(name, version, limits))
    return repository


def add_manifest(*parts: Path | str) -> Path:
    directory = Path(*parts)
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text("{}")
    return directory


def copy_demo(target: Path) -> Path:
    return Path(shutil.copytree(VERSION, target))


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


def test_without_a_directory_the_demo_is_found() -> None:
    assert find_versions(None, demo=False) == [VERSION]


def test_every_version_of_a_repository_is_found(tmp_path: Path) -> None:
    wanted = [add_manifest(tmp_path, *parts) for parts in (("a", "1"), ("a", "2"), ("b-x.y", "12"))]
    assert find_versions(tmp_path, demo=False) == wanted


def test_the_directory_of_one_model_is_a_repository_of_one(tmp_path: Path) -> None:
    wanted = [add_manifest(tmp_path, "layer", version) for version in ("1", "3")]
    assert find_versions(tmp_path / "layer", demo=False) == wanted


@pytest.mark.parametrize(
    "parts",
    [
        ("a", "0"), ("a", "01"), ("a", "v1"), ("a", "1234567890"), ("a", ".1"), (".a", "1"),
        ("a b", "1"), ("-a", "1"), ("\N{SNOWMAN}", "1"), ("1",), ("a", "b", "1"),
    ],
    ids="/".join,
)  # fmt: skip
def test_directories_with_other_names_are_passed_over(
    tmp_path: Path, parts: tuple[str, ...]
) -> None:
    add_manifest(tmp_path / "models", *parts)
    wanted = add_manifest(tmp_path / "models", "fine", "1")
    assert find_versions(tmp_path / "models", demo=False) == [wanted]


def test_a_directory_without_a_manifest_and_a_plain_file_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a" / "1").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1").touch()
    (tmp_path / "c").touch()
    wanted = add_manifest(tmp_path, "d", "1")
    assert find_versions(tmp_path, demo=False) == [wanted]


@pytest.mark.parametrize("there", [True, False])
def test_without_models_the_demo_stands_in_where_the_settings_say_so(
    tmp_path: Path, *, there: bool
) -> None:
    models = tmp_path if there else tmp_path / "nothing"
    assert find_versions(models, demo=True) == [VERSION]
    with pytest.raises(StartError) as caught:
        find_versions(models, demo=False)
    assert str(caught.value) == (
        f"LIMELIGHT_MODELS is {models}, where no model was found, expected "
        "<name>/<version>/manifest.json, as limelight-export writes it"
    )


def test_the_demo_does_not_stand_in_for_models_that_are_there(tmp_path: Path) -> None:
    wanted = add_manifest(tmp_path, "a", "1")
    assert find_versions(tmp_path, demo=True) == [wanted]


def test_a_version_is_loaded_and_has_answered(limits: Limits) -> None:
    model = Loader("cpu", 1, limits).load(VERSION)
    assert (model.name, model.version, model.provider) == ("demo", "1", "cpu")
    assert model.spec == AttentionSpec(6, 3)


@pytest.mark.parametrize("linked", ["model", "version", "files"])
def test_models_behind_links_are_found_and_loaded_under_the_name_of_the_link(
    tmp_path: Path, limits: Limits, linked: str
) -> None:
    copy_demo(tmp_path / "store" / "demo" / "1")
    models = tmp_path / "models"
    models.mkdir()
    if linked == "model":
        (models / "layer").symlink_to(tmp_path / "store" / "demo")
    elif linked == "version":
        (models / "layer").mkdir()
        (models / "layer" / "1").symlink_to(tmp_path / "store" / "demo" / "1")
    else:
        (models / "layer" / "1").mkdir(parents=True)
        for path in (tmp_path / "store" / "demo" / "1").iterdir():
            (models / "layer" / "1" / path.name).symlink_to(path)
    (directory,) = find_versions(models, demo=False)
    assert Loader("cpu", 1, limits).load(directory).name == "layer"


def test_a_relative_directory_names_its_model_too(
    tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_demo(tmp_path / "layer" / "1")
    monkeypatch.chdir(tmp_path / "layer")
    (directory,) = find_versions(Path(), demo=False)
    assert Loader("cpu", 1, limits).load(directory).name == "layer"


@pytest.mark.parametrize("relative", [True, False])
def test_a_damaged_version_stops_the_start_by_name(
    tmp_path: Path, limits: Limits, monkeypatch: pytest.MonkeyPatch, *, relative: bool
) -> None:
    directory = copy_demo(tmp_path / "layer" / "1")
    (directory / "weights.bin").unlink()
    monkeypatch.chdir(tmp_path / "layer")
    with pytest.raises(StartError) as caught:
        Loader("cpu", 1, limits).load(Path("1") if relative else directory)
    assert str(caught.value) == "model layer/1: weights.bin is missing"


@pytest.mark.parametrize("changed", ["fused_weights.onnx", "weights.bin"])
def test_a_graph_that_is_opened_later_is_the_one_that_was_checked(
    tmp_path: Path, limits: Limits, changed: str
) -> None:
    """Else plain answers came from the old weights, and answers with weights from the new."""
    directory = copy_demo(tmp_path / "layer" / "1")
    model = Loader("cpu", 1, limits).load(directory)
    content = bytearray((directory / changed).read_bytes())
    content[-1] ^= 1
    (directory / changed).write_bytes(content)
    with pytest.raises(ServiceError) as caught:
        model.open(FUSED_WEIGHTS)
    assert str(caught.value) == (
        f"the model changed on the disk since it was loaded ({changed} differs from its entry in "
        "manifest.json); restart the server"
    )


def test_sizes_that_the_graphs_do_not_have_stop_the_start(tmp_path: Path, limits: Limits) -> None:
    directory = copy_demo(tmp_path / "layer" / "1")
    path = directory / "manifest.json"
    content: dict[str, Any] = json.loads(path.read_text())
    content["attention"].update(d_model="9", kdim="9", vdim="9")
    path.write_text(json.dumps(content))
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        Loader("cpu", 1, limits).load(directory)
