"""Every combination of compose files and profiles, as Compose itself reads it."""

from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deploy.compose import ROOT, resolve

pytestmark = pytest.mark.compose

GPU: Final = ("docker-compose.yml",)
CPU: Final = ("docker-compose.cpu.yml",)
BOTH: Final = (*GPU, *CPU)
KEYS: Final = ("docker-compose.keys.yml",)
PROFILES: Final = {
    "test": {"test"},
    "export": {"export"},
    "observability": {"prometheus", "grafana"},
}
EVERYTHING: Final = tuple(PROFILES)
FILES: Final = [base + over for base, over in product((GPU, CPU, BOTH), ((), KEYS))]
EACH_COMBINATION: Final = pytest.mark.parametrize("files", FILES, ids="+".join)


def list_reservations(service: dict[str, Any]) -> list[dict[str, Any]]:
    """The devices that a service reserves."""
    resources = service["deploy"]["resources"]
    devices: list[dict[str, Any]] = resources.get("reservations", {}).get("devices", [])
    return devices


@EACH_COMBINATION
def test_without_a_profile_the_server_is_all_there_is(files: tuple[str, ...]) -> None:
    assert set(resolve(files)["services"]) == {"limelight"}


@EACH_COMBINATION
@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_adds_its_own_services(files: tuple[str, ...], profile: str) -> None:
    services = set(resolve(files, (profile,))["services"])
    assert services == {"limelight"} | PROFILES[profile]


@EACH_COMBINATION
def test_no_container_has_rights_and_every_one_is_bounded(files: tuple[str, ...]) -> None:
    for service in resolve(files, EVERYTHING)["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
        assert {"memory", "pids"} == set(service["deploy"]["resources"]["limits"])


@EACH_COMBINATION
def test_only_keys_open_the_server_to_the_network(files: tuple[str, ...]) -> None:
    services = resolve(files, EVERYTHING)["services"]
    published = {name: service.get("ports", []) for name, service in services.items()}
    hosts = {name: [port["host_ip"] for port in ports] for name, ports in published.items()}
    assert hosts.pop("limelight") == ["0.0.0.0" if KEYS[0] in files else "127.0.0.1"]  # noqa: S104 - what is wanted
    assert {host for each in hosts.values() for host in each} == {"127.0.0.1"}


@EACH_COMBINATION
def test_nobody_is_anonymous_where_there_are_keys(files: tuple[str, ...]) -> None:
    whole = resolve(files)
    environment = whole["services"]["limelight"]["environment"]
    if KEYS[0] not in files:
        assert environment["LIMELIGHT_ALLOW_ANONYMOUS"] == "true"
        assert "LIMELIGHT_API_KEYS_FILE" not in environment
        return
    assert environment["LIMELIGHT_ALLOW_ANONYMOUS"] == "false"
    (secret,) = whole["services"]["limelight"]["secrets"]
    assert secret == {"source": "api_keys", "target": environment["LIMELIGHT_API_KEYS_FILE"]}
    assert whole["secrets"]["api_keys"]["file"] == str(ROOT / "limelight.keys")


@EACH_COMBINATION
def test_a_gpu_is_reserved_by_the_server_alone_and_not_on_a_host_without(
    files: tuple[str, ...],
) -> None:
    services = resolve(files, EVERYTHING)["services"]
    has_gpu = CPU[0] not in files
    assert bool(list_reservations(services.pop("limelight"))) is has_gpu
    assert not any(list_reservations(service) for service in services.values())


@EACH_COMBINATION
def test_whatever_is_mounted_from_the_repository_is_there(files: tuple[str, ...]) -> None:
    for service in resolve(files, EVERYTHING)["services"].values():
        sources = {Path(v["source"]) for v in service.get("volumes", []) if v["type"] == "bind"}
        assert all(source.exists() for source in sources - {ROOT / "checkpoints"}), sources


@EACH_COMBINATION
def test_the_exporter_reads_checkpoints_writes_models_and_reaches_nobody(
    files: tuple[str, ...],
) -> None:
    service = resolve(files, ("export",))["services"]["export"]
    mounts = {v["target"]: (v["source"], v.get("read_only", False)) for v in service["volumes"]}
    assert mounts == {
        "/data/checkpoints": (str(ROOT / "checkpoints"), True),
        "/data/models": (str(ROOT / "models"), False),
    }
    assert service["network_mode"] == "none"
    assert service["build"]["args"]["EXTRA"] == "cpu"
