"""Answers of /v1/attention in the three forms."""

import io
import json
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from service.errors import InvalidRequestError
from service.inference import Answer, Inference
from service.protocol.attention_answer import encode_answer
from service.protocol.attention_request import AttentionRequest
from service.protocol.forms import MEDIA_TYPES, Form

B, L, S, D, H = 4, 5, 7, 6, 3


def ask(*, batched: bool = True, **converted: str) -> AttentionRequest:
    return AttentionRequest(Inference({}), converted, batched, None, None)


def make_answer(batch_size: int = B) -> Answer:
    generator = np.random.default_rng(7)
    tensors: dict[str, Any] = {
        "output": generator.standard_normal((batch_size, L, D)).astype(np.float32),
        "attention_weights": generator.random((batch_size, H, L, S), np.float32),
    }
    return Answer(tensors, graph="fused_weights", model="demo", version="3")


def read(body: bytes, form: Form) -> dict[str, Any]:
    if form == "npz":
        with np.load(io.BytesIO(body)) as archive:
            return dict(archive)
    if form == "safetensors":
        return dict(safetensors.numpy.load(body))
    said = json.loads(body)
    return {n: np.array(said[n], np.float32) for n in ("output", "attention_weights")}


@pytest.mark.parametrize("form", MEDIA_TYPES)
@pytest.mark.parametrize("batched", [True, False])
def test_tensors_come_back_as_the_request_was(form: Form, *, batched: bool) -> None:
    answer = make_answer(B if batched else 1)
    body, headers = encode_answer(answer, form, ask(batched=batched))
    assert headers == {"Content-Type": MEDIA_TYPES[form]}
    found = read(body, form)
    assert found.keys() == answer.tensors.keys()
    for name, array in answer.tensors.items():
        wanted = array if batched else array[0]
        assert found[name].shape == wanted.shape
        assert found[name].tobytes() == wanted.tobytes()


def test_json_says_which_model_and_graph_answered() -> None:
    body, _ = encode_answer(make_answer(), "json", ask(query="FP64"))
    said = json.loads(body)
    assert list(said) == [
        "model_name", "model_version", "graph", "converted", "output", "attention_weights",
    ]  # fmt: skip
    assert (said["model_name"], said["model_version"]) == ("demo", "3")
    assert (said["graph"], said["converted"]) == ("fused_weights", {"query": "FP64"})


def test_safetensors_says_it_in_its_metadata(tmp_path: Any) -> None:
    body, _ = encode_answer(make_answer(), "safetensors", ask())
    (tmp_path / "answer").write_bytes(body)
    with safetensors.safe_open(tmp_path / "answer", "numpy") as opened:
        assert opened.metadata() == {
            "model_name": "demo",
            "model_version": "3",
            "graph": "fused_weights",
        }


@pytest.mark.parametrize("form", MEDIA_TYPES)
def test_a_header_says_what_was_converted(form: Form) -> None:
    _, headers = encode_answer(make_answer(), form, ask(query="FP64", bias="FP16"))
    assert headers["Limelight-Converted"] == "query FP64, bias FP16"


def test_the_mean_over_the_heads_comes_back_in_any_order_of_memory() -> None:
    tensors: dict[str, Any] = {"attention_weights": np.ones((B, H, L, S), np.float32).mean(axis=1)}
    tensors["output"] = np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    body, _ = encode_answer(Answer(tensors, "g", "m", "1"), "json", ask())
    np.testing.assert_array_equal(json.loads(body)["output"], tensors["output"])


def test_json_cannot_say_what_is_not_finite() -> None:
    answer = make_answer()
    answer.tensors["attention_weights"][2, 1, 3, 4] = np.nan
    with pytest.raises(InvalidRequestError) as caught:
        encode_answer(answer, "json", ask())
    assert str(caught.value) == (
        "output 'attention_weights' holds NaN or an infinity, which JSON cannot say; ask for "
        "binary data (V2: parameter binary_data; /v1: ?format=npz) or send finite inputs"
    )
    for form in ("npz", "safetensors"):
        assert encode_answer(answer, form, ask())
