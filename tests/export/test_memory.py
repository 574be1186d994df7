"""A wide layer is exported without more memory than a few copies of it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from model.contract import AttentionSpec
from model.weights import STATE_NAMES, Weights

# Heads as networks have them: what the reference computes for each is beside the tensors.
SIZES = {"small": (12, 4), "wide": (1024, 16)}

# A small export takes what imports and tracing take, and memory that is used again; after it the
# peak is set back, so that what comes on top is the wide layer.
SCRIPT = """
import re, sys
from pathlib import Path
from export.checkpoints.checkpoint import open_checkpoint
from export.checkpoints.choice import choose_layers
from export.layers import export_layers

def export(file, num_heads):
    with open_checkpoint(Path(file), int(num_heads)) as checkpoint:
        found = choose_layers(checkpoint.tensors, "b")
        layers = [(Path(file).stem, found[0], checkpoint.look_at(found[0])[0])]
        export_layers(checkpoint, layers, Path("models"), lambda _: None)

def tell(name):
    return int(re.search(rf"{name}:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

export(*sys.argv[1:3])
Path("/proc/self/clear_refs").write_text("5")  # VmHWM becomes VmRSS, see proc(5)
before = tell("VmRSS")
export(*sys.argv[3:])
print((tell("VmHWM") - before) * 1024)
"""


def make_state(d_model: int, num_heads: int) -> dict[str, Tensor]:
    """Two layers, of which "b" is exported."""
    return {
        f"{layer}.{name}": torch.from_numpy(getattr(weights, field))
        for seed, layer in enumerate("ab")
        for weights in [Weights.random(AttentionSpec(d_model, num_heads), seed)]
        for name, field in STATE_NAMES.items()
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told by /proc")
@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
def test_growth_stays_below_four_times_the_tensors_of_the_layer(
    suffix: str, tmp_path: Path
) -> None:
    arguments = []
    for name, (d_model, num_heads) in SIZES.items():
        file = tmp_path / f"{name}{suffix}"
        state = make_state(d_model, num_heads)
        save_file(state, file) if suffix == ".safetensors" else torch.save(state, file)
        arguments += [str(file), str(num_heads)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    d_model, _ = SIZES["wide"]
    layer_bytes = 4 * (4 * d_model * d_model + 4 * d_model)
    assert layer_bytes < int(done.stdout) < 4 * layer_bytes
