"""Faults of unpickling: whoever sends a pickle runs code.

BentoML CVE-2024-2912, -2024-9070, -2025-27520, -2025-32375; LightLLM CVE-2026-26220; torch
CVE-2025-32434.
"""

import ast
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
import pytest

from tests.integration.doors import ATTENTION, INFER, NPZ, SAFETENSORS
from tests.integration.server_process import start_server

ROOT: Final = Path(__file__).parents[2]
WATCHED: Final = Path(__file__).parent / "watched"
# What the server process is made of: `service`, and the contract that it shares.
SOURCES: Final = [*sorted((ROOT / "service").rglob("*.py")), ROOT / "model" / "contract.py"]

MODULES: Final = frozenset(
    {
        "_pickle", "cloudpickle", "code", "copyreg", "cPickle", "dbm", "dill", "joblib",
        "jsonpickle", "marshal", "multiprocessing", "pickle", "pty", "runpy", "shelve",
        "subprocess", "tarfile", "torch", "xmlrpc", "yaml",
    }
)  # fmt: skip
BUILTINS: Final = frozenset({"__import__", "compile", "eval", "exec"})
ATTRIBUTES: Final = frozenset(
    {
        "execv", "execve", "fromfile", "genfromtxt", "load_module", "memmap", "popen",
        "posix_spawn", "read_array", "system", "unpack_archive",
    }
)  # fmt: skip


WORKERS = ROOT / "service" / "workers"
# A supervisor and the processes that it has started talk over pipes that nobody else can open; what
# goes through them is pickled by the standard library. No byte of a client is in it but as a number
# or a text of the server's own making.
PIPES = {
    "multiprocessing",
    "multiprocessing.connection",
}


def find_dangers(text: str) -> Iterator[str]:
    """What a source holds that can turn bytes into code, or start a program."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield name
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield name
            # numpy's: files are read here by `protocol.npy`, which knows no objects.
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="load"):
                yield "np.load"
            case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                yield "allow_pickle"
            case _:
                pass


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_of_the_server_turns_bytes_into_code(path: Path) -> None:
    excused = PIPES if path.parent == WORKERS else set()
    assert set(find_dangers(path.read_text())) - excused == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import pickle", "pickle"),
        ("import multiprocessing.pool as p", "multiprocessing.pool"),
        ("from joblib import load", "joblib"),
        ("def f(x):\n    return eval(x)", "eval"),
        ("import numpy as np\nnp.load(file)", "np.load"),
        ("read = np.load", "np.load"),
        ("f(allow_pickle=True)", "allow_pickle"),
        ("f(allow_pickle=trusted)", "allow_pickle"),
        ("import os\nos.system(x)", "system"),
        ("import numpy as np\nnp.fromfile(x)", "fromfile"),
    ],
)
def test_the_search_finds_what_it_is_for(text: str, found: str) -> None:
    assert found in list(find_dangers(text))


def test_the_search_looks_at_the_whole_server() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in SOURCES}
    assert len(names) > 60
    assert {"service/protocol/npz.py", "service/routes/infer.py", "model/contract.py"} <= names


class Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self._path,))


def write_npy(path: Path) -> bytes:
    """An npy file of a trap."""
    stream = io.BytesIO()
    np.save(stream, np.array([[[Trap(path)]]], dtype=object), allow_pickle=True)
    return stream.getvalue()


def write_npz(path: Path, name: str) -> bytes:
    """An npz archive of a trap."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, write_npy(path))
    return stream.getvalue()


def test_the_trap_works(tmp_path: Path) -> None:
    trapped = tmp_path / "trapped"
    np.load(io.BytesIO(write_npy(trapped)), allow_pickle=True)
    assert trapped.exists()


@pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested")
def test_objects_are_refused_at_every_door_and_nothing_is_unpickled(tmp_path: Path) -> None:
    trapped, notes = tmp_path / "trapped", tmp_path / "notes"
    npy = write_npy(trapped)
    pickled = npy[npy.index(b"\n") + 1 :]
    settings: dict[str, Any] = {"PYTHONPATH": str(WATCHED), "LIMELIGHT_TEST_NOTES": str(notes)}
    with start_server(**settings) as server, httpx.Client(base_url=server.url) as client:
        for body in (
            npy,
            pickled,
            write_npz(trapped, "query.npy"),
            write_npz(trapped, "query"),
            write_npz(trapped, "query.pkl"),
        ):
            for media_type in (
                NPZ,
                SAFETENSORS,
                "application/octet-stream",
                "application/json",
                "application/x-pickle",
                "application/vnd.bentoml+pickle",
            ):
                for path in (ATTENTION, f"{ATTENTION}?allow_pickle=true", INFER):
                    answer = client.post(path, content=body, headers={"Content-Type": media_type})
                    assert answer.status_code in (400, 415), (media_type, path)
                    assert list(answer.json()) == ["error"]
        answer = client.post(ATTENTION, content=write_npz(trapped, "query.npy"))
        assert answer.json()["error"] == (
            "array 'query.npy' has dtype '|O', expected numbers or booleans of at most 8 bytes"
        )
    assert not trapped.exists()
    assert notes.read_text() == ""
