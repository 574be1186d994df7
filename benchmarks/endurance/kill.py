"""SIGKILL in the middle of an export, and in the middle of a load."""

import subprocess
import time
from pathlib import Path
from typing import Final

import httpx

from benchmarks.endurance.figure import Figure
from benchmarks.endurance.readings import wait_until
from benchmarks.endurance.stage import Stage, export_command
from benchmarks.endurance.traffic import ask_once, draw, render_infer
from benchmarks.server import command_of, serve

MODEL: Final = "whole"
MOST_START_S: Final = 1.5


def kill(stage: Stage) -> list[Figure]:
    """Afterwards the server must start as if nothing had happened, and the next export clean up."""
    rounds, models = stage.size(20, 2), stage.make_repository()
    stage.place(models, MODEL, "1", stage.d_model, 1)
    files = read_files(models)
    tensors = draw(0, 1, 16, stage.d_model)
    with serve(models) as server:
        right = ask_once(server.url, render_infer(server.url, MODEL, tensors))
    for number in range(rounds):
        kill_load(models, MOST_START_S * number / rounds)
    killed_exports = sum(kill_export(stage, models) for _ in range(stage.size(5, 1)))
    left = count_hidden(models)
    with serve(models) as server:
        served = httpx.get(f"{server.url}/v2/models").json()["models"]
        answer = ask_once(server.url, render_infer(server.url, MODEL, tensors))
        cold_start_s = server.cold_start_s
    changed = sum(files[path] != content for path, content in read_files(models).items())
    run_export(stage, models).wait()
    return [
        Figure("servers killed while they loaded", rounds),
        Figure("exports killed while they wrote", killed_exports, least=1),
        Figure("hidden directories that they left", left, least=1),
        Figure("models that the next server serves beside the whole one", len(served) - 1, most=0),
        Figure("answers of it that are not the right one", answer != right, most=0),
        Figure("its start", cold_start_s, "s", most=30),
        Figure("files of the model that changed", changed, most=0),
        Figure("hidden directories after the next export", count_hidden(models), most=0),
    ]


def read_files(models: Path) -> dict[Path, bytes]:
    """The content of every file of the model."""
    return {path: path.read_bytes() for path in (models / MODEL).rglob("*") if path.is_file()}


def kill_load(models: Path, after_s: float) -> None:
    """Start a server, and end it before or soon after it is ready."""
    process = subprocess.Popen(
        command_of(models), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after_s)
    process.kill()
    process.wait()


def run_export(stage: Stage, models: Path) -> subprocess.Popen[bytes]:
    """Begin to export another model."""
    command = [*export_command(stage.d_model, 2), "--name", "other", "--models", str(models)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_export(stage: Stage, models: Path) -> bool:
    """End an export when its first file is there; whether that was in time."""
    before, process = list_hidden_files(models), run_export(stage, models)
    wait_until(lambda: bool(list_hidden_files(models) - before) or process.poll() is not None)
    process.kill()
    return process.wait() != 0


def list_hidden_files(models: Path) -> set[Path]:
    """Files in directories that exports have not finished."""
    return {path for path in models.glob(".*/**/*") if path.is_file()}


def count_hidden(models: Path) -> int:
    """Directories that exports have not finished."""
    return len(list(models.glob(".*")))
