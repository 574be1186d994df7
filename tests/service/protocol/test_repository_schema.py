"""The description of the model repository's bodies agrees with what is taken."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from service.errors import InvalidRequestError
from service.protocol.repository_request import decode_index, decode_load, decode_unload
from service.protocol.repository_schema import IndexBody, LoadBody, UnloadBody

PAIRS: list[Any] = [(IndexBody, decode_index), (LoadBody, decode_load), (UnloadBody, decode_unload)]
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", 0.5])
PARAMETERS = st.dictionaries(st.sampled_from(["unload_dependents", "mine"]), SCALARS)
BODIES = st.dictionaries(
    st.sampled_from(["ready", "parameters", "mine"]), SCALARS | PARAMETERS | st.just([])
)


def is_described(schema: type[BaseModel], text: bytes) -> bool:
    try:
        schema.model_validate_json(text)
    except ValidationError:
        return False
    return True


def is_taken(decode: Any, text: bytes) -> bool:
    try:
        decode(text)
    except InvalidRequestError:
        return False
    return True


@pytest.mark.parametrize(("schema", "decode"), PAIRS)
@given(body=BODIES)
def test_what_is_described_is_what_is_taken(
    schema: type[BaseModel], decode: Any, body: dict[str, Any]
) -> None:
    text = json.dumps(body).encode()
    assert is_described(schema, text) == is_taken(decode, text)
