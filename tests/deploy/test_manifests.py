"""The manifests under ``deploy/`` are what clusters accept, and agree with each other."""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from service.settings import PREFIX, Settings
from tests.deploy.schemas import find_faults

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
KUSTOMIZATION: Final = "kustomization.yaml"  # read by kubectl itself, which has no schema for it
ACCOUNT: Final = 10001


def read(name: str) -> Any:
    """A manifest."""
    return yaml.safe_load((DEPLOY / name).read_text())


def list_files(folder: str) -> list[str]:
    """The manifests of a folder."""
    return sorted(
        f"{folder}/{path.name}"
        for path in (DEPLOY / folder).glob("*.yaml")
        if path.name != KUSTOMIZATION
    )


PLAIN: Final = list_files("kubernetes")
KSERVE: Final = list_files("kserve")
RAY: Final = "ray/rayservice.yaml"
ALL: Final = [*PLAIN, RAY, *(pytest.param(name, marks=pytest.mark.kserve) for name in KSERVE)]
RUNTIME: Final = read("kserve/serving-runtime.yaml")
SERVICE: Final = read("kserve/inference-service.yaml")
DEPLOYMENT: Final = read("kubernetes/deployment.yaml")
POD: Final = DEPLOYMENT["spec"]["template"]
(SERVER,) = POD["spec"]["containers"]
(PREDICTOR,) = RUNTIME["spec"]["containers"]
CONTAINERS: Final = pytest.mark.parametrize(
    "container", [SERVER, PREDICTOR], ids=["deployment", "runtime"]
)


