"""ONNX's own test cases of its Attention operator, as requests to a layer that projects nothing.

https://onnx.ai/onnx/operators/onnx__Attention.html. Cases that the tensor contract cannot say are
left out by `say_case`, each for the reason it gives.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import helper
from onnx.backend.test.case.node import collect_testcases

from model.contract import AttentionSpec
from model.weights import Weights, expected_shapes

ROLES: Final = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OPSETS: Final = (23, 24)
WEIGHTS_MODE: Final = 3

Arrays = dict[str, NDArray[Any]]


class OutOfContractError(Exception):
    """The case says something that the contract does not have."""


@dataclass(frozen=True)
class Case:
    """One case in the words of the contract.

    Attributes:
        name: ONNX's name.
        spec: sizes of the layer, whose projections are identities.
        tensors: of the request.
        causal: of the request.
        output: what ONNX expects, ``[B, L, D]``.
        weights: what ONNX expects where the case has weights after the softmax.
        rtol, atol: ONNX's tolerances.
    """

    name: str
    spec: AttentionSpec
    tensors: Arrays
    causal: bool
    output: NDArray[Any]
    weights: NDArray[Any] | None
    rtol: float
    atol: float


def identity_weights(spec: AttentionSpec) -> Weights:
    """Projections that change nothing."""
    arrays = {
        name: np.eye(spec.d_model, dtype=np.float32) if len(shape) == 2 else np.zeros(shape, "f4")
        for name, shape in expected_shapes(spec).items()
    }
    return Weights(spec, **arrays)


def collect_cases() -> tuple[list[Case], dict[str, str]]:
    """The cases that the contract can say, and why it cannot say the others."""
    cases, left_out = [], {}
    for found in collect_testcases("Attention"):
        assert found.model
        nodes = found.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type != "Attention":
            continue  # the same case, expanded into simpler operators
        try:
            cases.append(say_case(found))
        except OutOfContractError as reason:
            left_out[found.name] = str(reason)
    return cases, left_out


def say_case(found: Any) -> Case:
    """One case in the words of the contract.

    Raises:
        OutOfContractError: saying what the contract does not have.
    """
    node, opset = found.model.graph.node[0], found.model.opset_import[0].version
    options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = name_arrays(found)
    check_options(opset, options, inputs)
    query = split(inputs["Q"], options.get("q_num_heads"))
    key, value = (split(inputs[role], options.get("kv_num_heads")) for role in ("K", "V"))
    if not query.shape[1] == key.shape[1] == value.shape[1]:
        raise OutOfContractError("grouped heads")
    if not query.shape[3] == key.shape[3] == value.shape[3]:
        raise OutOfContractError("values of another width than keys")
    if "past_key" in inputs:
        key = np.concatenate([inputs["past_key"], key], axis=2)
        value = np.concatenate([inputs["past_value"], value], axis=2)
    tensors = {"query": join(query), "key": join(key), "value": join(value)}
    tensors |= say_hiding(inputs, key.shape[2])
    causal = bool(options.get("is_causal"))
    shift = find_shift(inputs, query.shape[2])
    if causal and shift is not None:
        rows, keys = np.arange(query.shape[2]), np.arange(key.shape[2])
        visible = keys <= rows[:, None] + shift[:, None, None, None]
        tensors["mask"] = tensors.get("mask", True) & visible
        causal = False
    spec = AttentionSpec(query.shape[1] * query.shape[3], query.shape[1])
    weights = outputs.get("qk_matmul_output")
    return Case(
        found.name,
        spec,
        tensors,
        causal,
        join(split(outputs["Y"], options.get("q_num_heads"))),
        weights if options.get("qk_matmul_output_mode") == WEIGHTS_MODE else None,
        found.rtol,
        found.atol,
    )


def name_arrays(found: Any) -> tuple[Arrays, Arrays]:
    """Inputs by role and outputs by name; an empty name stands for an absent one."""
    node = found.model.graph.node[0]
    given, expected = found.data_sets[0]
    roles = [role for role, name in zip(ROLES, node.input, strict=False) if name]
    names = ["qk_matmul_output" if i == 3 else n for i, n in enumerate(node.output) if n]
    return dict(zip(roles, given, strict=True)), dict(zip(names, expected, strict=True))


def check_options(opset: int, options: dict[str, Any], inputs: Arrays) -> None:
    """Leave out what needs another operator, number format or rule.

    Raises:
        OutOfContractError: saying what.
    """
    if opset not in OPSETS:
        raise OutOfContractError(f"opset {opset}")
    if inputs["Q"].dtype != np.float32:
        raise OutOfContractError(f"{inputs['Q'].dtype} tensors")
    for option in ("scale", "softcap"):
        if options.get(option):
            raise OutOfContractError(option)


def say_hiding(inputs: Arrays, key_length: int) -> Arrays:
    """The mask as `mask` or `bias`, the key lengths as `key_mask`."""
    said: Arrays = {}
    if "attn_mask" in inputs:
        mask = inputs["attn_mask"]
        # ONNX aligns from the right, so that a third axis is the head; here it is the batch.
        if mask.ndim == 3:
            mask = mask[None]
        said["mask" if mask.dtype == np.bool_ else "bias"] = mask
    if "nonpad_kv_seqlen" in inputs:
        said["key_mask"] = np.arange(key_length) < inputs["nonpad_kv_seqlen"][:, None]
    return said


def find_shift(inputs: Arrays, query_length: int) -> NDArray[Any] | None:
    """How far the causal mask of each item, ``[B]`` or ``[1]``, is shifted by a cache of keys."""
    if "past_key" in inputs:
        return np.array([inputs["past_key"].shape[2]])
    if "nonpad_kv_seqlen" in inputs:
        return np.asarray(inputs["nonpad_kv_seqlen"]) - query_length
    return None


def split(tensor: NDArray[Any], num_heads: int | None) -> NDArray[Any]:
    """``[B, T, H * K]`` as ``[B, H, T, K]``; a tensor with four axes as it is."""
    if tensor.ndim == 4:
        return tensor
    batch_size, length, width = tensor.shape
    assert num_heads
    return tensor.reshape(batch_size, length, num_heads, width // num_heads).swapaxes(1, 2)


def join(heads: NDArray[Any]) -> NDArray[Any]:
    """``[B, H, T, K]`` as ``[B, T, H * K]``."""
    return heads.swapaxes(1, 2).reshape(heads.shape[0], heads.shape[2], -1)
