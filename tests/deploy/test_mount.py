"""Models where KServe mounts a storageUri: the directory itself is always called ``models``."""

import os
import shutil
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import read_answer, write_nested
from tests.integration.server_process import ROOT, run_command, start_server

pytestmark = pytest.mark.skipif(
    "LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"
)
DEMO: Final = ROOT / "service" / "demo" / "demo" / "1"
RUNTIME: Final = ROOT / "deploy" / "kserve" / "serving-runtime.yaml"
TENSORS: Final = draw_tokens()


def read_environment(mount: Path) -> dict[str, Any]:
    """The variables of the runtime, with the mount and a free port in the place of its own."""
    (container,) = yaml.safe_load(RUNTIME.read_text())["spec"]["containers"]
    said = {each["name"]: each["value"] for each in container["env"]}
    assert said["LIMELIGHT_MODELS"] == "/mnt/models"
    own = {"LIMELIGHT_MODELS": str(mount), "LIMELIGHT_PORT": "0", "LIMELIGHT_HOST": "127.0.0.1"}
    return said | own | {"LIMELIGHT_DRAIN_DELAY_MS": "0"}  # no test waits for it


def ask(url: str, model: str) -> Any:
    """The answer of a model, which has the right numbers."""
    response = httpx.post(
        f"{url}/v1/attention", json=write_nested(TENSORS), params={"model": model}
    )
    check_close(read_answer(response), expect(TENSORS, weights="none"))
    return response.json()


def test_a_repository_keeps_the_names_of_its_models(tmp_path: Path) -> None:
    mount = tmp_path / "mnt" / "models"
    shutil.copytree(DEMO, mount / "first" / "3")
    shutil.copytree(DEMO, mount / "second" / "12")
    with start_server(**read_environment(mount)) as server:
        assert httpx.get(f"{server.url}/v2/models").json() == {"models": ["first", "second"]}
        assert ask(server.url, "first")["model_version"] == "3"
        assert httpx.get(f"{server.url}/metrics").status_code == 200


def test_the_directory_of_one_model_is_served_under_the_name_of_the_mount(tmp_path: Path) -> None:
    mount = tmp_path / "mnt" / "models"
    shutil.copytree(DEMO, mount / "3")
    with start_server(**read_environment(mount)) as server:
        assert ask(server.url, "models")["model_version"] == "3"


def test_a_mount_that_is_a_link_as_that_of_a_model_in_an_image_is_followed(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "root" / "models" / "first" / "3")
    (tmp_path / "mnt").mkdir()
    (tmp_path / "mnt" / "models").symlink_to(tmp_path / "root" / "models")
    with start_server(**read_environment(tmp_path / "mnt" / "models")) as server:
        assert ask(server.url, "first")["model_version"] == "3"


def test_one_model_with_a_config_of_another_name_is_refused_with_both_names(
    tmp_path: Path,
) -> None:
    """As `limelight-export` writes it: mount it one level lower, as docs/scale.md shows."""
    mount = tmp_path / "mnt" / "models"
    shutil.copytree(DEMO, mount / "3")
    (mount / "config.pbtxt").write_text('name: "mine"')
    done = run_command(**read_environment(mount))
    assert done.returncode == 1
    assert (
        'config.pbtxt: line 1: name is "mine", expected "models", the name of its directory'
        in done.stderr
    )
    (mount / "mine").mkdir()
    for part in ("3", "config.pbtxt"):
        (mount / part).rename(mount / "mine" / part)
    with start_server(**read_environment(mount)) as server:
        assert ask(server.url, "mine")["model_version"] == "3"


def test_an_empty_mount_ends_the_start_and_is_not_the_demo(tmp_path: Path) -> None:
    done = run_command(**read_environment(tmp_path))
    assert done.returncode == 1
    assert "no model was found" in done.stderr
