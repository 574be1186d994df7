"""How many cores a process may use: affinity, and a container's quota."""

import os
from pathlib import Path

import pytest

from service.engine import machine
from service.engine.machine import count_cores, read_quota


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return tmp_path / "cpu.max"


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    (tmp_path / "cpu").mkdir()
    return tmp_path / "cpu"


def write_v1(folder: Path, quota: str, period: str = "100000\n") -> None:
    (folder / "cpu.cfs_quota_us").write_text(quota)
    (folder / "cpu.cfs_period_us").write_text(period)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("150000 100000\n", 1.5),
        ("400000 100000\n", 4),
        ("5000 10000\n", 0.5),
        ("max 100000\n", None),
    ],
)
def test_a_quota_of_version_2(v2: Path, v1: Path, text: str, cores: float | None) -> None:
    v2.write_text(text)
    assert read_quota(v2, v1) == cores


@pytest.mark.parametrize(("quota", "cores"), [("250000\n", 2.5), ("-1\n", None), ("0\n", None)])
def test_a_quota_of_version_1(v2: Path, v1: Path, quota: str, cores: float | None) -> None:
    write_v1(v1, quota)
    assert read_quota(v2, v1) == cores


def test_version_2_goes_before_version_1(v2: Path, v1: Path) -> None:
    v2.write_text("max 100000\n")
    write_v1(v1, "100000\n")
    assert read_quota(v2, v1) is None


@pytest.mark.parametrize("text", ["", "max", "many 100000", "1 2 3"])
def test_a_file_that_cannot_be_read_is_passed_over(v2: Path, v1: Path, text: str) -> None:
    v2.write_text(text)
    assert read_quota(v2, v1) is None
    write_v1(v1, "300000\n")
    assert read_quota(v2, v1) == 3


def test_without_control_groups_there_is_no_quota(v2: Path, v1: Path) -> None:
    assert read_quota(v2, v1) is None
    write_v1(v1, "many\n")
    assert read_quota(v2, v1) is None


@pytest.mark.parametrize(
    ("cores", "quota", "wanted"),
    [(8, None, 8), (8, 1.5, 2), (8, 0.1, 1), (2, 16.0, 2), (1, None, 1), (0, None, 1)],
)
def test_the_smaller_of_affinity_and_quota_counts(
    monkeypatch: pytest.MonkeyPatch, cores: int, quota: float | None, wanted: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(machine, "read_quota", lambda: quota)
    assert count_cores() == wanted


@pytest.mark.parametrize(
    ("cores", "quota", "workers", "wanted"),
    [(8, None, 2, 4), (7, None, 2, 3), (64, 5.5, 3, 2), (2, None, 3, 1)],
)
def test_workers_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, cores: int, quota: float | None, workers: int, wanted: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(machine, "read_quota", lambda: quota)
    assert count_cores(workers) == wanted


@pytest.mark.parametrize(("cores", "wanted"), [(4, 4), (None, 1)])
def test_a_system_without_affinity_counts_its_processors(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, wanted: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(machine, "read_quota", lambda: None)
    assert count_cores() == wanted
