"""A repository of two models, whose versions give different answers.

`demo` has versions 2 and 10, `spare` has version 3. The weights of a version are those of the
embedded demo times a number of its own.
"""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from model.reference import attend
from model.weights import Weights
from tests.integration.demo import DEMO, Arrays
from tests.integration.server_process import ROOT

FILES: Final = ROOT / "service" / "demo" / "demo"
FACTORS: Final = {("demo", "2"): 2.0, ("demo", "10"): 0.5, ("spare", "3"): 1.5}
FIELDS: Final = ("W_q", "b_q", "W_k", "b_k", "W_v", "b_v", "fc_out", "b_out")


def write_repository(folder: Path) -> Path:
    """Write the models below a folder; the folder."""
    for (name, version), factor in FACTORS.items():
        write_version(folder / name / version, factor)
    return folder


def write_version(directory: Path, factor: float) -> None:
    """Copy the demo, and multiply its weights, which are float32 from end to end."""
    shutil.copytree(FILES / "1", directory)
    weights = np.fromfile(directory / "weights.bin", "<f4") * np.float32(factor)
    weights.tofile(directory / "weights.bin")
    manifest = json.loads((directory / "manifest.json").read_text())
    digest = hashlib.sha256(weights.tobytes()).hexdigest()
    manifest["files"]["weights.bin"]["sha256"] = digest
    (directory / "manifest.json").write_text(json.dumps(manifest))


def multiply(factor: float) -> Weights:
    """The weights of the demo times a number."""
    arrays: dict[str, Any] = {name: getattr(DEMO, name) * np.float32(factor) for name in FIELDS}
    return replace(DEMO, **arrays)


def expect_of(name: str, version: str, tensors: Arrays) -> Arrays:
    """The right outputs of a version of a model, in float64."""
    arguments: dict[str, Any] = tensors
    output, attention = attend(multiply(FACTORS[name, version]), **arguments)
    return {"output": output, "attention_weights": attention}
