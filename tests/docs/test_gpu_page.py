"""docs/gpu.md names every check of the command, and the bounds that it has."""

from benchmarks.gpu.__main__ import CHECKS, LONGEST_S, NEED_A_GPU
from benchmarks.gpu.engine import THREADS
from benchmarks.gpu.memory import ARENA_BYTES
from benchmarks.gpu.parity import UNIFORM_ERROR
from benchmarks.gpu.stage import BOUNDS
from tests.docs.markdown import ROOT, read_table

PAGE = (ROOT / "docs" / "gpu.md").read_text()
ROWS = {row[0].strip("`"): row[1:] for row in read_table(PAGE, "check", "what it does", "wanted")}


def test_every_check_has_its_row() -> None:
    assert list(ROWS) == list(CHECKS)


def test_the_bounds_are_those_of_the_command() -> None:
    float32, float16 = BOUNDS["cuda", "fp32"], BOUNDS["cuda", "fp16"]
    assert (float32, float16, UNIFORM_ERROR) == (1e-3, 1e-2, 1e-6)
    assert ROWS["parity"][1] == "1e-3 in float32, with TF32 off; 1e-2 in float16"
    assert ROWS["blind"][1] == "uniform to 1e-6; 0"
    assert f"({ARENA_BYTES // 2**20} MiB)" in ROWS["memory"][0]
    assert f"on {THREADS} threads" in ROWS["concurrency"][0]
    assert LONGEST_S == 5 * 60
    assert "less than five minutes" in PAGE


def test_what_needs_a_gpu_is_named() -> None:
    assert "all but " + " and ".join(f"`{name}`" for name in NEED_A_GPU) in PAGE
