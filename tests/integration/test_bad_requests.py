"""JSON requests that break the protocol: status and text of every refusal, word for word."""

import json
from typing import Any

import httpx
import pytest

from tests.integration.demo import B, D, L, draw_tokens
from tests.integration.doors import ATTENTION, INFER, write_nested, write_v2_json

TENSORS = draw_tokens()
LARGEST = 2**31 - 1
DATATYPES = "BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"


def change(member: str, value: Any) -> dict[str, Any]:
    """A request whose first input has another value for one member."""
    body = write_v2_json({"query": TENSORS["query"]})
    body["inputs"][0][member] = value
    return body


QUERY = write_v2_json({"query": TENSORS["query"]})["inputs"][0]


REQUESTS = [
    pytest.param(
        change("shape", "x"),
        "input 'query' has shape \"x\", expected a list of whole numbers",
        id="shape",
    ),
    pytest.param(
        change("shape", None),
        "input 'query' has shape null, expected a list of whole numbers",
        id="no-shape",
    ),
    pytest.param(
        change("shape", [LARGEST] * 3),
        f"input 'query' has shape [{LARGEST}, {LARGEST}, {LARGEST}], which no array can have",
        id="huge-shape",
    ),
    pytest.param(
        change("shape", [B, L, D + 1]),
        f"input 'query' has {B * L * D} elements, expected {B * L * (D + 1)} for shape "
        f"[{B}, {L}, {D + 1}]",
        id="too-few-elements",
    ),
    pytest.param(
        change("datatype", "fp32"),
        f"input 'query' has datatype \"fp32\", expected one of {DATATYPES}",
        id="datatype-in-lower-case",
    ),
    pytest.param(
        change("datatype", "BF16"),
        f"input 'query' has datatype \"BF16\", expected one of {DATATYPES}",
        id="unknown-datatype",
    ),
    pytest.param(
        change("datatype", "FP16"),
        "input 'query' has datatype FP16, which has no JSON form; send binary data, or FP32",
        id="fp16-in-json",
    ),
    pytest.param(
        change("datatype", "FP64"),
        "input 'query' has datatype FP64, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)",
        id="fp64",
    ),
    pytest.param(
        change("data", 5), "'data' of input 'query' is a number, expected a list", id="data"
    ),
    pytest.param(
        change("data", ["1.5"] + [0] * (B * L * D - 1)),
        "input 'query' holds a string at element 0, expected numbers for FP32",
        id="string",
    ),
    pytest.param(
        change("data", [0, True] + [0] * (B * L * D - 2)),
        "input 'query' holds a boolean at element 1, expected numbers for FP32",
        id="boolean",
    ),
    pytest.param(
        change("data", [0, 0, None] + [0] * (B * L * D - 3)),
        "input 'query' holds null at element 2, expected numbers for FP32",
        id="null",
    ),
    pytest.param(
        change("data", [0, 1e39] + [0] * (B * L * D - 2)),
        "input 'query' holds 1e+39 at element 1, which FP32 cannot hold",
        id="beyond-fp32",
    ),
    pytest.param(
        change("data", [10**50] + [0] * (B * L * D - 1)),
        "input 'query' holds 1e+50 at element 0, which FP32 cannot hold",
        id="integer-beyond-fp32",
    ),
    pytest.param(
        change("data", [[0, 1], [2]]),
        "input 'query' has lists of 1 and of 2 elements beside each other at depth 1, "
        "expected one length",
        id="ragged",
    ),
    pytest.param(
        change("data", [[0, 1], 2]),
        "input 'query' has numbers beside lists, expected lists of one depth",
        id="mixed-depths",
    ),
    pytest.param(
        {"inputs": [QUERY, QUERY]}, "input 'query' comes twice, expected once", id="twice"
    ),
    pytest.param(
        {"inputs": [QUERY, QUERY | {"name": "Q"}]},
        "input 'Q' is unknown, expected some of query, key, value, mask, key_mask, bias",
        id="unknown-input",
    ),
    pytest.param({"inputs": []}, "input 'query' is missing", id="no-inputs"),
    pytest.param({}, "'inputs' is missing, expected a list of objects", id="inputs-missing"),
    pytest.param(
        {"inputs": {"query": 1}},
        "'inputs' is an object, expected a list of objects",
        id="inputs-no-list",
    ),
    pytest.param({"inputs": [5]}, "an input is a number, expected an object", id="no-object"),
    pytest.param(
        {"inputs": [{"shape": [1]}]},
        "an input has no name, expected a string 'name'",
        id="no-name",
    ),
    pytest.param(
        {"inputs": [QUERY], "outputs": [{"name": "scores"}]},
        "output 'scores' is unknown, expected some of output, attention_weights, "
        "top_k_weights, top_k_keys",
        id="unknown-output",
    ),
    pytest.param(
        {"inputs": [QUERY], "outputs": [{"name": "output"}] * 2},
        "output 'output' comes twice, expected once",
        id="output-twice",
    ),
    pytest.param(
        {"inputs": [QUERY], "outputs": [{"name": "output", "parameters": {"binary_data": 1}}]},
        "parameter 'binary_data' of output 'output' is 1, expected true or false",
        id="binary-data",
    ),
    pytest.param(
        {"inputs": [QUERY], "parameters": {"binary_data_output": "true"}},
        "parameter 'binary_data_output' is \"true\", expected true or false",
        id="binary-data-output",
    ),
    pytest.param(
        {"inputs": [QUERY], "parameters": [1]},
        "'parameters' of the request is a list, expected an object",
        id="parameters",
    ),
    pytest.param(
        {"inputs": [QUERY], "parameters": {"a": {}}},
        "parameter 'a' of the request is an object, expected a string, number or boolean",
        id="parameter-object",
    ),
    pytest.param(
        {"inputs": [QUERY], "id": 5}, "'id' is a number, expected a string", id="id-number"
    ),
]


