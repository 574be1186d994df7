"""What is known, served and answered while models come and go."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from service.engine.control import Control
from service.engine.model import Model
from service.engine.repository import Repository
from service.inference import Inference

MISSING: Final = "weights.bin is missing"
DIFFERS: Final = "weights.bin differs from its entry in manifest.json"
OUTSIDE: Final = (
    "'layer' leads through a link out of the directory of models; put the files into it"
)
QUERY: Final = np.arange(48, dtype=np.float32).reshape(2, 4, 6) / 48

Entry = tuple[str, str, str, str]
MakeControl = Callable[..., Control]


def list_known(control: Control) -> list[Entry]:
    return [(e.name, e.version, e.state, e.reason) for e in control.index.list_all()]


def list_served(repository: Repository) -> list[str]:
    return [f"{model.name}/{model.version}" for model in repository.models]


def infer(model: Model) -> bytes:
    return model.run(model.check(Inference({"query": QUERY}))).tensors["output"].tobytes()


def break_version(version: Path) -> None:
    (version / "weights.bin").unlink()


def events_of(events: list[str], sign: str) -> list[str]:
    return [event[1:] for event in events if event[0] == sign]