def read_settings() -> dict[str, str]:
    """The variables of the ConfigMap."""
    lines = (DEPLOY / "kubernetes" / "settings.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def read_environment(container: Any) -> dict[str, str]:
    """The variables that a container sets."""
    own = {each["name"]: each["value"] for each in container["env"]}
    return (read_settings() if "envFrom" in container else {}) | own


@pytest.mark.parametrize("name", ALL)
def test_a_manifest_is_what_the_cluster_takes(name: str) -> None:
    assert find_faults(read(name)) == []


def is_free(place: str, part: Any) -> bool:
    """Whether an object is a map whose names are its writer's."""
    name = place.rpartition(".")[2]
    if name == "selector":  # labels in a Service, an object with `matchLabels` elsewhere
        return all(isinstance(value, str) for value in part.values())
    free = ("labels", "annotations", "matchLabels", "limits", "requests", "rayStartParams")
    return name in free


def walk(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every object in a manifest that has fields of its own, with its place."""
    if isinstance(part, dict) and not is_free(place, part):
        yield place, part
    for name, value in part.items() if isinstance(part, dict) else enumerate(part):
        if isinstance(value, dict | list):
            yield from walk(value, f"{place}.{name}".lstrip("."))


@pytest.mark.parametrize("name", ALL)
def test_a_field_that_is_unknown_is_found_wherever_it_stands(name: str) -> None:
    manifest = read(name)
    places = [place for place, _ in walk(manifest)]
    assert len(places) > 3
    for index, place in enumerate(places):
        broken = deepcopy(manifest)
        [part for _, part in walk(broken)][index]["typo"] = "planted"
        faults = find_faults(broken)
        assert any("typo" in fault for fault in faults), place


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("kubernetes/deployment.yaml", "readinessProbe", "readinesProbe"),
        ("kubernetes/deployment.yaml", "periodSeconds: 2\n", "periodSeconds: two\n"),
        ("kubernetes/deployment.yaml", "containerPort: 9090", "port: 9090"),
        ("kubernetes/autoscaler.yaml", "averageUtilization", "averageUtilisation"),
        ("kubernetes/network-policy.yaml", "podSelector:\n", "podSelektor:\n"),
        (RAY, "serveConfigV2", "serveConfig"),
        (RAY, "minReplicas", "minReplica"),
        (RAY, "volumeMounts:", "volumeMount:"),
        (RAY, 'num-cpus: "0"', "num-cpus: 0"),
        *(
            pytest.param(*case, marks=pytest.mark.kserve)
            for case in [
                ("kserve/serving-runtime.yaml", "readinessProbe", "readinesProbe"),
                ("kserve/serving-runtime.yaml", "supportedModelFormats", "supportedFormats"),
                ("kserve/serving-runtime.yaml", "containers:", "container:"),
                ("kserve/serving-runtime.yaml", "multiModel: false", "multiModel: no thanks"),
                ("kserve/inference-service.yaml", "maxReplicas", "maxReplica"),
                ("kserve/inference-service.yaml", "modelFormat: {name", "modelFormat: {format"),
                ("kserve/inference-service.yaml", "storageUri", "storageURI"),
            ]
        ),
    ],
)
def test_a_slip_of_the_pen_is_found(name: str, right: str, wrong: str) -> None:
    text = (DEPLOY / name).read_text()
    assert right in text
    assert find_faults(yaml.safe_load(text.replace(right, wrong)))


def test_the_kustomization_names_every_file_beside_it() -> None:
    kustomization = read(f"kubernetes/{KUSTOMIZATION}")
    assert kustomization.keys() == {
        "apiVersion",
        "kind",
        "resources",
        "configMapGenerator",
        "labels",
        "images",
    }
    assert sorted(kustomization["resources"]) == [Path(name).name for name in PLAIN]
    (settings,) = kustomization["configMapGenerator"]
    assert settings == {"name": "limelight-settings", "envs": ["settings.env"]}
    assert SERVER["envFrom"] == [{"configMapRef": {"name": settings["name"]}}]
    assert kustomization["images"][0]["name"] == SERVER["image"]


@CONTAINERS
def test_the_server_takes_the_settings(container: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in read_environment(container).items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert str(settings.host) == "0.0.0.0"  # noqa: S104 - a container's own address
    assert settings.port == container["ports"][0]["containerPort"]
    assert settings.log_format == "json"
    assert not settings.demo


@CONTAINERS
def test_no_setting_is_said_that_is_the_default(container: Any) -> None:
    defaults = {f"{PREFIX}{name.upper()}": field for name, field in Settings.model_fields.items()}
    said = read_environment(container)
    assert said.keys() <= defaults.keys()
    explicit = {"LIMELIGHT_PORT", "LIMELIGHT_DEMO", "LIMELIGHT_SHUTDOWN_TIMEOUT_S"}
    same = {name for name in said if said[name] == str(defaults[name].default).lower()}
    assert same <= explicit  # which the image sets, or other lines here count on


@CONTAINERS
def test_a_container_has_no_rights_and_cannot_write(container: Any) -> None:
    context = POD["spec"]["securityContext"] | SERVER["securityContext"]
    del context["fsGroup"]
    assert (context if container is SERVER else container["securityContext"]) == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": ACCOUNT,
        "runAsGroup": ACCOUNT,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert f"USER {ACCOUNT}:{ACCOUNT}" in (DEPLOY.parent / "Dockerfile").read_text()
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}


@CONTAINERS
def test_every_probe_asks_a_path_that_needs_no_key(container: Any) -> None:
    ports = {each.get("name", each["containerPort"]) for each in container["ports"]}
    for probe, path in [("startup", "ready"), ("readiness", "ready"), ("liveness", "live")]:
        asked = container[f"{probe}Probe"]["httpGet"]
        assert asked["path"] == f"/v2/health/{path}"
        assert asked["port"] in ports


@pytest.mark.parametrize(
    ("container", "grace_s"),
    [
        (SERVER, POD["spec"]["terminationGracePeriodSeconds"]),
        (PREDICTOR, SERVICE["spec"]["predictor"]["terminationGracePeriodSeconds"]),
        (PREDICTOR, 30),  # what Kubernetes grants to a service that does not say
    ],
    ids=["deployment", "service", "service that does not say"],
)
def test_a_pod_is_granted_the_time_to_drain_and_to_finish(container: Any, grace_s: int) -> None:
    said = read_environment(container)
    drain_s = int(said["LIMELIGHT_DRAIN_DELAY_MS"]) / 1000
    # Long enough for a readiness probe to fail as often as it must.
    probe = container["readinessProbe"]
    assert drain_s > probe["periodSeconds"] * probe["failureThreshold"]
    assert drain_s + int(said["LIMELIGHT_SHUTDOWN_TIMEOUT_S"]) < grace_s


def test_everything_selects_the_pods_of_the_deployment() -> None:
    labels = POD["metadata"]["labels"]
    budget, policy, service = (
        read(f"kubernetes/{name}.yaml")["spec"]
        for name in ("disruption-budget", "network-policy", "service")
    )
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels
    assert budget["selector"]["matchLabels"] == labels
    assert policy["podSelector"]["matchLabels"] == labels
    assert service["selector"] == labels
    ports = {each["name"] for each in SERVER["ports"]}
    assert {rule["port"] for each in policy["ingress"] for rule in each["ports"]} == ports
    assert service["ports"][0]["targetPort"] in ports
    scaled = read("kubernetes/autoscaler.yaml")["spec"]["scaleTargetRef"]
    assert scaled["name"] == DEPLOYMENT["metadata"]["name"]


def test_a_disruption_leaves_a_pod() -> None:
    budget, scaler = (
        read(f"kubernetes/{name}.yaml")["spec"] for name in ("disruption-budget", "autoscaler")
    )
    assert budget["maxUnavailable"] < scaler["minReplicas"] <= scaler["maxReplicas"]


def test_prometheus_is_sent_to_a_port_that_serves_metrics() -> None:
    said = read_environment(SERVER)
    assert POD["metadata"]["annotations"]["prometheus.io/port"] == said["LIMELIGHT_METRICS_PORT"]
    assert said["LIMELIGHT_METRICS_WITHOUT_KEY"] == "true"
    annotations = RUNTIME["spec"]["annotations"]
    assert annotations["prometheus.kserve.io/port"] == read_environment(PREDICTOR)["LIMELIGHT_PORT"]
    assert annotations["prometheus.kserve.io/path"] == "/metrics"


def test_the_memory_that_the_bounds_allow_is_below_the_limit() -> None:
    """As ``docs/settings.md`` adds it up, with bodies and answers, and a quarter to spare."""
    said = {name: int(text) for name, text in read_settings().items() if "_BYTES" in name}
    threads = int(SERVER["resources"]["limits"]["cpu"])
    run = said["LIMELIGHT_MAX_SCORE_BYTES"] + 4 * said["LIMELIGHT_MAX_OUTPUT_BYTES"]
    held = said["LIMELIGHT_MAX_ANSWER_BYTES_IN_FLIGHT"] + said["LIMELIGHT_MAX_QUEUE_BYTES"]
    bodies = Settings.model_fields["max_body_bytes_in_flight"].default
    limit = int(re.fullmatch(r"(\d+)Gi", SERVER["resources"]["limits"]["memory"])[1]) * 2**30  # type: ignore[index]
    assert (threads * run + held + bodies) * 4 / 3 < limit


def test_the_service_asks_for_the_format_that_the_runtime_has() -> None:
    (known,) = RUNTIME["spec"]["supportedModelFormats"]
    model = SERVICE["spec"]["predictor"]["model"]
    assert model["modelFormat"]["name"] == known["name"] == "limelight"
    assert model["runtime"] == RUNTIME["metadata"]["name"]
    assert [model["protocolVersion"]] == RUNTIME["spec"]["protocolVersions"] == ["v2"]
    assert PREDICTOR["name"] == "kserve-container"
