"""Clients that ask one model all the time, and tell which weights answered."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import numpy as np

from model.reference import attend
from tests.clients.versions import multiply
from tests.integration.demo import TOLERANCE, Arrays, draw_tokens
from tests.integration.doors import read_answer, write_v2_binary

TENSORS: Final = draw_tokens()
CLIENTS: Final = 8
TIMEOUT_S: Final = 60
PAUSE_S: Final = 0.02


def expect_by_factor(factors: list[float]) -> dict[float, Arrays]:
    """The right outputs, in float64, of the demo's weights times each number."""
    arguments: dict[str, Any] = TENSORS
    rights = {factor: attend(multiply(factor), **arguments) for factor in factors}
    return {f: {"output": o, "attention_weights": w} for f, (o, w) in rights.items()}


@dataclass
class Load:
    """What clients got.

    Attributes:
        factors: of the weights that answered, with the number of answers.
        faults: what was wrong with other answers.
    """

    factors: Counter[float] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def wait_for(self, factor: float) -> None:
        """Wait until weights have answered."""
        wait_until(lambda: bool(self.factors[factor] or self.faults))

    def wait_for_more(self) -> None:
        """Wait until there are more answers than now."""
        count = self.factors.total()
        wait_until(lambda: self.factors.total() > count or bool(self.faults))

    def check(self) -> None:
        """No answer was wrong, and there were some."""
        assert self.faults == []
        assert self.factors


@contextmanager
def under_load(
    url: str, model: str, factors: list[float], clients: int = CLIENTS
) -> Iterator[Load]:
    """Ask a model from several connections until the end of the block; no answer may be wrong.

    Args:
        url: of the server.
        model: name of the model.
        factors: of the weights that may answer.
        clients: how many ask at the same time.
    """
    load, rights, stop = Load(), expect_by_factor(factors), threading.Event()
    parameters = {"binary_data_output": True}
    body, headers = write_v2_binary(TENSORS, parameters=parameters)

    def ask_on() -> None:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S) as client:
            while not stop.is_set():
                try:
                    response = client.post(
                        f"/v2/models/{model}/infer", content=body, headers=headers
                    )
                    load.factors[find_factor(read_answer(response), rights)] += 1
                except (AssertionError, httpx.HTTPError) as error:
                    load.faults.append(repr(error))
                    return

    threads = [threading.Thread(target=ask_on) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    load.check()


def find_factor(answer: Arrays, rights: dict[float, Arrays]) -> float:
    """The weights that gave an answer; all of it comes from the same ones."""
    assert sorted(answer) == ["attention_weights", "output"]
    for factor, right in rights.items():
        if all(np.allclose(answer[n], right[n], rtol=0, atol=TOLERANCE) for n in right):
            return factor
    raise AssertionError("an answer has the numbers of no version")


def wait_until(condition: Callable[[], bool]) -> None:
    """Look again and again until something is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(PAUSE_S)
