"""Time the server, as a user starts it, against ``session.run`` in the same run.

Every cell is checked against onnxruntime's answer, bit for bit, before it is timed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.console import say
from benchmarks.measure import Cell, measure_latency, measure_throughput
from benchmarks.server import ServerUnderTest, serve
from benchmarks.workload import D_MODEL, NAME, NUM_HEADS, Raw, Workload

MIB = 2**20
SIZES = ((1, 16), (1, 128), (4, 256), (1, 1024))
JSON_SIZES = ((1, 16), (1, 64))
WEIGHTS_SIZES = ((1, 16), (4, 256))
LATENCY = (
    *(Workload(*size) for size in SIZES),
    *(Workload(*size, alone=True) for size in SIZES[:3]),
    *(Workload(*size, weights=form) for size in WEIGHTS_SIZES for form in ("per_head", "mean")),
    *(
        Workload(*size, door)
        for size in JSON_SIZES
        for door in ("V2 JSON flat", "V2 JSON nested", "/v1 JSON", "/v1 safetensors")
    ),
)
THROUGHPUT = tuple(Workload(*size) for size in SIZES[:3])
CONNECTIONS = (4, 16, 64)


def main() -> None:
    """Print tables; with --json FILE write the numbers too."""
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder)
        raw = Raw(make_model(models))
        with serve(models, options.cores) as server:
            cells = list(show(run_cells(server, raw, options)))
            memory = measure_memory(server)
        with serve(cores=options.cores) as server:
            memory |= {"cold_start_s": server.cold_start_s, "demo_pss": server.read_memory("Pss")}
    say(
        f"cold start {memory['cold_start_s']:.2f} s, PSS then {memory['demo_pss'] / MIB:.0f} MiB "
        f"(demo); after the load {memory['rss'] / MIB:.0f} MiB resident, peak "
        f"{memory['peak'] / MIB:.0f} MiB"
    )
    if options.json:
        result = {"machine": describe_machine(), "cells": [asdict(c) for c in cells], **memory}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-s", type=float, default=0.3, help="time for each side of a round")
    parser.add_argument("--only", default="", help="workloads whose label holds this text")
    parser.add_argument("--cores", type=int, nargs="*", default=[], help="cores for the server")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def run_cells(server: ServerUnderTest, raw: Raw, options: argparse.Namespace) -> Iterator[Cell]:
    """Every workload that was chosen."""
    timing = {"rounds": options.rounds, "round_s": options.round_s}
    for workload in choose(LATENCY, options.only):
        yield measure_latency(server, raw, workload, **timing)
    for workload in choose(THROUGHPUT, options.only):
        for connections in CONNECTIONS:
            yield measure_throughput(server, raw, workload, connections, **timing)


def choose(workloads: Iterable[Workload], text: str) -> Iterator[Workload]:
    """Those whose label holds `text`."""
    return (workload for workload in workloads if text in workload.label)


def show(cells: Iterable[Cell]) -> Iterator[Cell]:
    """Print each cell as it comes."""
    say(
        f"{'workload':38} {'conn':>4} {'raw':>9} {'served':>9} {'ratio (quartiles)':>20} {'cpu':>8}"
    )
    for cell in cells:
        low, middle, high = cell.ratio
        unit = "ms" if cell.connections == 1 else "/s"
        say(
            f"{cell.label:38} {cell.connections:4} {cell.raw:7.2f}{unit} {cell.served:7.2f}{unit} "
            f"{middle:6.2f} ({low:.2f} - {high:.2f}) {cell.cpu_ms:6.2f}ms"
        )
        yield cell


def measure_memory(server: ServerUnderTest) -> dict[str, float]:
    """Bytes that the server holds, and held at most."""
    return {"rss": server.read_memory("Rss"), "peak": server.read_peak()}


def describe_machine() -> dict[str, object]:
    """What the figures depend on."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def make_model(models: Path) -> Path:
    """Export a random layer, and return the directory of its version."""
    sizes = ["--d-model", str(D_MODEL), "--num-heads", str(NUM_HEADS)]
    command = [sys.executable, "-m", "export", "random", *sizes]
    subprocess.run(
        [*command, "--name", NAME, "--models", str(models)], check=True, stdout=subprocess.DEVNULL
    )
    return models / NAME / "1"


if __name__ == "__main__":
    main()
