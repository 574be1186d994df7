"""docs/deploy.md names files, settings, alerts and figures that are there."""

import re
import shlex
from typing import Any, Final

import httpx
import pytest
import yaml

from service.settings import PREFIX, Settings
from tests.deploy.compose import run_config
from tests.deploy.dashboard import ALERTS
from tests.docs.markdown import ROOT, read_blocks, read_section, read_table
from tests.integration.server_process import run_command

PAGE: Final = (ROOT / "docs" / "deploy.md").read_text()
RELIABILITY: Final = (ROOT / "docs" / "reliability.md").read_text()
COMPOSE: Final = [ROOT / row[0].strip("`") for row in read_table(PAGE, "file", "for")]
COMMANDS: Final = [
    line for text in read_blocks(PAGE, "sh") for line in text.splitlines() if "compose" in line
]
SIZES: Final = read_table(PAGE, "what", "figure", "from")
SYMPTOMS: Final = read_table(PAGE, "symptom", "cause", "cure")
(MANIFEST,) = map(yaml.safe_load, read_blocks(PAGE, "yaml"))
POD: Final[dict[str, Any]] = MANIFEST["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
ENVIRONMENT: Final = {each["name"]: each["value"] for each in CONTAINER["env"]}


def test_every_setting_that_is_named_is_one() -> None:
    named = set(re.findall(rf"\b{PREFIX}\w+", PAGE))
    assert named
    assert named <= {PREFIX + name.upper() for name in Settings.model_fields}


def test_every_compose_file_has_its_row() -> None:
    assert sorted(COMPOSE) == sorted(ROOT.glob("docker-compose*.yml"))


def test_every_variable_of_the_compose_files_has_its_row_with_its_default() -> None:
    found = [
        match
        for path in COMPOSE
        for match in re.findall(r"\$\{(\w+):?-([^}]*)\}", path.read_text())
    ]
    rows = {row[0].strip("`"): row[1].strip("`") for row in read_table(PAGE, "variable", "default")}
    assert dict(found) == rows | {"LIMELIGHT_TEST_KEY": ""}


@pytest.mark.compose
@pytest.mark.parametrize("line", COMMANDS)
def test_compose_takes_the_files_and_profiles_of_every_command(line: str) -> None:
    words = shlex.split(line)[2:]
    end = next(at for at, word in enumerate(words) if word in {"up", "run"})
    services = run_config(*words[:end])["services"]
    if words[end] == "run":
        named = next(word for word in words[end:] if word in {"export", "test"})
        assert named in services or named in (ROOT / "docker-compose.yml").read_text()


def test_every_alert_has_its_row() -> None:
    rows = [row[0].strip("`") for row in read_table(PAGE, "alert", "says", "then")]
    assert rows == [rule["alert"] for rule in ALERTS]


@pytest.mark.parametrize("row", SIZES, ids=lambda row: row[0])
def test_a_figure_of_the_sizes_is_one_that_was_measured(row: list[str]) -> None:
    section = read_section(RELIABILITY, row[2])
    assert f"| {row[1]} |" in section


def test_the_manifest_sets_what_the_server_knows_and_waits_long_enough() -> None:
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    assert ENVIRONMENT.keys() <= settings
    drain_s = int(ENVIRONMENT["LIMELIGHT_DRAIN_DELAY_MS"]) / 1000
    shutdown_s = int(ENVIRONMENT["LIMELIGHT_SHUTDOWN_TIMEOUT_S"])
    assert POD["terminationGracePeriodSeconds"] > drain_s + shutdown_s
    probe = CONTAINER["readinessProbe"]
    assert drain_s > probe["periodSeconds"] * probe["failureThreshold"]


def test_the_manifest_mounts_its_volumes_where_the_server_looks() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in POD["volumes"]}
    assert f"LIMELIGHT_MODELS={mounts['models']} " in (ROOT / "Dockerfile").read_text()
    assert ENVIRONMENT["LIMELIGHT_API_KEYS_FILE"].startswith(f"{mounts['keys']}/")
    assert POD["securityContext"]["runAsUser"] == 10001


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_the_probes_ask_what_is_answered(probe: str, client: httpx.Client) -> None:
    target = CONTAINER[probe]["httpGet"]
    assert target["port"] in [port["name"] for port in CONTAINER["ports"]]
    assert client.get(target["path"]).status_code == 200


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("this onnxruntime has no CUDA", {"LIMELIGHT_PROVIDER": "cuda"}),
        ("could use this server", {"LIMELIGHT_HOST": "0.0.0.0"}),  # noqa: S104 - it is refused
        ("LIMELIGHT_API_KEYS_FILE cannot be read", {"LIMELIGHT_API_KEYS_FILE": "/none"}),
    ],
)
def test_a_symptom_has_the_words_of_the_server(words: str, settings: dict[str, Any]) -> None:
    assert sum(words in row[0] for row in SYMPTOMS) == 1
    done = run_command(**settings)
    assert done.returncode == 1
    assert words in done.stderr


@pytest.mark.parametrize("path", re.findall(r"`(deploy/[\w./]+)`", PAGE))
def test_every_file_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()
