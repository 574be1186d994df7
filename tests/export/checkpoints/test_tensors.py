"""Single tensors of a checkpoint: exact in float32, or refused by name."""

import numpy as np
import pytest
import torch
from torch import Tensor

from export.checkpoints.tensors import StoredTensor, Tensors, hold_tensors
from export.errors import CheckpointError


def hold(**tensors: Tensor) -> Tensors:
    return hold_tensors("x.pt", {f"layer.{name}": each for name, each in tensors.items()})


def refusal_of(tensor: Tensor, *shape: int) -> str:
    with pytest.raises(CheckpointError) as caught:
        hold(W=tensor).below("layer").read("W", *shape)
    return str(caught.value)


@pytest.mark.parametrize("datatype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32_without_rounding(datatype: torch.dtype) -> None:
    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(datatype)
    finite = every[every.isfinite()]
    read = hold(W=finite).below("layer").read("W", len(finite))
    assert read.dtype == np.float32
    assert torch.equal(
        torch.from_numpy(read).to(datatype).view(torch.int16), finite.view(torch.int16)
    )
    assert read.tolist() == finite.double().tolist()


def refuse_to_load() -> Tensor:
    raise AssertionError("nobody asked for these numbers")


UNREAD = StoredTensor("a.safetensors", (2, 3), "float32", refuse_to_load)


def test_only_the_tensor_that_is_asked_for_is_loaded_and_its_use_is_noted() -> None:
    held = hold_tensors("x.pt", {"b.W": torch.ones(3)})
    tensors = Tensors("x.pt", {**held.stored, "a.W": UNREAD}).noting_use()
    tensors.below("b").read("W", 3)
    assert tensors.used == ["b.W"]


def test_a_shape_is_known_before_the_numbers() -> None:
    tensors = Tensors("x.json", {"a.W": UNREAD}).below("a")
    assert tensors.read_shape("W") == (2, 3)
    assert tensors.list_shape("W") == [2, 3]


def test_a_look_at_a_layer_checks_all_but_the_numbers() -> None:
    tensors = Tensors("x.json", {"a.W": UNREAD}).without_numbers().below("a")
    read = tensors.read("W", 2, 3)
    assert read.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert tensors.used == ["a.W"]
    with pytest.raises(CheckpointError) as caught:
        tensors.read("W", 3, 2)
    assert str(caught.value) == (
        "tensor 'a.W' of 'a.safetensors' has shape [2, 3], expected [3, 2]"
    )


def test_an_absent_bias_is_zeros_and_a_present_one_is_read() -> None:
    tensors = hold(b=torch.ones(3)).below("layer")
    assert tensors.read_or_zeros("b", 3).tolist() == [1, 1, 1]
    assert tensors.read_or_zeros("other", 2).tolist() == [0, 0]


def test_the_root_of_a_file_is_a_layer_too() -> None:
    tensors = hold_tensors("x.pt", {"W": torch.ones(3)})
    assert tensors.below("").read("W", 3).tolist() == [1, 1, 1]


def test_a_learned_parameter_is_read() -> None:
    assert hold(W=torch.nn.Parameter(torch.ones(2))).below("layer").read("W", 2).tolist() == [1, 1]


def test_a_missing_tensor_is_named() -> None:
    with pytest.raises(CheckpointError) as caught:
        hold().below("layer").read("W", 3)
    assert str(caught.value) == (
        "tensor 'layer.W' of 'x.pt' is missing; save the whole state_dict of the layer"
    )


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        pytest.param(
            torch.zeros(3, 2),
            "tensor 'layer.W' of 'x.pt' has shape [3, 2], expected [2, 3]",
            id="shape",
        ),
        pytest.param(
            torch.tensor([[0, 1, 2], [3, float("nan"), 5]]),
            "tensor 'layer.W' of 'x.pt' holds nan at [1, 1], expected finite float32 numbers; "
            "take a checkpoint from before the training diverged",
            id="nan",
        ),
        pytest.param(
            torch.tensor([[0, 1, -1e39], [3, 4, 5]], dtype=torch.float64),
            "tensor 'layer.W' of 'x.pt' holds -inf at [0, 2], expected finite float32 numbers; "
            "take a checkpoint from before the training diverged",
            id="beyond float32",
        ),
        pytest.param(
            torch.zeros(2, 3, dtype=torch.int8),
            "tensor 'layer.W' of 'x.pt' has datatype int8, expected one of float16, bfloat16, "
            "float32, float64; save the layer before it is quantized",
            id="quantized",
        ),
        pytest.param(
            torch.zeros(2, 3).to(torch.float8_e4m3fn),
            "tensor 'layer.W' of 'x.pt' has datatype float8_e4m3fn, expected one of float16, "
            "bfloat16, float32, float64; save the layer before it is quantized",
            id="scaled elsewhere",
        ),
        pytest.param(
            torch.zeros(2, 3).to_sparse(),
            "tensor 'layer.W' of 'x.pt' is sparse, expected a dense tensor; save the layer with "
            "its tensors on the CPU and dense",
            id="sparse",
        ),
        pytest.param(
            torch.zeros(2, 3, device="meta"),
            "tensor 'layer.W' of 'x.pt' has no data, expected a dense tensor; save the layer "
            "with its tensors on the CPU and dense",
            id="without data",
        ),
    ],
)
def test_an_unfit_tensor_is_named_with_what_came_and_what_was_expected(
    tensor: Tensor, message: str
) -> None:
    assert refusal_of(tensor, 2, 3) == message


def test_a_matrix_has_two_axes() -> None:
    with pytest.raises(CheckpointError) as caught:
        hold(W=torch.zeros(6)).below("layer").read_shape("W")
    assert str(caught.value) == "tensor 'layer.W' of 'x.pt' has shape [6], expected two axes"
