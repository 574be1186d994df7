"""What a process has loaded once it imported one of our packages, seen from outside."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRINT_MODULES = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*sys.modules)"
HEAVY = ("torch", "onnx", "onnxscript")
EXPORTER = ("export", "model.attention", "model.reference", "model.weights", *HEAVY)


@cache
def loaded_by(module: str) -> set[str]:
    """Names of the modules in a new interpreter after it imported `module`."""
    command = [sys.executable, "-c", PRINT_MODULES, module]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["service", "service.app", "service.__main__"])
@pytest.mark.parametrize("unwanted", EXPORTER)
def test_the_server_loads_nothing_of_the_exporter(module: str, unwanted: str) -> None:
    assert unwanted not in loaded_by(module)


@pytest.mark.parametrize("module", ["model", "model.contract"])
@pytest.mark.parametrize("unwanted", ["numpy", "service", "export", "onnxruntime", *HEAVY])
def test_the_contract_of_a_model_loads_no_library(module: str, unwanted: str) -> None:
    assert unwanted not in loaded_by(module)


def test_the_reference_needs_numpy_only() -> None:
    assert not loaded_by("model.reference") & {*HEAVY, "onnxruntime", "service", "export"}


def test_the_exporter_loads_no_server() -> None:
    assert not loaded_by("export.__main__") & {"service", "fastapi", "uvicorn"}
