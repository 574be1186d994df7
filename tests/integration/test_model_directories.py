"""What LIMELIGHT_MODELS may be, and which directories are no models."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.demo import D, check_close, draw_tokens, expect
from tests.integration.doors import read_answer, write_nested
from tests.integration.server_process import ROOT, run_command, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
DEMO = ROOT / "service" / "demo" / "demo" / "1"
CONTROLS = ["none", "explicit", "poll"]
TENSORS = draw_tokens()
REFUSAL_TIMEOUT_S = 30


@pytest.fixture(name="models")
def make_repository(tmp_path: Path) -> Path:
    """A repository of one model with two versions, the later one as a number only."""
    for version in ("3", "12"):
        shutil.copytree(DEMO, tmp_path / "models" / "mine" / version)
    return tmp_path / "models"


def refuse(models: Path, **settings: str) -> str:
    """The one line with which a start ends."""
    settings |= {"LIMELIGHT_MODELS": str(models), "LIMELIGHT_PORT": "0"}
    done = run_command(timeout_s=REFUSAL_TIMEOUT_S, **settings)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line.removeprefix("limelight-serve: ")


def write(version: Path, name: str, content: bytes) -> None:
    """Put a file into a version, and its entry into the manifest."""
    (version / name).write_bytes(content)
    manifest = json.loads((version / "manifest.json").read_text())
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["files"][name] = entry
    (version / "manifest.json").write_text(json.dumps(manifest))


def attend(url: str, **options: str) -> httpx.Response:
    """Ask the friendly door."""
    return httpx.post(f"{url}/v1/attention", json=write_nested(TENSORS), params=options)


def check_right(response: httpx.Response) -> dict[str, Any]:
    """The notes of an answer that has the right numbers."""
    check_close(read_answer(response), expect(TENSORS, weights="none"))
    return dict(response.json())


@pytest.mark.parametrize("part", [".", "mine"], ids=["repository", "directory-of-one-model"])
def test_a_repository_or_the_directory_of_one_model(models: Path, part: str) -> None:
    with start_server("--models", str(models / part)) as server:
        metadata = httpx.get(f"{server.url}/v2/models/mine").json()
        assert metadata["versions"] == ["3", "12"]
        assert check_right(attend(server.url))["model_version"] == "12"
        assert check_right(attend(server.url, version="3"))["model_version"] == "3"


def test_a_repository_may_be_named_relative_to_the_current_directory(models: Path) -> None:
    relative = os.path.relpath(models, ROOT)
    with start_server(LIMELIGHT_MODELS=relative) as server:
        check_right(attend(server.url))


@pytest.mark.parametrize("control", CONTROLS)
def test_a_repository_may_hold_links_that_stay_in_it(
    models: Path, tmp_path: Path, control: str
) -> None:
    (models / "..data").symlink_to("..2024")
    (models / "mine").rename(tmp_path / "mine")
    (models / "..2024").mkdir()
    (tmp_path / "mine").rename(models / "..2024" / "mine")
    (models / "mine").symlink_to("..data/mine")
    (models / "linked").mkdir()
    (models / "linked" / "1").symlink_to("../mine/3")
    (tmp_path / "mounted").symlink_to("models")
    with start_server(
        LIMELIGHT_MODELS=str(tmp_path / "mounted"), LIMELIGHT_MODEL_CONTROL=control
    ) as server:
        for name in ("linked", "mine"):
            check_right(attend(server.url, model=name))


@pytest.mark.parametrize("control", CONTROLS)
def test_a_link_that_leads_out_is_not_followed(models: Path, tmp_path: Path, control: str) -> None:
    (models / "mine" / "12").rename(tmp_path / "12")
    (models / "mine" / "12").symlink_to(tmp_path / "12")
    reason = "'mine/12' leads through a link out of the directory of models; put the files into it"
    if control == "none":
        assert refuse(models) == f"model mine/12: {reason}"
        return
    with start_server(LIMELIGHT_MODELS=str(models), LIMELIGHT_MODEL_CONTROL=control) as server:
        assert check_right(attend(server.url))["model_version"] == "3"
        _, entry = httpx.post(f"{server.url}/v2/repository/index").json()
        assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", reason)


def test_a_graph_whose_weights_lie_elsewhere_is_refused(models: Path, tmp_path: Path) -> None:
    version = models / "mine" / "12"
    shutil.copy(version / "weights.bin", tmp_path / "weights.bin")
    graph = (version / "fused.onnx").read_bytes()
    # A name of the same length keeps the file in its form.
    write(version, "fused.onnx", graph.replace(b"weights.bin", b"../x/we.bin"))
    assert refuse(models) == (
        "model mine/12: fused.onnx keeps tensors in '../x/we.bin', expected a plain file beside it"
    )


def test_a_config_is_honoured_and_what_has_no_effect_is_named_once(models: Path) -> None:
    (models / "mine" / "config.pbtxt").write_text(
        'name: "mine" max_batch_size: 2 optimization { priority: PRIORITY_MAX }\n'
        "dynamic_batching { preferred_batch_size: [ 2 ] }"
    )
    with start_server(LIMELIGHT_MODELS=str(models)) as server:
        tensors = draw_tokens(3)
        response = httpx.post(f"{server.url}/v1/attention", json=write_nested(tensors))
        assert response.status_code == 400
        assert "batch size is 3, expected at most 2" in response.json()["error"]
        words = "optimization, dynamic_batching.preferred_batch_size"
        assert server.read_log().count(words) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name: "other"', 'line 1: name is "other", expected "mine", the name of its directory'),
        ("\nmax_batch_size 8", "line 2: expected ':', found '8'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(models: Path, text: str, said: str) -> None:
    (models / "mine" / "config.pbtxt").write_text(text)
    assert refuse(models) == f"model mine/3: config.pbtxt: {said}"


def test_with_several_models_one_is_named_or_is_the_default(models: Path) -> None:
    shutil.copytree(DEMO, models / "other" / "1")
    with start_server(LIMELIGHT_MODELS=str(models)) as server:
        assert httpx.get(f"{server.url}/v2/models").json() == {"models": ["mine", "other"]}
        response = attend(server.url)
        text = (
            "no model is named and 2 are served: add ?model=NAME with one of mine, other, or "
            "set LIMELIGHT_DEFAULT_MODEL"
        )
        assert (response.status_code, response.json()) == (404, {"error": text})
        assert check_right(attend(server.url, model="other"))["model_name"] == "other"
    with start_server(LIMELIGHT_MODELS=str(models), LIMELIGHT_DEFAULT_MODEL="mine") as server:
        assert check_right(attend(server.url))["model_name"] == "mine"


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_a_directory_without_models_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    assert refuse(tmp_path / folder) == (
        f"LIMELIGHT_MODELS is {tmp_path / folder}, where no model was found, expected "
        "<name>/<version>/manifest.json, as limelight-export writes it"
    )


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_the_demo_stands_in_where_it_is_allowed_to(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with start_server("--models", str(tmp_path / folder), LIMELIGHT_DEMO="true") as server:
        assert check_right(attend(server.url))["model_name"] == "demo"


def test_the_demo_does_not_join_a_repository_that_has_models(models: Path) -> None:
    with start_server(LIMELIGHT_MODELS=str(models), LIMELIGHT_DEMO="true") as server:
        assert httpx.get(f"{server.url}/v2/models").json() == {"models": ["mine"]}


def test_half_written_and_foreign_directories_are_left_out(models: Path) -> None:
    for name in (".half/1", "mine/.13", "mine/next", "docs/pictures"):
        shutil.copytree(DEMO, models / name)
    (models / "README").write_text("not a model")
    with start_server(LIMELIGHT_MODELS=str(models)) as server:
        assert httpx.get(f"{server.url}/v2/models").json() == {"models": ["mine"]}
        assert httpx.get(f"{server.url}/v2/models/mine").json()["versions"] == ["3", "12"]


def change_byte(path: Path) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "file", ["weights.bin", "fused_bias.onnx", "fused_weights.onnx", "model.onnx", "fused.onnx"]
)
def test_a_file_that_differs_from_the_manifest_is_refused(models: Path, file: str) -> None:
    change_byte(models / "mine" / "12" / file)
    assert refuse(models) == f"model mine/12: {file} differs from its entry in manifest.json"


@pytest.mark.parametrize("file", ["weights.bin", "fused_bias.onnx"])
def test_a_missing_file_is_refused(models: Path, file: str) -> None:
    (models / "mine" / "12" / file).unlink()
    assert refuse(models) == f"model mine/12: {file} is missing"


def test_a_directory_without_a_manifest_is_no_version(models: Path) -> None:
    for version in ("3", "12"):
        (models / "mine" / version / "manifest.json").unlink()
    assert "no model was found" in refuse(models)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="no-json"),
        pytest.param("[]", id="no-object"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"format": 2}', id="members-missing"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused(models: Path, text: str) -> None:
    (models / "mine" / "12" / "manifest.json").write_text(text)
    assert refuse(models).startswith("model mine/12: manifest.json ")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("format", 99),
        ("attention", {}),
        ("attention", {"d_model": "6", "num_heads": "4", "kdim": "6", "vdim": "6"}),
        ("files", {}),
        ("files", {"../../etc/passwd": {"bytes": 1, "sha256": "0" * 64}}),
    ],
    ids=str,
)
def test_a_manifest_that_says_something_impossible_is_refused(
    models: Path, member: str, value: Any
) -> None:
    path = models / "mine" / "12" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {member: value}))
    assert refuse(models).startswith("model mine/12: manifest.json")


def test_a_file_that_is_no_graph_is_refused_in_one_line(models: Path) -> None:
    """The manifest is right, the graph is not: a fault of whatever wrote them."""
    write(models / "mine" / "12", "fused_bias.onnx", b"no graph")
    assert refuse(models) == ("model mine/12: fused_bias.onnx is no ONNX file: it is not protobuf")


def test_the_default_model_must_be_served(models: Path) -> None:
    line = refuse(models, LIMELIGHT_DEFAULT_MODEL="other", LIMELIGHT_LOG_LEVEL="warning")
    assert line == "LIMELIGHT_DEFAULT_MODEL: model 'other' is not served here; served: mine"


def test_the_demo_is_six_wide() -> None:
    spec = json.loads((DEMO / "manifest.json").read_text())["attention"]
    assert spec["d_model"] == str(D)
