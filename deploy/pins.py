"""Print constraints.txt, with the lines that another CUDA needs in place of its own.

    python pins.py 12

onnxruntime's wheels are built for one CUDA each, so the two differ in its version.
"""

import sys
from pathlib import Path
from typing import Final

# By the CUDA that each is for. Without a file: constraints.txt as it stands.
FILES: Final = {"13": None, "12": "cuda12.txt"}


def choose_pins(folder: Path, constraints: Path, cuda: str) -> list[str]:
    """The lines ``name==version`` for one CUDA, in alphabetical order.

    Args:
        folder: holds the files of `FILES`.
        constraints: path of constraints.txt.
        cuda: 12 or 13.

    Raises:
        ValueError: if there are no versions for that CUDA.
    """
    if cuda not in FILES:
        raise ValueError(f"CUDA is {cuda!r}, expected {' or '.join(FILES)}")
    pins = read_pins(constraints)
    if name := FILES[cuda]:
        pins |= read_pins(folder / name)
    return [f"{package}=={version}" for package, version in sorted(pins.items())]


def read_pins(path: Path) -> dict[str, str]:
    """Versions by package."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


if __name__ == "__main__":
    lines = choose_pins(Path(__file__).parent, Path("constraints.txt"), sys.argv[1])
    sys.stdout.write("\n".join(lines) + "\n")
