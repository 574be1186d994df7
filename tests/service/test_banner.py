"""The first screen: a line to try that fits the model."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.contract import AttentionSpec
from service.banner import render_banner
from service.engine.model import Model
from service.engine.session import Session
from service.engine.signature import check_request
from service.engine.sizes import Limits
from service.protocol.attention_request import decode_request
from service.state import State

MakeState = Callable[..., State]


def open_nothing(_: Path) -> Session:
    raise NotImplementedError


def serve(state: State, **specs: AttentionSpec) -> State:
    limits = Limits(256, 2**20, 2**30, 2**30)
    for name, spec in specs.items():
        state.repository.add(Model(Path("/m") / name / "1", spec, "cpu", open_nothing, limits))
    return state


def read_try(banner: str) -> list[str]:
    (line,) = [line for line in banner.splitlines() if line.startswith("  try ")]
    return shlex.split(line.removeprefix("  try"))


def read_body(words: list[str]) -> bytes:
    """What the line posts: written in it, or printed by the Python program before the pipe."""
    if words[0] == "curl":
        return words[words.index("-d") + 1].encode()
    printed: list[str] = []
    exec(words[2], {"print": printed.append})  # noqa: S102 - the line of the banner
    return printed[0].encode()


def test_a_small_model_is_tried_with_numbers_in_the_line(make_state: MakeState) -> None:
    state = serve(make_state(), demo=AttentionSpec(6, 3))
    assert render_banner(state, "127.0.0.1", 8000) == (
        f"Limelight {state.version}\n"
        "  model     demo version 1: d_model 6, 3 heads, on cpu\n"
        "  page      http://127.0.0.1:8000/\n"
        "  docs      http://127.0.0.1:8000/docs\n"
        "  try       curl -s 'http://127.0.0.1:8000/v1/attention' -d "
        "'{\"query\": [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]}'"
    )


def test_on_cuda_the_gpu_its_driver_and_the_precision_are_named(make_state: MakeState) -> None:
    state = serve(make_state(), demo=AttentionSpec(6, 3))
    state.loader.device = "GPU 0, NVIDIA H200, 140 GiB, driver 580.65.06 (CUDA 13.0), TF32 off"
    _, _, device, page, *_ = render_banner(state, "127.0.0.1", 8000).splitlines()
    assert device == f"  device    {state.loader.device}"
    assert page.startswith("  page ")


def test_several_workers_are_counted(make_state: MakeState) -> None:
    state = serve(make_state(workers=3), demo=AttentionSpec(6, 3))
    assert render_banner(state, "127.0.0.1", 8000).splitlines()[2] == "  workers   3"


def test_a_wide_model_is_tried_with_a_program_that_writes_the_numbers(
    make_state: MakeState,
) -> None:
    state = serve(make_state(), wide=AttentionSpec(768, 12))
    words = read_try(render_banner(state, "127.0.0.1", 8000))
    assert words[:2] == ["python3", "-c"]
    assert words[-4:] == ["-s", "http://127.0.0.1:8000/v1/attention", "-d", "@-"]
    assert json.loads(read_body(words)) == {"query": [[0.5] * 768] * 2}


@pytest.mark.parametrize(
    "spec",
    [
        AttentionSpec(6, 3),
        AttentionSpec(6, 3, 8, 8),
        AttentionSpec(6, 3, 6, 10),
        AttentionSpec(6, 3, 8, 6),
        AttentionSpec(16, 1),
        AttentionSpec(18, 3),
        AttentionSpec(18, 3, 8, 10),
        AttentionSpec(6, 3, 100, 6),
    ],
    ids=str,
)
def test_the_line_fits_the_widths_of_the_model(
    make_state: MakeState, limits: Limits, spec: AttentionSpec
) -> None:
    words = read_try(render_banner(serve(make_state(), layer=spec), "127.0.0.1", 8000))
    asked = decode_request(read_body(words), "json", {}, 2**20)
    check_request(spec, limits, asked.inference)


def test_of_several_models_the_line_names_one(make_state: MakeState) -> None:
    state = serve(make_state(), b=AttentionSpec(6, 3), a=AttentionSpec(8, 2))
    banner = render_banner(state, "127.0.0.1", 8000)
    assert "curl -s 'http://127.0.0.1:8000/v1/attention?model=a'" in banner
    assert banner.count("  model     ") == 2


def test_without_a_model_the_line_asks_which_there_are(make_state: MakeState) -> None:
    state = make_state(model_control="explicit")
    assert render_banner(state, "127.0.0.1", 8000) == (
        f"Limelight {state.version}\n"
        "  model     none yet\n"
        "  page      http://127.0.0.1:8000/\n"
        "  docs      http://127.0.0.1:8000/docs\n"
        "  try       curl -s -X POST 'http://127.0.0.1:8000/v2/repository/index'"
    )


@pytest.mark.parametrize(
    ("host", "changes", "root"),
    [
        ("::1", {}, "http://[::1]:8000"),
        ("127.0.0.1", {"root_path": "/limelight"}, "http://127.0.0.1:8000/limelight"),
    ],
)
def test_addresses_are_written_as_urls(
    make_state: MakeState, host: str, changes: dict[str, Any], root: str
) -> None:
    banner = render_banner(serve(make_state(**changes), demo=AttentionSpec(6, 3)), host, 8000)
    assert f"  page      {root}/\n  docs      {root}/docs\n" in banner
    assert f"'{root}/v1/attention'" in banner
