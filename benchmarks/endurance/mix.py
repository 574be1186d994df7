"""Requests of unlike lengths, masks and parameters, all at once."""

from typing import Any, Final

import numpy as np

from benchmarks.endurance.crowd import Crowd, Reply, Tally
from benchmarks.endurance.figure import Figure
from benchmarks.endurance.stage import Stage
from benchmarks.endurance.traffic import ask_once, draw, draw_mask, render_infer
from benchmarks.server import serve

MODEL: Final = "mixed"
MOST_LENGTH: Final = 80
CAUSAL: Final = (False, True, "top_left", "bottom_right")
WEIGHTS: Final = ("none", "per_head", "mean")
D_MODEL: Final = 64
NUM_HEADS: Final = 4


def mix(stage: Stage) -> list[Figure]:
    """Each answer must be, byte for byte, the one that its request got when it came alone."""
    count, models = stage.size(1000, 64), stage.make_repository()
    stage.place(models, MODEL, "1", D_MODEL, 1)
    # All are there at once: a queue of the usual size would refuse most of them.
    settings = {"LIMELIGHT_MAX_QUEUE_REQUESTS": str(count), "LIMELIGHT_LOG_LEVEL": "warning"}
    with serve(models, (), **settings) as server:
        requests = [render_any(server.url, number) for number in range(count)]
        alone = [ask_once(server.url, request) for request in requests]
        tally, replies = Tally(), dict[int, Reply]()

        def see(reply: Reply) -> None:
            tally.see(reply)
            replies[reply.number] = reply

        Crowd(server.url, requests, see, connections=count, most=count).run()
    refused = sum(status != 200 for status, _ in alone)
    differ = sum(replies[number].body != body for number, (_, body) in enumerate(alone))
    kinds = len({len(request) for request in requests})
    return [
        Figure("requests at once", count),
        Figure("unlike sizes among them", kinds, least=count // 4),
        Figure("requests that failed alone", refused, most=0),
        Figure("requests that failed at once", tally.failed, most=0),
        Figure("answers that differ from those alone", differ, most=0),
    ]


def render_any(url: str, number: int) -> bytes:
    """A request with sizes, optional inputs and parameters of its own; its id tells it apart."""
    generator = np.random.default_rng(number)
    batch_size = int(generator.integers(1, 4))
    length, key_length = (int(each) for each in generator.integers(1, MOST_LENGTH, 2))
    has_key = bool(generator.integers(2))
    key_length = key_length if has_key else length
    tensors = draw(number, batch_size, length, D_MODEL, key_length if has_key else None)
    if generator.integers(2):
        heads = int(generator.choice([1, NUM_HEADS]))
        tensors |= draw_mask(number, batch_size, heads, length, key_length)
    if generator.integers(2):
        tensors["key_mask"] = generator.random((batch_size, key_length)) < 0.9
    if generator.integers(2):
        tensors["bias"] = generator.standard_normal((length, key_length), np.float32)
    weights = WEIGHTS[number % len(WEIGHTS)]
    parameters: dict[str, Any] = {"causal": CAUSAL[number % len(CAUSAL)], "weights": weights}
    outputs = ["output"] if weights == "none" else ["output", "attention_weights"]
    return render_infer(url, MODEL, tensors, parameters, outputs, request_id=f"r{number}")
