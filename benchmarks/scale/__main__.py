"""Measure what requests cost and how long they wait, beside what the models of both predict."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.client import Connection, run_load
from benchmarks.console import say
from benchmarks.raw import time_calls
from benchmarks.scale.arrivals import Arrivals
from benchmarks.scale.cost import Cost, Size
from benchmarks.scale.queue import Replica
from benchmarks.server import ServerUnderTest, serve
from benchmarks.wire import encode_v2_binary, render_post

D_K = 64
FITTED = tuple(
    Size(batch_size, length, d_model)
    for d_model in (64, 256, 512, 1024)
    for batch_size, length in ((1, 16), (1, 64), (8, 64), (1, 256), (1, 1024))
)
HELD_BACK = tuple(
    Size(batch_size, length, 768) for batch_size, length in ((1, 48), (4, 48), (1, 192), (1, 768))
)
WAITING = {1: Size(1, 128, 512), 2: Size(1, 384, 512)}
LOADS = (0.3, 0.5, 0.7, 0.85)
CONNECTIONS, ROUND_S = 8, 1.0  # which keep a server busy


def main() -> None:
    """Print three tables: costs that were fitted, costs that were not, and waits."""
    options = read_options()
    own, *others = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or Path(folder)
        for d_model in sorted({size.d_model for size in (*FITTED, *HELD_BACK)}):
            make_model(models, d_model)
        with serve(models, others[:1]) as server:
            os.sched_setaffinity(0, {own})  # after the server was started, which would inherit it
            cost = show_costs(server, options)
            show_waits(server, 1, options)
        with serve(models, [own, *others[:1]]) as server:
            show_waits(server, 2, options)
    say("rates, ms: " + ", ".join(f"{name} {rate:.4g}" for name, rate in cost.rates_ms.items()))


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--round-s", type=float, default=0.4, help="time for each round of a size")
    parser.add_argument("--models", type=Path, help="folder that keeps the models for the next run")
    parser.add_argument("--wait-s", type=float, default=8, help="time for each load")
    return parser.parse_args()


def show_costs(server: ServerUnderTest, options: argparse.Namespace) -> Cost:
    """Fit the rates to some sizes, and compare them with those and with others."""
    measured = {
        size: measure_ms(server, size, options.rounds, options.round_s)
        for size in (*FITTED, *HELD_BACK)
    }
    cost = Cost.fit({size: measured[size] for size in FITTED})
    say("   B     L     D   measured  predicted      off")
    for size, ms in measured.items():
        predicted = cost.predict_ms(size)
        note = "" if size in FITTED else "  held back"
        sizes = f"{size.batch_size:4} {size.length:5} {size.d_model:5}"
        say(f"{sizes} {ms:7.2f} ms {predicted:7.2f} ms {predicted / ms - 1:+8.0%}{note}")
    return cost


def measure_ms(server: ServerUnderTest, size: Size, rounds: int, round_s: float) -> float:
    """Processor time of a request, the median of some rounds."""
    connection = Connection(server.url, render(server.url, size))
    connection.ask()
    found = []
    for _ in range(rounds):
        before_s = server.cpu_s
        calls = len(time_calls(connection.ask, round_s))
        found.append((server.cpu_s - before_s) / calls * 1000)
    connection.close()
    return statistics.median(found)


def show_waits(server: ServerUnderTest, cores: int, options: argparse.Namespace) -> None:
    """Compare the times of answers under several loads with the queue that predicts them."""
    size = WAITING[cores]
    most_per_second = measure_most(server, size, options.rounds)
    replica = Replica(cores, cores * 1000 / most_per_second)
    request = render(server.url, size)
    say(f"{cores} core(s), {size}, {replica.request_ms:.2f} ms each of {cores} at once")
    say("load    per s   p50 measured  predicted   p99 measured  predicted")
    for load in LOADS:
        per_second = load * replica.most_per_second
        rounds = [
            Arrivals(server.url, request, per_second, seed).run(options.wait_s) for seed in range(3)
        ]
        cells = [
            f"{statistics.median(quantiles_ms(rounds, q)):9.1f} ms "
            f"{replica.predict_ms(per_second, q):7.1f} ms"
            for q in (0.5, 0.99)
        ]
        say(f"{load:4.0%} {per_second:8.1f}  {'   '.join(cells)}")


def measure_most(server: ServerUnderTest, size: Size, rounds: int) -> float:
    """Requests per second at most, the median of some rounds.

    Not what one request takes by itself: cores that compute at once share memory, and often are two
    threads of one core.
    """
    request = render(server.url, size)
    loads = [run_load(server.url, request, CONNECTIONS, ROUND_S) for _ in range(rounds)]
    return statistics.median(load.per_second for load in loads)


def quantiles_ms(rounds: Iterable[list[float]], quantile: float) -> Iterator[float]:
    """A quantile of each round."""
    return (float(np.quantile(latencies_s, quantile)) * 1000 for latencies_s in rounds)


def render(url: str, size: Size) -> bytes:
    """The bytes of a request of one size, as V2 with binary tensors."""
    shape = (size.batch_size, size.length, size.d_model)
    query = np.random.default_rng(0).standard_normal(shape, np.float32)
    body, headers = encode_v2_binary({"query": query}, "none")
    return render_post(url, f"/v2/models/d{size.d_model}/infer", body, headers)


def make_model(models: Path, d_model: int) -> None:
    """Export a random layer of one size, unless it is there."""
    if (models / f"d{d_model}").exists():
        return
    sizes = ["--d-model", str(d_model), "--num-heads", str(d_model // D_K)]
    command = [sys.executable, "-m", "export", "random", *sizes, "--name", f"d{d_model}"]
    subprocess.run([*command, "--models", str(models)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
