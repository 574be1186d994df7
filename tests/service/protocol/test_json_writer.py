"""Text that is written in pieces is the text that orjson writes at once."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.protocol import json_writer
from service.protocol.json_writer import write_json

FLOATS = arrays.arrays(
    np.float32,
    arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


def write_at_once(root: dict[str, Any]) -> bytes:
    return orjson.dumps(root, option=orjson.OPT_SERIALIZE_NUMPY)


@given(st.lists(FLOATS, max_size=3), st.integers(1, 50), st.text(max_size=3))
def test_pieces_make_the_same_text(found: list[Any], piece_numbers: int, name: str) -> None:
    root = {"id": name, "outputs": [{"shape": a.shape, "data": a, "z": 1} for a in found]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_writer, "PIECE_NUMBERS", piece_numbers)
        assert write_json(root) == write_at_once(root)


def test_a_nul_in_a_string_is_no_place_for_an_array() -> None:
    root = {"id": "\0", "data": np.arange(3, dtype=np.float32), "\0": ""}
    assert write_json(root) == write_at_once(root)


@pytest.mark.parametrize("shape", [(70, 999), (3, 11, 2345), (69999,)])
def test_a_large_array_has_every_number(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).standard_normal(shape, np.float32)
    assert np.array(orjson.loads(write_json({"a": array}))["a"], np.float32).tobytes() == (
        array.tobytes()
    )
