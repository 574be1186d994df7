"""What the dashboard and the alerts say fits what the server publishes, and each other."""

import re
from itertools import combinations
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.deploy.compose import ROOT
from tests.deploy.dashboard import ALERTS, DASHBOARD, FOLDER, PANELS, QUERIES, find_names

EXPRESSIONS: Final = {
    **{f"{query.panel}: {query.expr}": query.expr for query in QUERIES if not query.needs_gpu},
    **{rule["alert"]: rule["expr"] for rule in ALERTS},
}
SAMPLE: Final = re.compile(r"^(\w+)(\{.*\})? \S+$", re.MULTILINE)
LABELS: Final = re.compile(r"(limelight_\w+|nv_inference_\w+)\{([^}]*)\}")


@pytest.fixture(scope="module", name="samples")
def read_samples(client: httpx.Client) -> dict[str, set[str]]:
    """The names of the labels of each sample that the server publishes."""
    assert client.post("/v1/attention", json={"query": [[1, 0, 0, 0, 0, 0]]}).status_code == 200
    # As it stands: prometheus_client's parser ends the names of all counters with _total.
    found = SAMPLE.findall(client.get("/metrics").text)
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in found}


@pytest.mark.parametrize("expr", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_and_label_that_is_asked_for_is_published(
    expr: str, samples: dict[str, set[str]]
) -> None:
    assert find_names(expr) or expr.startswith(("up", "sum(up"))
    assert find_names(expr) - samples.keys() == set()
    for name, selector in LABELS.findall(expr):
        assert set(re.findall(r"(\w+)[=!]", selector)) <= samples[name]


def test_the_dashboard_shows_what_an_operator_asks_for() -> None:
    asked = set().union(*(find_names(query.expr) for query in QUERIES))
    assert {
        "limelight_requests_total",
        "limelight_total_seconds_bucket",
        "limelight_queue_seconds_bucket",
        "limelight_compute_seconds_bucket",
        "nv_inference_pending_request_count",
        "nv_inference_exec_count",
        "nv_inference_request_failure",
        "DCGM_FI_DEV_GPU_UTIL",
    } <= asked
    assert any("histogram_quantile(0.99" in query.expr for query in QUERIES)


def test_no_panel_covers_another_or_leaves_the_grid() -> None:
    for panel in PANELS:
        box = panel["gridPos"]
        assert box["x"] + box["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_panels_and_queries_can_be_told_apart() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)


def test_every_query_asks_the_data_source_that_is_provisioned() -> None:
    file = FOLDER / "grafana" / "datasources" / "prometheus.yml"
    (source,) = yaml.safe_load(file.read_text())["datasources"]
    wanted = {"type": source["type"], "uid": source["uid"]}
    for panel in PANELS:
        assert panel["datasource"] == wanted
        assert all(target["datasource"] == wanted for target in panel["targets"])


def test_compose_mounts_the_files_where_grafana_and_prometheus_look() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    mounts = {v["target"]: v["source"] for v in services["grafana"]["volumes"]}
    provider = FOLDER / "grafana" / "dashboards" / "limelight.yml"
    (found,) = yaml.safe_load(provider.read_text())["providers"]
    assert ROOT / mounts[found["options"]["path"]] == FOLDER / "dashboards"
    assert ROOT / mounts["/etc/grafana/provisioning"] == FOLDER / "grafana"
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    mounts = {v["target"]: v["source"] for v in services["prometheus"]["volumes"]}
    for name in ("prometheus.yml", *scrape["rule_files"]):
        assert ROOT / mounts[f"/etc/prometheus/{name}"] == FOLDER / name


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_what_is_wrong_where(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert "$labels.instance" in rule["annotations"]["summary"]
    assert rule["for"]
