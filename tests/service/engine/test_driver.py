"""The NVIDIA driver, asked for itself and its GPUs; a stand-in answers, as no GPU is at hand."""

from pathlib import Path

import pytest

from service.engine.driver import Driver, DriverError, Gpu, read_module_version
from tests.service.engine.libcuda import NO_DEVICE, Libcuda, install

MODULES = {
    # Of a host with the closed module, and of one with the open one.
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
    "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n": "535.183.01",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@x)"
    "  Sun Jul 27 06:54:02 UTC 2025\n": "580.65.06",
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90  Mon\n": "550.90",
    "nothing of the kind\n": None,
}


def test_a_machine_without_the_library_has_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    assert Driver.find() is None


def test_the_driver_says_which_cuda_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda(cuda_version=12080), "570.86.15")
    driver = Driver.find()
    assert driver is not None
    assert driver.read_cuda_version() == (12, 8)
    assert str(driver) == "570.86.15 (CUDA 12.8)"


def test_a_container_may_hide_the_version_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Libcuda(), None)
    assert str(Driver.find()) == "unknown version (CUDA 13.0)"


def test_gpus_are_counted_and_described() -> None:
    gpus = (("NVIDIA L4", 23 * 2**30 - 5, (8, 9)), ("NVIDIA H200", 140 * 2**30, (9, 0)))
    driver = Driver(Libcuda(gpus=gpus), None)
    assert driver.count_gpus() == 2
    assert driver.read_gpu(0) == Gpu(0, "NVIDIA L4", 23 * 2**30 - 5, (8, 9))
    assert str(driver.read_gpu(0)) == "GPU 0, NVIDIA L4, 23 GiB, capability 8.9"
    assert str(driver.read_gpu(1)) == "GPU 1, NVIDIA H200, 140 GiB, capability 9.0"


def test_what_the_driver_refuses_it_explains() -> None:
    with pytest.raises(DriverError, match=r"^cuInit: no CUDA-capable device is detected$"):
        Driver(Libcuda(init=NO_DEVICE), None).count_gpus()
    with pytest.raises(DriverError, match=r"^cuDeviceGet: invalid device ordinal$"):
        Driver(Libcuda(), None).read_gpu(3)
    with pytest.raises(DriverError, match=r"^cuInit: error 999$"):
        Driver(Libcuda(init=999), None).count_gpus()


@pytest.mark.parametrize(("text", "version"), MODULES.items())
def test_the_version_of_the_module_stands_in_its_file(
    tmp_path: Path, text: str, version: str | None
) -> None:
    path = tmp_path / "version"
    path.write_text(text)
    assert read_module_version(path) == version


def test_without_a_module_there_is_no_such_file(tmp_path: Path) -> None:
    assert read_module_version(tmp_path / "version") is None
