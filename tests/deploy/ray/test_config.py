"""The files of `deploy/ray/` are what Serve takes, and agree with the settings and each other."""

import re
import warnings
from collections.abc import Iterator
from typing import Any, Final, get_args

import pytest
import yaml

from deploy.ray.settings import load_settings
from service.settings import PREFIX, Settings
from tests.integration.server_process import ROOT

RAY: Final = ROOT / "deploy" / "ray"
FILES: Final = ("laptop.yaml", "cluster.yaml")
EACH: Final = pytest.mark.parametrize("name", FILES)


def read(name: str) -> dict[str, Any]:
    """A file of YAML."""
    config: dict[str, Any] = yaml.safe_load((RAY / name).read_text())
    return config


def read_deployment(name: str) -> dict[str, Any]:
    """The only deployment of a configuration."""
    (application,) = read(name)["applications"]
    (deployment,) = application["deployments"]
    return dict(deployment)


def read_variables(name: str) -> dict[str, str]:
    """What a replica finds in its environment."""
    return dict(read_deployment(name)["ray_actor_options"]["runtime_env"]["env_vars"])


def load_schema() -> Any:
    """What Serve reads a configuration with."""
    with warnings.catch_warnings(
        action="ignore"
    ):  # Ray's own, of the pydantic that it is used with
        from ray.serve.schema import ServeDeploySchema
    return ServeDeploySchema


def find_unknown(part: dict[str, Any], schema: Any) -> Iterator[str]:
    """Names in a configuration that its schema does not have: Serve forgets them."""
    for name, value in part.items():
        field = schema.model_fields.get(name)
        if field is None:
            yield name
            continue
        inner = [each for each in list_types(field.annotation) if hasattr(each, "model_fields")]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and inner:
                yield from find_unknown(item, inner[0])


def list_types(annotation: Any) -> list[Any]:
    """A type and all those that it is made of."""
    return [annotation, *(t for part in get_args(annotation) for t in list_types(part))]


@pytest.mark.ray
@EACH
def test_serve_takes_a_configuration_and_knows_all_of_it(name: str) -> None:
    load_schema().model_validate(read(name))
    assert list(find_unknown(read(name), load_schema())) == []


@pytest.mark.ray
@pytest.mark.parametrize(
    "right",
    [
        *("proxy_location", "keep_alive_timeout_s", "route_prefix", "max_ongoing_requests"),
        *("retry_after_s", "target_ongoing_requests", "num_cpus"),
    ],
)
def test_a_slip_of_the_pen_is_found(right: str) -> None:
    text = (RAY / "cluster.yaml").read_text()
    assert right in text
    slipped = yaml.safe_load(text.replace(right, f"{right}x"))
    assert list(find_unknown(slipped, load_schema())) == [f"{right}x"]


@EACH
def test_every_variable_is_a_setting(name: str) -> None:
    known = {PREFIX + field.upper() for field in Settings.model_fields}
    assert read_variables(name).keys() <= known


@EACH
def test_a_replica_takes_its_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, text in read_variables(name).items():
        monkeypatch.setenv(variable, text)
    assert load_settings(2).inference_threads == 2


@EACH
def test_a_replica_is_given_the_time_that_its_requests_have(name: str) -> None:
    settings = Settings()
    longest_s = settings.request_timeout_ms / 1000 + settings.shutdown_timeout_s
    assert read_deployment(name)["graceful_shutdown_timeout_s"] > longest_s


@EACH
def test_the_import_path_leads_to_the_deployment(name: str) -> None:
    (application,) = read(name)["applications"]
    assert application["import_path"] == "deploy.ray.deployment:app"
    text = (RAY / "deployment.py").read_text()
    assert "\napp = serve.deployment(Attention).bind()\n" in text
    assert read_deployment(name)["name"] == "Attention"


def test_the_laptop_listens_on_loopback_and_the_cluster_wants_keys() -> None:
    assert read("laptop.yaml")["http_options"]["host"] == "127.0.0.1"
    assert "LIMELIGHT_ALLOW_ANONYMOUS" not in read_variables("cluster.yaml")
    assert read_variables("cluster.yaml")["LIMELIGHT_API_KEYS_FILE"] == "/etc/limelight/keys"


def test_kuberay_serves_what_the_cluster_serves() -> None:
    spec = read("rayservice.yaml")["spec"]
    assert yaml.safe_load(spec["serveConfigV2"]) == read("cluster.yaml")


def test_replicas_fit_into_the_pods_of_kuberay() -> None:
    (group,) = read("rayservice.yaml")["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    options = read_deployment("cluster.yaml")["ray_actor_options"]
    limits = container["resources"]["limits"]
    assert float(limits["cpu"]) >= options["num_cpus"]
    assert int(limits["memory"].removesuffix("Gi")) * 2**30 > options["memory"]
    scaling = read_deployment("cluster.yaml")["autoscaling_config"]
    assert (group["minReplicas"], group["maxReplicas"]) == (
        scaling["min_replicas"],
        scaling["max_replicas"],
    )
    patience_s = group["template"]["spec"]["terminationGracePeriodSeconds"]
    assert patience_s > read_deployment("cluster.yaml")["graceful_shutdown_timeout_s"]


def test_image_manifest_and_constraints_name_one_version_of_ray() -> None:
    pinned = re.search(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    image = re.search(r"^ARG RAY=(\S+)$", (RAY / "Dockerfile").read_text(), re.MULTILINE)
    assert pinned
    assert image
    cluster = read("rayservice.yaml")["spec"]["rayClusterConfig"]
    assert pinned[1] == image[1] == cluster["rayVersion"]
