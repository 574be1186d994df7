"""Faults of datatypes: half precision where there is none, and names that nearly fit."""

import json
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.demo import B, D, L, S, check_close, draw_tokens, expect
from tests.integration.doors import (
    ATTENTION,
    DATATYPES,
    HEADER_LENGTH,
    INFER,
    NPZ,
    SAFETENSORS,
    read_answer,
    write_npz,
    write_safetensors,
    write_v2_json,
)

TENSORS = draw_tokens()
INPUTS = ["query", "key", "value", "bias"]
KNOWN = "BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, FP32, FP64"


def refuse(response: httpx.Response) -> str:
    """The text of a refusal."""
    assert response.status_code == 400, response.text
    return str(response.json()["error"])


def post_binary(client: httpx.Client, datatype: str, size_bytes: int) -> httpx.Response:
    """A V2 request of one query whose data is zeros behind the JSON."""
    entry = {
        "name": "query",
        "shape": [B, L, D],
        "datatype": datatype,
        "parameters": {"binary_data_size": size_bytes},
    }
    head = json.dumps({"inputs": [entry]}).encode()
    headers = {HEADER_LENGTH: str(len(head))}
    return client.post(INFER, content=head + bytes(size_bytes), headers=headers)


def test_bf16_is_not_taken_for_fp16(client: httpx.Client) -> None:
    """Both have two bytes (kserve/kserve #4706; triton-inference-server/client #100)."""
    text = f"input 'query' has datatype \"BF16\", expected one of {KNOWN}"
    assert refuse(post_binary(client, "BF16", 2 * B * L * D)) == text
    named = {"query": TENSORS["query"].astype(np.float16)}
    body = write_safetensors(named).replace(b'"F16"', b'"BF16"', 1)
    shifted = (int.from_bytes(body[:8], "little") + 1).to_bytes(8, "little") + body[8:]
    response = client.post(ATTENTION, content=shifted, headers={"Content-Type": SAFETENSORS})
    assert "BF16" in refuse(response)


def test_bf16_in_a_checkpoint_is_widened_to_exactly_its_number(tmp_path: Path) -> None:
    """0.01 rounds to 0.010009765625; cut off it is 0.00994873.

    triton-inference-server/client #897, #135; kserve/kserve #4706.
    """
    torch = pytest.importorskip("torch")
    from export.checkpoints.checkpoint import read_checkpoint
    from model.attention import MultiHeadAttention

    layer = MultiHeadAttention(6, 3)
    torch.nn.init.constant_(layer.W_q.weight, 0.01)
    torch.save(layer.to(torch.bfloat16).state_dict(), tmp_path / "x.pt")
    weights = read_checkpoint(tmp_path / "x.pt", num_heads=3)
    assert (weights.W_q == np.float32(0.010009765625)).all()


@pytest.mark.parametrize("name", INPUTS)
def test_fp16_has_no_json_form_in_any_input(client: httpx.Client, name: str) -> None:
    """triton-inference-server/server #5960; kserve/kserve #3695, #5907."""
    body = write_v2_json(TENSORS | {"bias": np.zeros((L, S), np.float32)})
    next(entry for entry in body["inputs"] if entry["name"] == name)["datatype"] = "FP16"
    assert refuse(client.post(INFER, json=body)) == (
        f"input '{name}' has datatype FP16, which has no JSON form; send binary data, or FP32"
    )


@pytest.mark.parametrize("form", [NPZ, SAFETENSORS])
def test_fp16_in_bytes_keeps_its_value(client: httpx.Client, form: str) -> None:
    """triton-inference-server/server #5960."""
    sent = {name: array.astype(np.float16) for name, array in TENSORS.items()}
    body = write_npz(sent) if form == NPZ else write_safetensors(sent)
    response = client.post(ATTENTION, content=body, headers={"Content-Type": form})
    check_close(read_answer(response), expect(sent, weights="none"))


ODD_NAMES = [
    "fp32",
    "Fp32",
    "FP-32",
    "FP_32",
    "TYPE_FP32",
    "float",
    "float32",
    "FLOAT",
    "FLOAT32",
    "F32",
    "<f4",
    "f4",
    "DT_FLOAT",
    "TYPE_BOOL",
    "bool",
    "Bool",
    "int64",
    "BYTES",
    "STRING",
    "FP8",
    "BF16",
    "COMPLEX64",
    "null",
]


@pytest.mark.parametrize("datatype", ["", " FP32", "FP32 ", "FP32\n", "FP32\0", *ODD_NAMES])
def test_a_datatype_has_one_spelling(client: httpx.Client, datatype: str) -> None:
    """The refusal lists them all (triton-inference-server/server #1745)."""
    expected = f"input 'query' has datatype {json.dumps(datatype)}, expected one of {KNOWN}"
    body = write_v2_json({"query": TENSORS["query"]})
    body["inputs"][0]["datatype"] = datatype
    assert refuse(client.post(INFER, json=body)) == expected
    assert refuse(post_binary(client, datatype, 4 * B * L * D)) == expected


@given(datatype=st.text(max_size=8) | st.integers() | st.none() | st.booleans())
def test_any_other_datatype_is_refused(client: httpx.Client, datatype: object) -> None:
    body = write_v2_json({"query": TENSORS["query"]})
    body["inputs"][0]["datatype"] = datatype
    text = refuse(client.post(INFER, json=body)) if datatype not in DATATYPES else "expected one of"
    assert "expected one of" in text


@pytest.mark.parametrize("datatype", [name for name in DATATYPES if name != "FP32"])
@pytest.mark.parametrize("name", INPUTS)
def test_no_datatype_is_converted_silently_in_v2(
    client: httpx.Client, name: str, datatype: str
) -> None:
    """Integers for floats, or twice the precision: the protocol has no way to say so."""
    arrays = TENSORS | {"bias": np.zeros((L, S), np.float32)}
    entries = []
    for other, array in arrays.items():
        kind = datatype if other == name else "FP32"
        data = array.astype(DATATYPES[kind])
        entries.append((other, kind, data))
    inputs = [
        {
            "name": n,
            "datatype": k,
            "shape": list(a.shape),
            "parameters": {"binary_data_size": a.nbytes},
        }
        for n, k, a in entries
    ]
    head = json.dumps({"inputs": inputs}).encode()
    body = head + b"".join(array.tobytes() for *_, array in entries)
    text = refuse(client.post(INFER, content=body, headers={HEADER_LENGTH: str(len(head))}))
    assert text == (
        f"input '{name}' has datatype {datatype}, expected FP32: convert it before sending "
        "(/v1/attention converts FP16 and FP64 itself)"
    )
