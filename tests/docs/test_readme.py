"""Every code block of the README runs, against a server started for it."""

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:8000"


def blocks_of(language: str, *, holding: str = "") -> list[Any]:
    """The blocks in one language that hold a text, as cases named by their first words."""
    return [
        pytest.param(text, id=re.sub(r"\W+", "-", text.strip()[:40]))
        for found, text in BLOCKS
        if found == language and holding in text
    ]


def run_shell(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a block as a user would paste it, with the commands of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-ec", text],
        cwd=directory,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_block_is_of_a_kind_that_is_tested_here() -> None:
    kinds = {language for language, _ in BLOCKS}
    assert kinds == {"sh", "python", "json"}
    for language, text in BLOCKS:
        if language == "sh":
            assert text.split()[0] in ("make", "curl", "docker", "limelight-export"), text


@pytest.mark.parametrize("text", blocks_of("sh", holding="make "))
def test_make_blocks_name_targets_that_make_knows(text: str) -> None:
    for line in text.splitlines():
        done = subprocess.run(
            [*shlex.split(line), "--dry-run"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("text", blocks_of("sh", holding="curl"))
def test_curl_answers_what_the_readme_shows(text: str, server_url: str, tmp_path: Path) -> None:
    done = run_shell(text.replace(f"http://{ADDRESS}", server_url), tmp_path)
    shown = json.loads(next(text for language, text in BLOCKS if language == "json"))
    answer = json.loads(done.stdout)
    assert answer.keys() == shown.keys()
    for name, value in shown.items():
        if name in ("output", "attention_weights"):
            assert flatten(answer[name]) == pytest.approx(flatten(value), abs=1e-6)
        else:
            assert answer[name] == value


def flatten(value: Any) -> list[float]:
    """The numbers of nested lists."""
    return [value] if isinstance(value, float) else [n for part in value for n in flatten(part)]


@pytest.mark.parametrize("text", blocks_of("python"))
def test_python_blocks_run_as_they_stand(text: str, server_url: str, tmp_path: Path) -> None:
    host = server_url.removeprefix("http://")
    done = subprocess.run(
        [sys.executable, "-c", text.replace(ADDRESS, host)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", blocks_of("sh", holding="limelight-export"))
def test_export_blocks_leave_a_model_that_serves(text: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    export, serve = text.strip().splitlines()
    done = run_shell(export, tmp_path)
    assert done.returncode == 0, done.stderr
    assert serve == "limelight-serve --models models"
    assert (tmp_path / "models" / "layer3" / "1" / "manifest.json").is_file()


def write_checkpoint(directory: Path) -> None:
    """A checkpoint with the names that the README's command asks for."""
    from safetensors.numpy import save_file

    from model.contract import AttentionSpec
    from model.weights import Weights

    weights = Weights.random(AttentionSpec(12, 3), seed=3)
    prefix = "encoder.layer.3.attention"
    arrays = {
        f"{prefix}.self.query.weight": weights.W_q,
        f"{prefix}.self.query.bias": weights.b_q,
        f"{prefix}.self.key.weight": weights.W_k,
        f"{prefix}.self.key.bias": weights.b_k,
        f"{prefix}.self.value.weight": weights.W_v,
        f"{prefix}.self.value.bias": weights.b_v,
        f"{prefix}.output.dense.weight": weights.fc_out,
        f"{prefix}.output.dense.bias": weights.b_out,
    }
    save_file(arrays, directory / "model.safetensors")
    (directory / "config.json").write_text(json.dumps({"num_attention_heads": 3}))


@pytest.mark.parametrize("text", blocks_of("sh", holding="docker"))
def test_compose_blocks_name_files_that_are_there(text: str) -> None:
    words = shlex.split(text)
    files = [after for word, after in itertools.pairwise(words) if word == "-f"]
    for name in files or ["docker-compose.yml"]:
        assert (ROOT / name).is_file()
