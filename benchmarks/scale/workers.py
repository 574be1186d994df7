"""Measure what several workers answer beside one, in turns, on the cores that both share.

Beside it stands the share of the processor time of one process that its event loop takes: the more
it is, the less of a second core one process can use.

``python -m benchmarks.scale.workers --workers 2``
"""

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.client import Load, run_load
from benchmarks.console import say
from benchmarks.endurance.crowd import find_percentile
from benchmarks.endurance.traffic import draw
from benchmarks.scale.__main__ import make_model, render
from benchmarks.scale.cost import Size
from benchmarks.server import ServerUnderTest, serve
from benchmarks.wire import encode_v1_json, render_post

D_MODEL: Final = 512
SIZES: Final = ((1, 16), (1, 128), (4, 256))
JSON_SIZE: Final = (1, 64)
CONNECTIONS: Final = (4, 16)


@dataclass(frozen=True)
class Case:
    """Requests of one kind, kept in flight on some connections.

    Attributes:
        label: of the kind.
        path: of the model, and whether as JSON.
        size: of a request.
        connections: that ask.
    """

    label: str
    size: Size
    connections: int
    is_json: bool = False

    def render(self, url: str) -> bytes:
        """The bytes of a request."""
        if not self.is_json:
            return render(url, self.size)
        tensors = draw(0, self.size.batch_size, self.size.length, self.size.d_model)
        return render_post(url, f"/v1/attention?model=d{D_MODEL}", *encode_v1_json(tensors))


def list_cases() -> list[Case]:
    """All that are measured."""
    kinds = [(f"{b}x{length}", Size(b, length, D_MODEL), False) for b, length in SIZES]
    kinds.append(("1x64, JSON", Size(*JSON_SIZE, D_MODEL), True))
    return [
        Case(label, size, connections, is_json)
        for label, size, is_json in kinds
        for connections in CONNECTIONS
    ]


def main() -> None:
    """Print answers a second and the 99th percentile of several workers over those of one."""
    options = read_options()
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or Path(folder)
        make_model(models, D_MODEL)
        quiet = {"LIMELIGHT_LOG_REQUESTS": "false"}
        with (
            serve(models, (), **quiet) as one,
            serve(models, (), **quiet, LIMELIGHT_WORKERS=str(options.workers)) as several,
            serve(models, (), **quiet) as again,
        ):
            say("                     loop   answers a second     99th percentile        one again")
            for case in list_cases():
                show(case, (one, several, again), options)


def show(case: Case, servers: tuple[ServerUnderTest, ...], options: argparse.Namespace) -> None:
    """One line: the share, medians of the ratios of rounds, and within what half of them are."""
    requests = [case.render(server.url) for server in servers]
    ratios: list[tuple[float, float, float]] = []
    before = read_times_ns(servers[0])
    for _ in range(options.rounds + 1):
        one, several, again = (
            run_load(server.url, request, case.connections, options.round_s)
            for server, request in zip(servers, requests, strict=True)
        )
        ratios.append(
            (
                several.per_second / one.per_second,
                find_p99(several) / find_p99(one),
                again.per_second / one.per_second,
            )
        )
    rates, tails, noise = zip(*ratios[1:], strict=True)  # the first round warms up
    cells = "   ".join(
        "{1:5.2f} ({0:.2f} to {2:.2f})".format(*statistics.quantiles(each, n=4))
        for each in (rates, tails, noise)
    )
    loop_ns, all_ns = (
        now - then for now, then in zip(read_times_ns(servers[0]), before, strict=True)
    )
    say(f"{case.label:10} {case.connections:3} conn.  {loop_ns / all_ns:4.0%}   {cells}")


def read_times_ns(server: ServerUnderTest) -> tuple[int, int]:
    """Processor time of the event loop, the main thread, and of all; proc(5), schedstat."""
    pid = server.process.pid
    times = {
        int(file.parent.name): int(file.read_text().split()[0])
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat")
    }
    return times[pid], sum(times.values())


def find_p99(load: Load) -> float:
    """Seconds within which 99 of 100 were answered."""
    return find_percentile(load.latencies_s, 99)


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale.workers", description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--round-s", type=float, default=0.1, help="time for each side of a round")
    parser.add_argument("--models", type=Path, help="folder that keeps the model for the next run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
