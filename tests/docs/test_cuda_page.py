"""docs/cuda.md names the graphs, settings and sentences that are there."""

import re
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from model.contract import NO_KEY_SCORE
from service.engine.cuda import CudaOptions
from service.engine.feeds import PROVIDER_GRAPHS
from service.engine.padding import KEY_MULTIPLE, LEAST_STEP
from service.engine.session import choose_provider
from service.errors import StartError
from service.settings import PREFIX, Settings
from tests.docs.markdown import ROOT, read_table
from tests.service.engine.libcuda import Libcuda, install

PAGE: Final = (ROOT / "docs" / "cuda.md").read_text()


def test_every_graph_of_cuda_has_its_row() -> None:
    rows = [row[1].strip("`") for row in read_table(PAGE, "request", "graph", "because")]
    assert rows == [graph.name for graph in PROVIDER_GRAPHS["cuda"]]


def test_every_setting_of_cuda_is_named_and_no_other_that_is_none() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    named = set(re.findall(rf"\b{PREFIX}\w+", PAGE))
    assert named <= known
    assert {name for name in known if "CUDA" in name} <= named


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"the bias is {NO_KEY_SCORE:.0e}:".replace("e+", "e") in PAGE
    assert f"multiple of {KEY_MULTIPLE} with keys" in PAGE
    assert f"({LEAST_STEP} tokens," in PAGE


def test_the_refusal_of_an_old_driver_is_the_one_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, Libcuda(12080), "570.86.15")
    runtime = SimpleNamespace(
        get_available_providers=lambda: ["CUDAExecutionProvider"], cuda_version="13.0"
    )
    with pytest.raises(StartError) as caught:
        choose_provider(cast("Any", runtime), ROOT, "cuda", 1, CudaOptions())
    assert f"\nlimelight-serve: {caught.value}\n" in PAGE
