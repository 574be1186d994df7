"""Faults of binary tensors: the order of bytes, and headers that say something else."""

import io
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.demo import B, D, L, S, check_close, draw_mask, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    HEADER_LENGTH,
    INFER,
    NPZ,
    read_answer,
    write_npz,
    write_v2_binary,
)

TENSORS = draw_tokens()
MASKED = TENSORS | {"mask": draw_mask(B, 1, L, S)}


@given(
    floats=st.sampled_from(["f2", "f4", "f8"]),
    masks=st.sampled_from(["?", "u1", "i2", "i4", "i8", "u8", "f4", "f8"]),
    order=st.sampled_from("<>="),
    memory=st.sampled_from("CF"),
)
@settings(max_examples=80)
def test_an_npz_of_any_byte_order_and_layout_has_the_right_numbers(
    client: httpx.Client, floats: str, masks: str, order: str, memory: Any
) -> None:
    """onnxruntime takes big-endian arrays as native (triton-inference-server/server #2512)."""
    sent = {
        name: np.asarray(array, np.dtype(order + (masks if name == "mask" else floats)), memory)
        for name, array in MASKED.items()
    }
    response = client.post(
        ATTENTION,
        content=write_npz(sent),
        params={"weights": "per_head"},
        headers={"Content-Type": NPZ},
    )
    native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in sent.items()}
    check_close(read_answer(response), expect(native))


def test_bytes_of_version_2_are_little_endian_on_every_machine(client: httpx.Client) -> None:
    """These words are plausible numbers both ways round.

    triton-inference-server/server #2512, #2515.
    """
    middle = np.random.default_rng(3).integers(0, 2**16, (B, L, D), np.uint32)
    data = ((0x3F << 24) | (middle << 8) | 0x3E).astype("<u4").tobytes()
    little, big = (np.frombuffer(data, order).reshape(B, L, D) for order in ("<f4", ">f4"))
    body, headers = write_v2_binary({"query": little}, parameters={"binary_data_output": True})
    assert body.endswith(data)
    got = read_answer(client.post(INFER, content=body, headers=headers))
    check_close(got, expect({"query": little}))
    assert np.abs(got["output"] - expect({"query": big})["output"]).max() > 0.1


def test_safetensors_are_little_endian_by_their_format(client: httpx.Client) -> None:
    library = pytest.importorskip("safetensors.numpy")
    body = library.save({name: np.ascontiguousarray(array) for name, array in TENSORS.items()})
    response = client.post(ATTENTION, content=body)
    check_close(read_answer(response), expect(TENSORS, weights="none"))


CONTENT_TYPES = [
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "application/x-www-form-urlencoded",
    "application/json",
    "text/plain; charset=utf-16",
    "application/octet-stream",
]


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_binary_requests_are_read_whatever_their_content_type(
    client: httpx.Client, content_type: str
) -> None:
    """A form parser must not get to see them (triton-inference-server/server #4244)."""
    body, headers = write_v2_binary(MASKED)
    response = client.post(INFER, content=body, headers=headers | {"Content-Type": content_type})
    check_close(read_answer(response), expect(MASKED))


@pytest.mark.parametrize("content_type", CONTENT_TYPES[:2])
@pytest.mark.parametrize("body", [b"--x\r\n", write_npz(TENSORS), b"{}"], ids=["form", "npz", "{}"])
def test_a_form_with_parts_is_415_at_the_friendly_door(
    client: httpx.Client, content_type: str, body: bytes
) -> None:
    """triton-inference-server/server #4244."""
    response = client.post(ATTENTION, content=body, headers={"Content-Type": content_type})
    assert (response.status_code, response.json()) == (
        415,
        {
            "error": 'Content-Type is "multipart/form-data", expected one of application/json, '
            "application/x-npz, application/x-safetensors"
        },
    )


@pytest.mark.parametrize("length", ["0", "00", "000"])
def test_a_raw_request_is_told_that_several_inputs_need_json(
    client: httpx.Client, length: str
) -> None:
    """triton-inference-server/server #4070."""
    raw = TENSORS["query"].tobytes()
    response = client.post(INFER, content=raw, headers={HEADER_LENGTH: length})
    assert (response.status_code, response.json()) == (
        400,
        {
            "error": f"header {HEADER_LENGTH} is 0 (a raw binary request), but the model has "
            "several inputs: describe them in JSON"
        },
    )


def test_an_answer_in_npz_is_native_to_numpy(client: httpx.Client) -> None:
    """triton-inference-server/server #2512."""
    response = client.post(ATTENTION, content=write_npz(TENSORS), params={"weights": "mean"})
    with np.load(io.BytesIO(response.content), allow_pickle=False) as archive:
        for name in ("output", "attention_weights"):
            assert archive[name].dtype.str == "<f4"
            assert archive[name].flags.c_contiguous
