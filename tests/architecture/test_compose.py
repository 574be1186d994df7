"""What the compose files promise: closed to the network, without rights, a GPU where one is."""

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GPU = "docker-compose.yml"
CPU = "docker-compose.cpu.yml"
# What the exporter makes, and what Prometheus and Grafana keep.
WRITABLE = {"/data/models", "/prometheus", "/var/lib/grafana"}


class ComposeLoader(yaml.SafeLoader):
    """Reads YAML with the tags that Compose adds: ``!reset`` removes, ``!override`` replaces."""


def read_override(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """The value behind ``!override``."""
    assert isinstance(node, yaml.SequenceNode)
    return loader.construct_sequence(node)


ComposeLoader.add_constructor("!reset", lambda loader, node: None)
ComposeLoader.add_constructor("!override", read_override)


def read_services(file: str) -> dict[str, dict[str, Any]]:
    """Services of a compose file, by name, with what each `extends`."""
    with (ROOT / file).open() as stream:
        services: dict[str, dict[str, Any]] = ComposeLoader(stream).get_single_data()["services"]
    for name, service in services.items():
        if base := service.get("extends"):
            services[name] = read_services(base["file"])[base["service"]] | service
    return services


SERVICES = [
    pytest.param(service, id=f"{file}:{name}")
    for file in (GPU, CPU)
    for name, service in read_services(file).items()
]


def test_the_server_mounts_nothing_that_it_may_write() -> None:
    assert all(not list_writable(read_services(file)["limelight"]) for file in (GPU, CPU))


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_on_this_machine_only(service: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@pytest.mark.parametrize("service", SERVICES)
def test_a_container_has_no_rights_and_cannot_write(service: dict[str, Any]) -> None:
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert list_writable(service) <= WRITABLE


def list_writable(service: dict[str, Any]) -> set[str]:
    """Where a container may leave something behind."""
    return {v["target"] for v in service.get("volumes", []) if not v.get("read_only")}


@pytest.mark.parametrize("service", read_services(GPU).values(), ids=read_services(GPU))
def test_a_container_is_bounded_in_memory_processes_and_files(service: dict[str, Any]) -> None:
    assert set(service["deploy"]["resources"]["limits"]) == {"memory", "pids"}
    assert all(":size=" in entry for entry in service["tmpfs"])


@pytest.mark.parametrize("file", [GPU, CPU])
def test_the_server_publishes_one_port_and_a_start_that_fails_stays_failed(file: str) -> None:
    server = read_services(file)["limelight"]
    assert server["ports"] == ["127.0.0.1:${PORT:-8000}:8000"]
    assert server["restart"] == "${RESTART:-on-failure:3}"


def test_the_image_has_a_health_check_of_its_own() -> None:
    checks = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if "HEALTH" in line]
    assert checks[0].startswith("HEALTHCHECK --interval")


def test_the_main_file_reserves_a_gpu_and_computes_nowhere_else() -> None:
    server = read_services(GPU)["limelight"]
    (device,) = server["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert server["build"]["args"] == {"EXTRA": "gpu", "CUDA": "${CUDA:-13}"}
    assert server["environment"] == {
        "LIMELIGHT_PROVIDER": "cuda",
        "LIMELIGHT_ALLOW_ANONYMOUS": "true",
    }


def test_the_cpu_file_asks_for_no_gpu() -> None:
    server = read_services(CPU)["limelight"]
    assert server["deploy"]["resources"]["reservations"] is None
    assert server["build"]["args"] == {"EXTRA": "cpu"}
    assert server["environment"] == {"LIMELIGHT_PROVIDER": "cpu"}


@pytest.mark.parametrize("file", [GPU, CPU])
def test_the_test_profile_alone_starts_the_tests(file: str) -> None:
    services = read_services(file)
    assert [name for name, service in services.items() if "profiles" not in service] == [
        "limelight"
    ]
    assert services["test"]["environment"] == {"LIMELIGHT_TEST_URL": "http://limelight:8000"}
    assert services["test"]["depends_on"]["limelight"] == {"condition": "service_healthy"}
