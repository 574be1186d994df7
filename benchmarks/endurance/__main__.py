"""Wear a server down, and print what was measured beside what is wanted.

Exits with 1 if a figure is missed.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from benchmarks.console import finish, say
from benchmarks.endurance.burst import burst
from benchmarks.endurance.chunks import chunks
from benchmarks.endurance.copy import copy
from benchmarks.endurance.figure import Figure, find_missed
from benchmarks.endurance.kill import kill
from benchmarks.endurance.leave import leave
from benchmarks.endurance.long import long
from benchmarks.endurance.mix import mix
from benchmarks.endurance.overload import overload
from benchmarks.endurance.probe import probe
from benchmarks.endurance.reload import reload
from benchmarks.endurance.slow import slow
from benchmarks.endurance.soak import soak
from benchmarks.endurance.stage import FULL, Stage
from benchmarks.endurance.stop import stop
from benchmarks.endurance.workers import workers

SOAK: Final = "soak"
Check = Callable[[Stage], list[Figure]]

CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "reload": reload,
        "copy": copy,
        "mix": mix,
        "leave": leave,
        "slow": slow,
        "probe": probe,
        "burst": burst,
        "long": long,
        "chunks": chunks,
        "overload": overload,
        "stop": stop,
        "kill": kill,
        "workers": workers,
        SOAK: soak,
    }
)


def main() -> None:
    """Run the checks that are named; all but the soak, which takes long, unless any is."""
    options = read_options()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="limelight-") as folder:
        for name in options.names or [name for name in CHECKS if name != SOAK]:
            say(f"{name}: {(CHECKS[name].__doc__ or '').splitlines()[0]}")
            started_s = time.perf_counter()
            figures = CHECKS[name](Stage(Path(folder), options.scale))
            for figure in figures:
                say(figure.render())
            results[name] = {
                "duration_s": time.perf_counter() - started_s,
                "figures": [figure.describe() for figure in figures],
            }
            if options.json:
                options.json.write_text(json.dumps(describe(options.scale) | results, indent=2))
    finish(find_missed({name: result["figures"] for name, result in results.items()}))


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CHECKS))
    parser.add_argument("--scale", type=float, default=FULL, help="share of the full size")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in CHECKS]
    if unknown:
        parser.error(f"no check is called {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    return options


def describe(scale: float) -> dict[str, object]:
    """What the figures depend on."""
    return {
        "scale": scale,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    main()
