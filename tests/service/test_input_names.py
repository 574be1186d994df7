"""The names of inputs, and the translations of names from other libraries."""

import pytest

from service.errors import InvalidRequestError
from service.input_names import INPUTS, check_input_names


def test_all_names_together_pass() -> None:
    check_input_names(INPUTS)


def test_a_query_alone_passes() -> None:
    check_input_names(["query"])


def test_the_query_must_come() -> None:
    with pytest.raises(InvalidRequestError, match=r"^input 'query' is missing$"):
        check_input_names(["key", "value"])


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_input_names(["query", "Key"])
    assert str(caught.value) == (
        "input 'Key' is unknown, expected some of query, key, value, mask, key_mask, bias"
    )


@pytest.mark.parametrize(
    ("name", "translation"),
    [
        (
            "attn_mask",
            "send 'mask', where true means visible; in nn.MultiheadAttention's attn_mask true "
            "means hidden, so invert it; a float attn_mask goes into 'bias'",
        ),
        (
            "key_padding_mask",
            "send 'key_mask', where true means a real key; in nn.MultiheadAttention's "
            "key_padding_mask true means padding, so invert it",
        ),
        (
            "attention_mask",
            "send 'key_mask' [batch_size, key_length]; the attention_mask of a tokenizer has the "
            "same sense, 1 = a real key",
        ),
    ],
)
def test_a_name_carried_over_is_refused_with_its_translation(name: str, translation: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_input_names(["query", name])
    assert str(caught.value) == f"input '{name}' is not known here: {translation}"
