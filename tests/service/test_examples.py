"""Requests that can be tried fit the model that they are made for."""

import json

import pytest

from model.contract import AttentionSpec
from service.engine.signature import check_request
from service.engine.sizes import Limits
from service.examples import make_attention_example, make_infer_example
from service.protocol import attention_request, v2_request

SPECS = [AttentionSpec(6, 3), AttentionSpec(8, 2, 6), AttentionSpec(8, 2, 6, 10)]


@pytest.mark.parametrize("spec", SPECS)
def test_an_example_has_the_tensors_that_the_model_needs(
    spec: AttentionSpec, limits: Limits
) -> None:
    body = json.dumps(make_attention_example(spec, None)).encode()
    asked = attention_request.decode_request(body, "json", {}, 2**20)
    assert check_request(spec, limits, asked.inference).value.shape == (1, 2, spec.vdim)
    infer = v2_request.decode_request(json.dumps(make_infer_example(spec)).encode(), [])
    assert check_request(spec, limits, infer.inference).value.shape == (1, 2, spec.vdim)


def test_one_of_several_models_is_named() -> None:
    assert make_attention_example(SPECS[0], "mine")["model"] == "mine"
    assert "model" not in make_attention_example(SPECS[0], None)
