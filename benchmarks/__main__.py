"""Time the server, as a user starts it, against ``session.run`` in the same run.

Every cell is checked against onnxruntime's answer before it is timed. Raw and served calls take
turns, since other work on the machine slows both: only their ratio is worth quoting.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import numpy as np
from numpy.typing import NDArray

from benchmarks.raw import Tensors, open_raw

D_MODEL, NUM_HEADS = 512, 8
SIZES = ((1, 16), (1, 128), (4, 256))
NAME = "bench"


@dataclass(frozen=True)
class Cell:
    """Medians over the rounds, in milliseconds, and the spread of their ratio."""

    batch_size: int
    length: int
    raw_ms: float
    served_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float


def main() -> None:
    """Print a table; with --json FILE write the numbers too."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-s", type=float, default=0.3, help="time for each side of a round")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = make_model(Path(folder))
        with serve(Path(folder)) as url:
            raw = open_raw(directory / "fused_bias.onnx")
            cells = [measure(raw, url, *size, options) for size in SIZES]
    say("batch  length  raw ms  served ms  served / raw (quartiles)")
    for cell in cells:
        say(
            f"{cell.batch_size:5}  {cell.length:6}  {cell.raw_ms:6.2f}  {cell.served_ms:9.2f}  "
            f"{cell.ratio:.2f} ({cell.ratio_low:.2f} - {cell.ratio_high:.2f})"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=2) + "\n")


def say(line: str) -> None:
    """Write one line."""
    sys.stdout.write(f"{line}\n")


def make_model(models: Path) -> Path:
    """Export a random layer, and return the directory of its version."""
    sizes = ["--d-model", str(D_MODEL), "--num-heads", str(NUM_HEADS)]
    command = [sys.executable, "-m", "export", "random", *sizes]
    subprocess.run([*command, "--name", NAME, "--models", str(models)], check=True)
    return models / NAME / "1"


@contextmanager
def serve(models: Path) -> Iterator[str]:
    """`limelight-serve` on a free port; its address."""
    command = [sys.executable, "-m", "service", "--port", "0", "--models", str(models)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield read_address(process)
        if process.poll() is not None:
            raise RuntimeError("the server died during the benchmark")
    finally:
        process.terminate()
        process.wait()


def read_address(process: subprocess.Popen[str]) -> str:
    """The address in the server's first screen.

    Raises:
        RuntimeError: if it ends without one.
    """
    for line in process.stdout or ():
        label, _, rest = line.strip().partition(" ")
        if label == "page":
            return rest.strip().removesuffix("/")
    raise RuntimeError("the server did not start")


def measure(
    raw: Callable[[Tensors], NDArray[np.float32]],
    url: str,
    batch_size: int,
    length: int,
    options: argparse.Namespace,
) -> Cell:
    """Time one size, raw and served in turns.

    Raises:
        RuntimeError: if the two answers differ in a single bit.
    """
    generator = np.random.default_rng(0)
    shape = (batch_size, length, D_MODEL)
    tensors: Tensors = {
        name: generator.standard_normal(shape, np.float32) for name in ("query", "key", "value")
    }
    tensors["mask"] = generator.random((batch_size, 1, length, length)) < 0.8
    content, headers = encode(tensors)
    path = f"{url}/v2/models/{NAME}/infer"
    with httpx.Client(timeout=60) as client:

        def ask() -> bytes:
            return client.post(path, content=content, headers=headers).raise_for_status().content

        if ask()[-4 * np.prod(shape) :] != raw(tensors).tobytes():
            raise RuntimeError(f"served and raw differ at {batch_size}x{length}")
        rounds = [
            (time_calls(lambda: raw(tensors), options.round_s), time_calls(ask, options.round_s))
            for _ in range(options.rounds)
        ]
    ratios = [served / alone for alone, served in rounds]
    low, middle, high = statistics.quantiles(ratios, n=4)
    raw_ms, served_ms = (statistics.median(side) for side in zip(*rounds, strict=True))
    return Cell(batch_size, length, raw_ms, served_ms, middle, low, high)


def encode(tensors: Tensors) -> tuple[bytes, dict[str, str]]:
    """A V2 request with binary data, output alone."""
    datatypes = {"f": "FP32", "b": "BOOL"}
    inputs = [
        {
            "name": name,
            "shape": array.shape,
            "datatype": datatypes[array.dtype.kind],
            "parameters": {"binary_data_size": array.nbytes},
        }
        for name, array in tensors.items()
    ]
    outputs = [{"name": "output", "parameters": {"binary_data": True}}]
    text = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    body = b"".join([text, *(array.tobytes() for array in tensors.values())])
    return body, {"Inference-Header-Content-Length": str(len(text))}


def time_calls(call: Callable[[], object], round_s: float) -> float:
    """Median milliseconds of a call, repeated for `round_s` seconds and at least three times."""
    times: list[float] = []
    end = time.perf_counter() + round_s
    while time.perf_counter() < end or len(times) < 3:
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
