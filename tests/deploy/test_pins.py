"""Versions for either CUDA."""

import re
from pathlib import Path

import pytest

from deploy.pins import FILES, choose_pins, read_pins

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"


def choose(cuda: str) -> dict[str, str]:
    """The pins for one CUDA, by package."""
    return dict(line.split("==") for line in choose_pins(ROOT / "deploy", CONSTRAINTS, cuda))


def test_the_newest_cuda_takes_the_constraints_as_they_stand() -> None:
    assert choose("13") == read_pins(CONSTRAINTS)


def test_cuda_12_replaces_onnxruntime_and_adds_its_own_libraries() -> None:
    ours, older = choose("13"), choose("12")
    changed = {name for name in ours if older[name] != ours[name]}
    assert changed == {"onnxruntime-gpu"}
    assert older["onnxruntime-gpu"].startswith("1.26.")
    added = older.keys() - ours.keys()
    assert added
    assert all(re.fullmatch(r"nvidia-[a-z-]+-cu12", name) for name in added)


def test_another_cuda_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^CUDA is '11', expected 13 or 12$"):
        choose("11")


def test_the_image_takes_both_and_the_newest_by_default() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^ARG CUDA=(\d+)$", dockerfile, re.MULTILINE) == ["13"]
    assert all(name is None or f"deploy/{name} " in dockerfile for name in FILES.values())
