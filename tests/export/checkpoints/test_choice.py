"""Layers that are meant by a name, by a pattern, or all of them."""

import pytest
import torch

from export.checkpoints.choice import choose_layers
from export.checkpoints.tensors import Tensors, hold_tensors
from export.errors import CheckpointError

LAYERS = [
    "decoder.layers.0.cross",
    "decoder.layers.0.self",
    "decoder.layers.2.self",
    "decoder.layers.10.self",
    "encoder.self",
]


def hold(*layers: str) -> Tensors:
    return hold_tensors("x.pt", {f"{layer}.W_q.weight": torch.ones(1) for layer in layers})


def choose(wanted: str | None, *layers: str) -> list[str]:
    return [found.layer for found in choose_layers(hold(*(layers or LAYERS)), wanted)]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ("all", [0, 1, 2, 3, 4]),
        ("*", [0, 1, 2, 3, 4]),
        ("decoder.*", [0, 1, 2, 3]),
        ("decoder.layers.*.self", [1, 2, 3]),
        ("*.self", [1, 2, 3, 4]),
        ("decoder.layers.?", [0, 1, 2]),
        ("decoder.layers.[2-9].", [2]),
        ("encode?", [4]),
        ("encoder", [4]),
        ("decoder.layers.10", [3]),
    ],
)
def test_layers_come_in_counting_order(wanted: str, numbers: list[int]) -> None:
    assert choose(wanted) == [LAYERS[number] for number in numbers]


def test_the_only_layer_needs_no_name() -> None:
    assert choose(None, "a") == ["a"]
    with pytest.raises(CheckpointError, match=r"^'x.pt' holds 2 attention layers, expected"):
        choose(None, "a", "b")


def test_a_pattern_that_fits_nothing_is_answered_with_what_is_there() -> None:
    with pytest.raises(CheckpointError) as caught:
        choose("a.?", "a.12", "b")
    assert str(caught.value) == (
        "'x.pt' holds no attention layer at 'a.?', expected --layer with a pattern of 'a.12', 'b'"
    )


def test_all_layers_of_a_file_without_any_are_refused() -> None:
    tensors = hold_tensors("x.pt", {"head.weight": torch.ones(1)})
    with pytest.raises(CheckpointError, match=r"^'x.pt' holds no attention layer of a known"):
        choose_layers(tensors, "all")
