"""The command `limelight-serve hash-key`."""

import hashlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from service.errors import StartError
from service.hash_key import check_key, run
from service.http.keys import parse_keys

ROOT = Path(__file__).parents[2]
KEY = "correct-horse-battery-staple"
Capture = pytest.CaptureFixture[str]


class Stdin(io.TextIOWrapper):
    """Standard input that is no terminal."""

    def isatty(self) -> bool:
        return False


def type_in(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Let standard input hold `data`."""
    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(data)))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize(("options", "role"), [([], "infer"), (["--role", "admin"], "admin")])
def test_a_key_from_standard_input_becomes_its_line(
    end: str, options: list[str], role: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    type_in(monkeypatch, f"{KEY}{end}".encode())
    run(options)
    said = capsys.readouterr()
    assert said.out == f"{role}:{hashlib.sha256(KEY.encode()).hexdigest()}\n"
    assert said.err == ""


def test_a_new_key_is_shown_once_and_apart_from_its_line(capsys: Capture) -> None:
    """So that the line alone is appended by ``>> keys``."""
    lines = []
    for _ in range(2):
        run(["--new", "--role", "admin"])
        said = capsys.readouterr()
        shown, _, key = said.err.rstrip("\n").partition(": ")
        assert shown == "key, shown this once"
        assert len(key) == 43  # 256 bits in base64
        found = parse_keys(said.out.encode()).find(key.encode())
        assert found
        assert found.role == "admin"
        lines.append(said.out)
    assert lines[0] != lines[1]


def refuse(key: bytes) -> str:
    """What is said of a key."""
    with pytest.raises(StartError) as caught:
        check_key(key)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "came"), [(b"", "0"), (b"x" * 15, "15"), (b"x" * 513, "more than 512")]
)
def test_a_short_or_endless_key_is_refused(key: bytes, came: str) -> None:
    assert refuse(key) == (
        f"the key has {came} characters, expected 16 to 512; limelight-serve hash-key --new makes "
        "a good one"
    )


@pytest.mark.parametrize("size", [16, 512])
def test_the_bounds_themselves_are_fine(size: int) -> None:
    check_key(b"x" * size)


@pytest.mark.parametrize(
    "key",
    [
        b"correct horse battery",
        b"=" * 16,
        b"a" * 16 + b"=b",
        "\N{SNOWMAN}".encode() * 9,
        b"a\n" * 9,
    ],
)
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: bytes) -> None:
    assert refuse(key) == (
        "the key has characters that the header 'Authorization: Bearer KEY' cannot carry, expected "
        "letters, digits and any of . _ ~ + / - with = at the end alone"
    )


def test_an_endless_input_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, b"x" * 10**6)
    with pytest.raises(StartError, match="more than 512"):
        run([])


def test_an_unknown_role_is_refused(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        run(["--role", "root"])
    assert caught.value.code == 2
    assert "invalid choice: 'root'" in capsys.readouterr().err


def test_a_terminal_does_not_show_the_key() -> None:
    outer, inner = pty.openpty()
    code = "import sys; from service.hash_key import run; run(sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=inner,
        stdout=subprocess.PIPE,
        stderr=inner,
        start_new_session=True,  # without one, getpass would ask the terminal of the tests
    )
    os.close(inner)
    shown = b""
    while b"key: " not in shown:
        shown += os.read(outer, 1024)
    os.write(outer, KEY.encode() + b"\n")
    out, _ = process.communicate(timeout=60)
    shown += os.read(outer, 1024)
    os.close(outer)
    assert out.decode() == f"infer:{hashlib.sha256(KEY.encode()).hexdigest()}\n"
    assert KEY.encode() not in shown
