"""Parsers and models say the same of members that clients get wrong."""

import json
from typing import Any

import pytest

from service.protocol.attention_schema import AttentionBody
from tests.service.protocol.agreement import (
    L,
    S,
    Verdict,
    compare_v1,
    compare_v2,
    parse_v1,
    refuse_by_model,
    refuse_by_parser,
)

FLAGS: list[Any] = [2, -1, 0.5, 1.0, -0.0, None, "1", True]
NUMBERS: list[Any] = [True, None, "1", 1.0, 2**70, -1e30]
WHOLE: list[Any] = [0, 1, -1, True, 1.0, 1.5, "1", None, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 1e30]
HEADS_LISTS: list[Any] = [
    [0],
    [],
    [0, 0],
    [True],
    [0.0],
    [0.5],
    [-1],
    ["0"],
    [[0]],
    "0",
    0,
    None,
    {},
]
HEADS_TEXTS: list[Any] = ["", "0,", ",0", "1_2", "0 1", "-1", "0\n", "9" * 10, 0, True, 0.5]
QUERY = {"name": "query", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}


@pytest.mark.parametrize(
    "members",
    [
        {"name": ""}, {"name": None}, {"name": 1}, {"data": None}, {"data": "a"},
        {"data": [None, 1]},
        {"shape": [2**31]}, {"shape": [-1]}, {"shape": [True]}, {"shape": [2.0]}, {"shape": None},
        {"shape": [1] * 33}, {"shape": [1] * 32, "data": [1]}, {"datatype": "fp32"},
        {"datatype": None}, {"parameters": None}, {"parameters": []}, {"parameters": {"a": None}},
        {"parameters": {"a": [1]}}, {"parameters": {"a": 1.5}},
        {"mine": None}, {"data": [[1], [2]]}, {"data": [], "shape": [0]},
    ],
    ids=str,
)  # fmt: skip
def test_one_input(members: dict[str, Any]) -> None:
    assert compare_v2({"inputs": [QUERY | members]}) is not Verdict.BEYOND_A_SCHEMA


@pytest.mark.parametrize(
    "members",
    [
        {"id": None}, {"id": 1}, {"id": ""}, {"inputs": None}, {"inputs": {}}, {"inputs": []},
        {"inputs": [None]}, {"outputs": None}, {"outputs": []}, {"outputs": {}}, {"outputs": [{}]},
        {"outputs": [{"name": "weights"}]}, {"outputs": [{"name": "output", "parameters": None}]},
        {"outputs": [{"name": "output", "parameters": {"binary_data": 1}}]},
        {"parameters": None}, {"parameters": {"causal": 1}}, {"parameters": {"causal": "left"}},
        {"parameters": {"causal": None}}, {"parameters": {"weights": "all"}},
        {"parameters": {"weights": True}}, {"parameters": {"heads": "0,3"}},
        *({"parameters": {"heads": heads}} for heads in HEADS_TEXTS),
        {"parameters": {"binary_data_output": "a"}},
        {"parameters": {"timeout": 5000, "a": "b"}}, {"mine": None},
        *({"parameters": {name: value}} for name in ("timeout", "priority") for value in WHOLE),
        *({"parameters": {"weights": "top_k", "top_k": value}} for value in WHOLE),
        {"parameters": {"weights": "top_k", "top_k": 2}, "outputs": [{"name": "top_k_keys"}]},
    ],
    ids=str,
)  # fmt: skip
def test_members_of_a_v2_request(members: dict[str, Any]) -> None:
    assert compare_v2({"inputs": [QUERY]} | members) is not Verdict.BEYOND_A_SCHEMA


@pytest.mark.parametrize(
    "members",
    [
        *({"mask": [[flag, 1, 1]] * L} for flag in FLAGS),
        *({"query": [[number, 1]] * L} for number in NUMBERS),
        {"query": None}, {"query": {}}, {"key_mask": [1, 0, True]}, {"key_mask": [2, 0, 1]},
        {"bias": [[True] * S] * L}, {"key": None}, {"causal": 1}, {"causal": None},
        {"causal": "right"}, {"weights": None}, {"weights": "all"}, {"weights": 1},
        *({"weights": "per_head", "heads": heads} for heads in HEADS_LISTS),
        *({"weights": "top_k", "top_k": value} for value in WHOLE if value is not None),
        {"model": 1},
        {"version": 1}, {"version": None}, {"format": "npz"}, {"mine": None},
        {"attention_mask": [[1] * S]},
    ],
    ids=str,
)  # fmt: skip
def test_members_of_a_v1_request(members: dict[str, Any]) -> None:
    body = {"query": [[1, 2]] * L, "key": [[1, 2]] * S} | members
    assert compare_v1(body) is not Verdict.BEYOND_A_SCHEMA


@pytest.mark.parametrize("member", ["query", "key", "value", "mask", "key_mask", "bias"])
@pytest.mark.parametrize("tensor", [1, [], [[]], [[], 1], [[1], 1], [[[[[1]]]]]], ids=str)
def test_both_refuse_lists_that_are_no_tensor(member: str, tensor: Any) -> None:
    text = json.dumps({"query": [[1, 2]] * L} | {member: tensor}).encode()
    assert refuse_by_parser(parse_v1, text)
    assert refuse_by_model(AttentionBody, text)


@pytest.mark.parametrize("size", [-1, True, 8.0, "8"])
def test_both_refuse_a_binary_size_that_is_no_number_of_bytes(size: Any) -> None:
    entry = {name: value for name, value in QUERY.items() if name != "data"}
    body = {"inputs": [entry | {"parameters": {"binary_data_size": size}}]}
    assert compare_v2(body) is Verdict.BOTH_REFUSE
