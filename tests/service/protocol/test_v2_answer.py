"""V2 answers, JSON and binary, as clients of other servers read them."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.errors import InvalidRequestError
from service.inference import Answer
from service.protocol.v2_answer import encode_answer, write_binary_head
from service.protocol.v2_outputs import WantedOutput

B, L, S, D, H = 4, 5, 7, 6, 3
SHAPES = [(B, L, D), (L, B, D), (B, L, D, 1), (B * L, D)]
FLOATS = arrays.arrays(
    np.float32,
    arrays.array_shapes(max_side=4),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


def make_answer(**tensors: Any) -> Answer:
    if not tensors:
        generator = np.random.default_rng(7)
        tensors = {
            "output": generator.standard_normal((B, L, D)).astype(np.float32),
            "attention_weights": generator.random((B, H, L, S), np.float32),
        }
    return Answer(tensors, graph="fused_weights", model="demo", version="3")


def encode(
    answer: Answer, *outputs: tuple[str, bool], request_id: str = ""
) -> tuple[bytes, dict[str, str]]:
    wanted = [WantedOutput(name, binary) for name, binary in outputs]
    parts, headers = encode_answer(answer, request_id, wanted)
    return b"".join(parts), headers


def test_json_data_is_flat_beside_its_shape() -> None:
    answer = make_answer()
    body, headers = encode(answer, ("output", False), ("attention_weights", False))
    assert headers == {"Content-Type": "application/json"}
    said = json.loads(body)
    assert {name: said[name] for name in said if name != "outputs"} == {
        "model_name": "demo",
        "model_version": "3",
    }
    first, second = said["outputs"]
    assert (first["name"], first["shape"], first["datatype"]) == ("output", [B, L, D], "FP32")
    assert (second["name"], second["shape"]) == ("attention_weights", [B, H, L, S])
    assert "parameters" not in first
    found = np.array(second["data"], np.float32)
    assert found.tobytes() == answer.tensors["attention_weights"].tobytes()


@given(FLOATS)
def test_json_gives_the_same_float32_back(array: Any) -> None:
    body, _ = encode(make_answer(output=array), ("output", False))
    (output,) = json.loads(body)["outputs"]
    assert np.array(output["data"], np.float32).tobytes() == array.tobytes()


def test_binary_data_follows_the_json_in_the_order_asked_for() -> None:
    answer = make_answer()
    body, headers = encode(answer, ("attention_weights", True), ("output", True))
    length = int(headers["Inference-Header-Content-Length"])
    assert headers["Content-Type"] == "application/octet-stream"
    entries = json.loads(body[:length])["outputs"]
    sizes = [entry["parameters"]["binary_data_size"] for entry in entries]
    assert sizes == [4 * B * H * L * S, 4 * B * L * D]
    assert not any("data" in entry for entry in entries)
    assert body[length : length + sizes[0]] == answer.tensors["attention_weights"].tobytes()
    assert body[length + sizes[0] :] == answer.tensors["output"].tobytes()


def test_json_and_binary_outputs_mix() -> None:
    answer = make_answer()
    body, headers = encode(answer, ("output", False), ("attention_weights", True))
    length = int(headers["Inference-Header-Content-Length"])
    first, second = json.loads(body[:length])["outputs"]
    assert len(first["data"]) == B * L * D
    assert second["parameters"] == {"binary_data_size": len(body) - length}


def test_what_is_not_asked_for_is_not_sent() -> None:
    body, _ = encode(make_answer(), ("output", False))
    assert [output["name"] for output in json.loads(body)["outputs"]] == ["output"]


def test_an_array_in_another_order_is_written_row_by_row() -> None:
    array = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(1, 3, 4))
    for binary in (True, False):
        body, headers = encode(make_answer(output=array), ("output", binary))
        if binary:
            assert body[int(headers["Inference-Header-Content-Length"]) :] == array.tobytes()
        else:
            assert json.loads(body)["outputs"][0]["data"] == list(range(12))


@pytest.mark.parametrize("request_id", ["7", "\N{GRINNING FACE}"])
def test_an_id_is_echoed(request_id: str) -> None:
    body, _ = encode(make_answer(), ("output", False), request_id=request_id)
    assert json.loads(body)["id"] == request_id


def test_heads_that_are_kept_tell_answers_apart() -> None:
    """All outputs are binary: the head may be one that was written before."""
    cases = [
        (replace(make_answer(), model=model, version=version), outputs, request_id)
        for model in ("demo", "other")
        for version in ("3", "4")
        for outputs in (["output"], ["attention_weights"], ["attention_weights", "output"])
        for request_id in ("", "7", "8")
    ]
    cases += [(make_answer(output=np.zeros(shape, np.float32)), ["output"], "") for shape in SHAPES]
    cases += [(make_answer(output=np.zeros(SHAPES[0], np.int64)), ["output"], "")]
    for answer, outputs, request_id in cases * 2:
        body, headers = encode(
            answer, *((output, True) for output in outputs), request_id=request_id
        )
        head = json.loads(body[: int(headers["Inference-Header-Content-Length"])])
        assert head.pop("id", "") == request_id
        assert head == describe(answer, outputs)


def describe(answer: Answer, outputs: list[str]) -> dict[str, Any]:
    """The JSON of an answer in binary, without its id."""
    entries = [
        {
            "name": name,
            "shape": list(answer.tensors[name].shape),
            "datatype": {"f": "FP32", "i": "INT64"}[answer.tensors[name].dtype.kind],
            "parameters": {"binary_data_size": answer.tensors[name].nbytes},
        }
        for name in outputs
    ]
    return {"model_name": answer.model, "model_version": answer.version, "outputs": entries}


def test_no_head_is_kept_with_an_id() -> None:
    """An id may be as long as a body; as many as are kept would fill the memory."""
    before = write_binary_head.cache_info()
    encode(make_answer(), ("output", True), request_id="a long one")
    assert write_binary_head.cache_info() == before


def test_the_numbers_of_a_binary_answer_are_not_copied() -> None:
    answer = make_answer()
    parts, _ = encode_answer(answer, "", [WantedOutput("output", binary=True)])
    assert np.shares_memory(np.frombuffer(parts[1], np.float32), answer.tensors["output"])


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_json_cannot_say_what_is_not_finite(number: float) -> None:
    answer = make_answer(output=np.array([[[1, number]]], np.float32))
    with pytest.raises(InvalidRequestError) as caught:
        encode(answer, ("output", False))
    assert str(caught.value) == (
        "output 'output' holds NaN or an infinity, which JSON cannot say; ask for binary data "
        "(V2: parameter binary_data; /v1: ?format=npz) or send finite inputs"
    )
    body, _ = encode(answer, ("output", True))
    np.testing.assert_array_equal(np.frombuffer(body[-8:], np.float32), [1, number])
