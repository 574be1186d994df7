"""The dashboard of Grafana and the alerts of Prometheus, as they are provisioned."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "observability"
DASHBOARD: Final[dict[str, Any]] = json.loads(
    (FOLDER / "dashboards" / "limelight.json").read_text()
)
ALERTS: Final[list[dict[str, Any]]] = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
NAME: Final = re.compile(r"\b(?:limelight|nv_inference|DCGM)_\w+")


@dataclass(frozen=True)
class Query:
    """What one line of a panel shows.

    Attributes:
        panel: title of its panel.
        expr: in PromQL, with Grafana's variables.
    """

    panel: str
    expr: str

    @property
    def needs_gpu(self) -> bool:
        """Whether it asks NVIDIA's exporter, which is not there on every machine."""
        return "DCGM_" in self.expr

    def fill(self, interval: str) -> str:
        """The query as Grafana sends it, with all models chosen."""
        return self.expr.replace("$__rate_interval", interval).replace("$model", ".*")


PANELS: Final[list[dict[str, Any]]] = [p for p in DASHBOARD["panels"] if p["type"] != "row"]
QUERIES: Final = [
    Query(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]
]


def find_names(expr: str) -> set[str]:
    """The metrics that an expression asks for."""
    return set(NAME.findall(expr))
