"""What tests of the server's parts share: the embedded demo as model, tokens, and settings."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from model.contract import AttentionSpec
from model.weights import Weights
from service.engine.directories import DEMO
from service.engine.loader import Loader
from service.engine.model import Model
from service.engine.sizes import Limits
from service.settings import PREFIX, Settings
from service.state import State

B, L, S, D, H = 4, 5, 7, 6, 3
LIMITS: Final = Limits(256, 2**20, 2**30, 2**30)

Tensors = dict[str, NDArray[Any]]


@pytest.fixture(scope="session")
def spec() -> AttentionSpec:
    """Sizes of the embedded demo."""
    return AttentionSpec(D, H)


@pytest.fixture(scope="session")
def weights(spec: AttentionSpec) -> Weights:
    """Numbers of the embedded demo."""
    return Weights.random(spec, seed=0)


@pytest.fixture(scope="session")
def limits() -> Limits:
    """Wide bounds."""
    return LIMITS


@pytest.fixture(scope="session")
def demo() -> Model:
    """The embedded demo on the CPU, one thread for each run."""
    return Loader("cpu", 1, LIMITS).load(DEMO / "demo" / "1")


@pytest.fixture
def tokens() -> Tensors:
    """Query, key and value, all different."""
    generator = np.random.default_rng(5)
    shapes = {"query": (B, L, D), "key": (B, S, D), "value": (B, S, D)}
    return {n: generator.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of a process without variables of ours."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX):
            monkeypatch.delenv(name)
    return Settings.load()


@pytest.fixture
def make_state(settings: Settings) -> Iterator[Callable[..., State]]:
    """Builds states whose threads run, with some settings changed; all are closed at the end."""
    states: list[State] = []

    def make(**changes: Any) -> State:
        state = State(settings.model_copy(update={"inference_threads": 1, **changes}))
        state.scheduler.start()
        states.append(state)
        return state

    yield make
    for state in states:
        state.close()


@pytest.fixture
def state(make_state: Callable[..., State]) -> State:
    """A state that serves the embedded demo and is ready."""
    made = make_state()
    made.load_models()
    made.phase = "ready"
    return made
