"""``verification.json``: what a model was made from, with what, and how exact it was found."""

import importlib.metadata
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from export.hidings import SIZE_NAMES, SIZES
from export.runtime import load_runtime
from export.verify import TOLERANCES, Report
from model.contract import DECOMPOSED, VERIFICATION_FILE, AttentionSpec


@dataclass(frozen=True, slots=True)
class Source:
    """Where the weights of a model come from.

    Attributes:
        family: of checkpoints.
        layer: its prefix in the checkpoint.
        files: SHA-256 in hexadecimal of each file that holds a tensor of the layer, by name.
        tensors: names of those that were read, in full.
    """

    family: str
    layer: str
    files: dict[str, str]
    tensors: list[str]


def make_record(spec: AttentionSpec, report: Report, source: Source | None) -> dict[str, Any]:
    """The content of the file; ``source`` is in it where a checkpoint was read."""
    record = {
        "versions": read_versions(),
        "attention": spec.to_properties(),
        "sizes": [dict(zip(SIZE_NAMES, sizes, strict=True)) for sizes in SIZES],
        "hidings": list(report[DECOMPOSED.name]),
        "tolerance": TOLERANCES[spec.precision],
        "largest_error": report,
    }
    return record if source is None else {"source": asdict(source)} | record


def read_report(directory: Path) -> Report:
    """The largest errors that were found when the version in `directory` was made."""
    record = json.loads((directory / VERIFICATION_FILE).read_bytes())
    report: Report = record["largest_error"]
    return report


def read_versions() -> dict[str, str]:
    """Versions of what wrote and ran the graphs."""
    return {
        package: importlib.metadata.version(package)
        for package in ("limelight", "torch", "onnx", "onnxscript", "numpy")
        # Not by distribution: that of onnxruntime is one of two.
    } | {"onnxruntime": load_runtime().__version__}