@pytest.mark.parametrize(("body", "text"), REQUESTS)
def test_a_request_that_does_not_fit(client: httpx.Client, body: dict[str, Any], text: str) -> None:
    response = client.post(INFER, content=json.dumps(body))
    assert (response.status_code, response.json()) == (400, {"error": text})


NESTED = [
    pytest.param("query", 5, "input 'query' is a number, expected nested lists", id="number"),
    pytest.param("query", "x", "input 'query' is a string, expected nested lists", id="string"),
    pytest.param(
        "query",
        [[1, 2], [3]],
        "input 'query' has lists of 1 and of 2 elements beside each other at depth 1, "
        "expected one length",
        id="ragged",
    ),
    pytest.param(
        "query",
        [["a"] * D],
        "input 'query' holds a string at element 0, expected numbers for FP32",
        id="strings",
    ),
    pytest.param(
        "querry",
        [[1] * D],
        "input 'querry' is unknown, expected some of query, key, value, mask, key_mask, bias",
        id="misspelt",
    ),
    pytest.param(
        "mask",
        [[[["true"]]]],
        "input 'mask' holds a string at element 0, expected true, false, 0 or 1",
        id="mask-of-strings",
    ),
]


@pytest.mark.parametrize(("member", "value", "text"), NESTED)
def test_a_nested_request_that_does_not_fit(
    client: httpx.Client, member: str, value: Any, text: str
) -> None:
    response = client.post(ATTENTION, json=write_nested(TENSORS) | {member: value})
    assert (response.status_code, response.json()) == (400, {"error": text})


def test_shared_memory_and_classification_are_501(client: httpx.Client) -> None:
    region = {"shared_memory_region": "x", "shared_memory_byte_size": 8}
    entry = {"name": "query", "shape": [1, 1, D], "datatype": "FP32", "parameters": region}
    by_region = client.post(INFER, json={"inputs": [entry]})
    wish = {"name": "output", "parameters": {"classification": 3}}
    by_class = client.post(INFER, json=write_v2_json(TENSORS, outputs=[wish]))
    assert (by_region.status_code, by_region.json()) == (
        501,
        {"error": "input 'query' asks for shared memory, which is not offered; send its data"},
    )
    assert (by_class.status_code, by_class.json()) == (
        501,
        {"error": "output 'output' asks for classification, which is not offered; leave it out"},
    )
