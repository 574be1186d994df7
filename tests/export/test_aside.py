"""What exports write aside, and what those leave that are killed."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from export.aside import made_aside, remove_abandoned

HOLDER = """
import sys
from pathlib import Path
from export.aside import made_aside

with made_aside(Path(sys.argv[1]), "m") as aside:
    (aside / ".version").mkdir()
    print(aside, flush=True)
    sys.stdin.read()
"""


def test_a_directory_is_there_for_the_block_alone(tmp_path: Path) -> None:
    with made_aside(tmp_path, "m") as aside:
        assert aside.parent == tmp_path
        assert aside.name.startswith(".m.")
        (aside / ".version").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_it_is_removed_by_the_next_export_of_any_model_once_its_process_is_gone(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        left = Path(holder.stdout.readline().strip())
        with made_aside(tmp_path, "other"):
            assert (left / ".version").is_dir()
        holder.kill()
        holder.wait()
        assert left.is_dir()
        with made_aside(tmp_path, "other") as aside:
            assert list(tmp_path.iterdir()) == [aside]


@pytest.mark.parametrize(
    "name", [".m.abcdefgh.", ".m.abcdefg", ".m.ABCDEFGH", "m.abcdefgh", "..data", ".m"]
)
def test_other_names_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name / ".version").mkdir(parents=True)
    remove_abandoned(tmp_path / name)
    assert (tmp_path / name / ".version").is_dir()


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / ".m.abcdefgh"
    (kept / "notes").mkdir(parents=True)
    remove_abandoned(kept)
    assert (kept / "notes").is_dir()


def test_a_file_and_a_link_are_left_alone(tmp_path: Path) -> None:
    file, link, target = tmp_path / ".m.abcdefgh", tmp_path / ".m.abcdefgi", tmp_path / "target"
    file.write_text("mine")
    (target / ".version").mkdir(parents=True)
    link.symlink_to(target)
    for path in (file, link, tmp_path / ".m.absent00"):
        remove_abandoned(path)
    assert file.read_text() == "mine"
    assert (link / ".version").is_dir()


def test_exports_that_begin_together_do_not_remove_each_other(tmp_path: Path) -> None:
    seen, faults = threading.Barrier(8), list[BaseException]()

    def export() -> None:
        try:
            for _ in range(50):
                with made_aside(tmp_path, "m") as aside:
                    (aside / ".version").mkdir()
            with made_aside(tmp_path, "m") as aside:
                seen.wait(60)
                assert aside.is_dir()
                seen.wait(60)
        except BaseException as error:
            faults.append(error)
            seen.abort()

    threads = [threading.Thread(target=export) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert list(tmp_path.iterdir()) == []
