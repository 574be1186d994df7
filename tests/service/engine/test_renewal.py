"""Whether a version has changed since it was last looked at."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.engine.directories import DEMO
from service.engine.fingerprint import Fingerprint
from service.engine.loader import Loader
from service.engine.model_fault import ModelFaultError, UnreadableError
from service.engine.renewal import Renewal
from service.engine.sizes import Limits
from service.engine.version_files import VersionFiles, check_version

MISSING = "weights.bin is missing"


@pytest.fixture(name="version")
def copy_demo(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO / "demo" / "1", tmp_path / "layer" / "1"))


@pytest.fixture(name="renewal")
def make_renewal(limits: Limits) -> Renewal:
    return Renewal(Loader("cpu", 1, limits))


@pytest.fixture(name="checks")
def count_checks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories whose files were read, in order."""
    checks: list[Path] = []

    def check(directory: Path, root: Path) -> VersionFiles:
        checks.append(directory)
        return check_version(directory, root)

    monkeypatch.setattr("service.engine.renewal.check_version", check)
    return checks


@pytest.fixture(name="settled")
def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are as if they had changed long ago."""
    monkeypatch.setattr(Fingerprint, "is_settled", lambda _: True)


def check(renewal: Renewal, version: Path, *, again: bool = False) -> VersionFiles | None:
    return renewal.check(version, version.parents[1], again=again)


def load(renewal: Renewal, version: Path) -> None:
    files = check(renewal, version)
    assert files
    renewal.load(files)


def fail(renewal: Renewal, version: Path, *, again: bool = False) -> str:
    with pytest.raises(ModelFaultError) as caught:
        check(renewal, version, again=again)
    return str(caught.value)


@pytest.mark.usefixtures("settled")
def test_a_version_is_read_again_only_when_it_changed(
    renewal: Renewal, version: Path, checks: list[Path]
) -> None:
    load(renewal, version)
    assert [check(renewal, version) for _ in range(3)] == [None] * 3
    assert len(checks) == 1
    (version / "weights.bin").touch()
    assert check(renewal, version) is None  # the same content: nothing to load
    assert len(checks) == 2


@pytest.mark.usefixtures("settled")
def test_other_content_is_to_be_loaded(renewal: Renewal, version: Path) -> None:
    load(renewal, version)
    (version.parent / "config.pbtxt").write_text("max_batch_size: 5")
    files = check(renewal, version)
    assert files
    assert files.config.max_batch_size == 5


@pytest.mark.usefixtures("settled")
def test_what_is_loaded_is_loaded_again_where_that_is_wished(
    renewal: Renewal, version: Path
) -> None:
    load(renewal, version)
    assert check(renewal, version, again=True)


@pytest.mark.usefixtures("settled")
def test_files_that_failed_are_not_read_again_until_they_change(
    renewal: Renewal, version: Path, checks: list[Path]
) -> None:
    content = (version / "weights.bin").read_bytes()
    (version / "weights.bin").unlink()
    assert [fail(renewal, version) for _ in range(3)] == [MISSING] * 3
    assert len(checks) == 1
    assert fail(renewal, version, again=True) == MISSING
    assert len(checks) == 2
    (version / "weights.bin").write_bytes(content)
    assert check(renewal, version)


def test_files_that_changed_a_moment_ago_are_read_again(
    renewal: Renewal, version: Path, checks: list[Path]
) -> None:
    """Within a tick of the clock a file may change and keep its time."""
    load(renewal, version)
    for _ in range(3):
        assert check(renewal, version) is None
    assert len(checks) == 4


@pytest.mark.usefixtures("settled")
def test_a_file_that_cannot_be_read_for_now_is_tried_again(
    renewal: Renewal, version: Path, checks: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(renewal, version)
    (version / "weights.bin").touch()

    def refuse(*_: object) -> Any:
        checks.append(version)
        raise UnreadableError("weights.bin cannot be read: Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("service.engine.renewal.check_version", refuse)
        assert fail(renewal, version) == fail(renewal, version)
    assert len(checks) == 3
    assert check(renewal, version) is None


def break_graphs(version: Path) -> None:
    """Sizes that the graphs do not have: the files are whole, and do not run."""
    path = version / "manifest.json"
    content = json.loads(path.read_text())
    content["attention"].update(d_model="9", kdim="9", vdim="9")
    path.write_text(json.dumps(content))


@pytest.mark.usefixtures("settled")
def test_files_that_cannot_be_opened_are_not_tried_again_until_they_change(
    renewal: Renewal, version: Path, checks: list[Path]
) -> None:
    break_graphs(version)
    files = check(renewal, version)
    assert files
    with pytest.raises(ModelFaultError, match=r"^its graphs do not run: ") as caught:
        renewal.load(files)
    assert fail(renewal, version) == str(caught.value)
    assert len(checks) == 1
    assert check(renewal, version, again=True)


@pytest.mark.parametrize("error", [RuntimeError("/secret/path"), MemoryError()])
def test_a_fault_of_ours_is_told_by_its_kind_alone(
    renewal: Renewal,
    version: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Loader, "open", raise_error)
    files = check(renewal, version)
    assert files
    with pytest.raises(ModelFaultError) as caught:
        renewal.load(files)
    assert str(caught.value) == (
        f"loading failed with {type(error).__name__}; the log of the server says more"
    )
    assert caplog.messages == ["model layer/1 cannot be loaded"]


def lead_out(version: Path) -> None:
    version.rename(version.parents[1] / "aside")
    version.symlink_to("/etc")


REMOVALS: dict[str, Callable[[Path], None]] = {"removed": shutil.rmtree, "out": lead_out}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("removed", "its directory cannot be read: No such file or directory"),
        ("out", "'layer/1' leads through a link out of the directory of models; put the files "
         "into it"),
    ],
)  # fmt: skip
def test_a_directory_that_is_not_there_is_told(
    renewal: Renewal, version: Path, how: str, said: str
) -> None:
    REMOVALS[how](version)
    assert fail(renewal, version) == said


@pytest.mark.usefixtures("settled")
def test_what_is_forgotten_is_loaded_anew(renewal: Renewal, version: Path) -> None:
    load(renewal, version)
    renewal.forget(("layer", "1"))
    renewal.forget(("other", "1"))
    assert check(renewal, version)
