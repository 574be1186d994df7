"""Run every graph on a GPU: right, with which kernel, joined, out of memory, and how fast.

Exits with 1 if a bound is missed. ``--provider cpu`` does what needs no GPU.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks.console import finish, say
from benchmarks.endurance.figure import Figure, find_missed
from benchmarks.gpu.engine import concurrency, joining
from benchmarks.gpu.kernels import kernels
from benchmarks.gpu.layers import find_absent
from benchmarks.gpu.memory import memory
from benchmarks.gpu.note import Note
from benchmarks.gpu.parity import blind, parity
from benchmarks.gpu.speed import speed
from benchmarks.gpu.stage import Stage
from export.errors import ExportError
from export.runtime import load_runtime
from service.errors import StartError

LONGEST_S: Final = 300
Check = Callable[[Stage], Iterator[Figure | Note]]

CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "parity": parity,
        "blind": blind,
        "kernels": kernels,
        "joining": joining,
        "memory": memory,
        "concurrency": concurrency,
        "speed": speed,
    }
)
NEED_A_GPU: Final = ("kernels", "memory")


def main() -> None:
    """Run the checks that are named, all unless any is."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="limelight-") as folder:
        models = options.models or Path(folder)
        started_s = time.perf_counter()
        export_absent(models)
        results = run_checks(Stage(models, options.provider, options.round_s), options.names)
        duration = Figure("all of it", time.perf_counter() - started_s, "s", most=LONGEST_S)
    say(duration.render())
    results["duration"] = [duration.describe()]
    if options.json:
        content = {"machine": describe(options.provider), "checks": results}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    finish(find_missed(results))


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CHECKS))
    parser.add_argument("--provider", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument(
        "--models", type=Path, help="folder that keeps the models, or has them already"
    )
    parser.add_argument("--round-s", type=float, default=0.2, help="time for each side of a round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CHECKS]
    if unknown:
        parser.error(f"no check is called {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    return options


def export_absent(models: Path) -> None:
    """Export what is not there, in a process of its own: torch brings CUDA libraries of its own."""
    if find_absent(models):
        say("exporting the models")
        command = [sys.executable, "-m", "benchmarks.gpu.layers", str(models)]
        if subprocess.run(command, check=False).returncode:
            sys.exit(
                "the models cannot be exported here; make them where the extra 'export' is, with "
                "python -m benchmarks.gpu.layers FOLDER, and say --models FOLDER"
            )


def run_checks(stage: Stage, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """What each check found; one that cannot run here says so, and one that fails has missed."""
    results = {}
    for name in names or CHECKS:
        check = CHECKS[name]
        say(f"{name}: {(check.__doc__ or '').splitlines()[0]}")
        if stage.provider == "cpu" and name in NEED_A_GPU:
            found: Iterator[Figure | Note] = iter([Note(name, "left out: needs a GPU")])
        else:
            found = guard(name, check(stage))
        results[name] = [show(each) for each in found]
    return results


def guard(name: str, found: Iterator[Figure | Note]) -> Iterator[Figure | Note]:
    """What a check finds; where it fails, the others go on.

    Raises:
        SystemExit: if nothing can run on the provider.
    """
    try:
        yield from found
    except (ExportError, StartError) as error:
        sys.exit(f"python -m benchmarks.gpu: {error}")
    except Exception as error:  # of onnxruntime or torch, which have no class in common
        say(f"  {type(error).__name__}: {error}")
        yield Figure(f"{name} ran to its end", 0, least=1)


def show(each: Figure | Note) -> dict[str, Any]:
    """Print a finding as it comes."""
    say(each.render())
    return each.describe()


def describe(provider: str) -> dict[str, object]:
    """What the figures depend on."""
    runtime = load_runtime()
    return {
        "provider": provider,
        "onnxruntime": runtime.__version__,
        "gpu": read_gpu() if provider == "cuda" else None,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def read_gpu() -> str | None:
    """Name, driver and memory of the GPU, as NVIDIA's tool tells them."""
    command = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    main()
