"""Where a check takes place: how large it is, and the models that it serves."""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FULL: Final = 1.0
NUM_HEADS: Final = 4


@dataclass(frozen=True)
class Stage:
    """A folder for models, and the size of the checks.

    Attributes:
        folder: that the checks may fill.
        scale: share of the full size.
    """

    folder: Path
    scale: float = FULL

    def size(self, full: int, least: int) -> int:
        """A count or a length: `full` times the scale, and no less than `least`."""
        return max(round(full * self.scale), least)

    @property
    def d_model(self) -> int:
        """Width of a model whose size counts."""
        return 512 if self.scale >= FULL else 64

    def make_repository(self) -> Path:
        """An empty directory for models."""
        return Path(tempfile.mkdtemp(prefix="models-", dir=self.folder))

    def export(self, d_model: int, seed: int, num_heads: int = NUM_HEADS) -> Path:
        """The directory of a version with random weights; made once."""
        exports, name = self.folder / "exports", f"random-{d_model}-{num_heads}-{seed}"
        if not (exports / name).exists():
            run = [
                *export_command(d_model, seed, num_heads),
                "--name",
                name,
                "--models",
                str(exports),
            ]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        return exports / name / "1"

    def place(
        self,
        models: Path,
        name: str,
        version: str,
        d_model: int,
        seed: int,
        num_heads: int = NUM_HEADS,
    ) -> Path:
        """Copy a version with random weights into a repository; its directory."""
        source = self.export(d_model, seed, num_heads)
        return Path(shutil.copytree(source, models / name / version))


def export_command(d_model: int, seed: int, num_heads: int = NUM_HEADS) -> list[str]:
    """The command that exports random weights; --name and --models are still to come."""
    sizes = ["--d-model", str(d_model), "--num-heads", str(num_heads), "--seed", str(seed)]
    return [sys.executable, "-m", "export", "random", *sizes]
