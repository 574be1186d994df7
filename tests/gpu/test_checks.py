"""The checks of ``python -m benchmarks.gpu``: on the CPU what can be, on a GPU all of them."""

from pathlib import Path

import pytest

from benchmarks.gpu.__main__ import CHECKS, NEED_A_GPU
from benchmarks.gpu.layers import LAYERS, SMALL, export_absent, find_absent
from benchmarks.gpu.stage import Stage

ROUND_S = 0.001
RIGHT = ("parity", "blind", "joining", "concurrency", "memory")


@pytest.fixture(scope="session", name="models")
def export_layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    export_absent(models)
    return models


def test_the_models_are_made_once(models: Path, tmp_path: Path) -> None:
    assert find_absent(models) == []
    assert find_absent(tmp_path) == list(LAYERS)
    assert [layer.spec.precision for layer in SMALL] == ["fp32", "fp16"]


@pytest.mark.parametrize("name", [name for name in CHECKS if name not in NEED_A_GPU])
def test_every_check_that_needs_no_gpu_is_met_on_the_cpu(name: str, models: Path) -> None:
    missed = [f for f in CHECKS[name](Stage(models, "cpu", ROUND_S)) if not f.is_met]
    assert missed == []


@pytest.mark.gpu
@pytest.mark.parametrize("name", RIGHT)
def test_every_bound_is_met_on_a_gpu(name: str, models: Path) -> None:
    missed = [f for f in CHECKS[name](Stage(models, "cuda", ROUND_S)) if not f.is_met]
    assert missed == []


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["kernels", "speed"])
def test_what_has_no_bound_is_told_on_a_gpu(name: str, models: Path) -> None:
    assert list(CHECKS[name](Stage(models, "cuda", ROUND_S)))
