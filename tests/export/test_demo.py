"""The demo model in the repository is what its command makes."""

import subprocess
import sys
from pathlib import Path

import pytest

import service
from model.contract import GRAPHS, WEIGHTS_FILE

DEMO = Path(service.__file__).parent / "demo" / "demo" / "1"
COMMAND = "random --d-model 6 --num-heads 3 --seed 0 --name demo --models"


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    command = [sys.executable, "-m", "export", *COMMAND.split(), str(models)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    return models / "demo" / "1"


@pytest.mark.parametrize("name", [graph.file for graph in GRAPHS] + [WEIGHTS_FILE])
def test_the_demo_model_is_made_again_byte_for_byte(name: str, remade: Path) -> None:
    assert (remade / name).read_bytes() == (DEMO / name).read_bytes()


def test_the_config_of_the_demo_model_is_made_again(remade: Path) -> None:
    config = "config.pbtxt"
    assert (remade.parent / config).read_text() == (DEMO.parent / config).read_text()
