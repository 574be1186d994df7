"""What rows of the tables of docs/protocol.md say, asked of a server of the demo.

Keys are the first cells of the rows, word for word.
"""

import json
import zlib
from collections.abc import Callable
from typing import Any, Final

import httpx
import numpy as np

from tests.integration.demo import D, H, L, draw_tokens
from tests.integration.doors import HEADER_LENGTH, INFER, write_v2_binary, write_v2_json

Replies = Callable[[httpx.Client], list[httpx.Response]]
Check = Callable[[httpx.Client], None]
QUERY: Final = {"query": draw_tokens()["query"]}
BODY: Final = write_v2_json(QUERY)
NAN: Final = {"query": np.full((1, L, D), np.nan, np.float32)}


def post(client: httpx.Client, *bodies: Any, **headers: str) -> list[httpx.Response]:
    """The answers to bodies, each an object or the bytes themselves."""
    texts = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
    return [client.post(INFER, content=text, headers=headers) for text in texts]


def vary(**members: Any) -> dict[str, Any]:
    """A request with other members in its only input."""
    return {"inputs": [{**BODY["inputs"][0], **members}]}


def ask(client: httpx.Client, **parameters: Any) -> httpx.Response:
    """The answer to a request with parameters."""
    (response,) = post(client, BODY | {"parameters": parameters})
    return response


def cut_binary(client: httpx.Client, *sizes: int) -> list[httpx.Response]:
    """The answers to a binary request that is so many bytes too long, or too short."""
    body, headers = write_v2_binary(QUERY)
    bodies = [body + bytes(size) if size > 0 else body[:size] for size in sizes]
    return [client.post(INFER, content=each, headers=headers) for each in bodies]


def ask_too_much(client: httpx.Client) -> list[httpx.Response]:
    """The answer to 10,000 tokens, whose scores take more than a GiB."""
    body, headers = write_v2_binary({"query": np.zeros((1, 10_000, D), np.float32)})
    return [client.post(INFER, content=body, headers=headers)]


def ask_what_is_not_offered(client: httpx.Client) -> list[httpx.Response]:
    """The answers to requests for shared memory, classification and sequences."""
    shared = vary(parameters={"shared_memory_region": "region", "shared_memory_byte_size": 96})
    del shared["inputs"][0]["data"]
    classes = {"name": "output", "parameters": {"classification": 2}}
    sequence = BODY | {"parameters": {"sequence_id": 5}}
    return post(client, shared, BODY | {"outputs": [classes]}, sequence)


def ask_elsewhere(client: httpx.Client) -> list[httpx.Response]:
    """The answers for a model, a version and a path that are not there."""
    paths = ("/v2/models/other", "/v2/models/demo/versions/9", "/v2/other")
    return [client.get(path) for path in paths]


STATUSES: Final[dict[str, Replies]] = {
    "the body is not JSON, is nested too deeply, or has a member twice": lambda client: post(
        client, b"{", b'{"inputs":' + b"[" * 5000, b'{"inputs": [], "inputs": []}'
    ),
    "a tensor's name, datatype, shape or number of elements does not fit": lambda client: post(
        client,
        vary(name="quer"),
        vary(datatype="FP64"),
        vary(shape=[1, 2, D]),
        vary(shape=[1, L * D * 4]),
    ),
    "bytes are missing, or left over, behind the JSON": lambda client: cut_binary(client, -1, 1),
    "`Inference-Header-Content-Length` is not a number, or larger than the body": lambda client: [
        *post(client, BODY, **{HEADER_LENGTH: "x"}),
        *post(client, BODY, **{HEADER_LENGTH: "999999"}),
    ],
    "a batch is larger than `max_batch_size`": lambda client: post(
        client, write_v2_json({"query": np.zeros((257, 1, D), np.float32)})
    ),
    "a JSON answer would hold NaN or an infinity": lambda client: post(client, write_v2_json(NAN)),
    "no such model, version or path": ask_elsewhere,
    "another method": lambda client: [client.get(INFER), client.post("/v2")],
    "the body, before or after inflating, the tokens, the scores or the answer are too large": (
        ask_too_much
    ),
    "a `Content-Encoding` that is not read": lambda client: post(
        client, BODY, **{"Content-Encoding": "br"}
    ),
    "shared memory, classification or sequences are asked for": ask_what_is_not_offered,
}


def check_weights(client: httpx.Client) -> None:
    """The shape of the weights, or their absence, is that of the form."""
    batch, shapes = len(QUERY["query"]), {}
    for form, more in (("none", {}), ("per_head", {}), ("mean", {}), ("top_k", {"top_k": 2})):
        outputs = ask(client, weights=form, **more).json()["outputs"]
        shapes[form] = [output["shape"] for output in outputs[1:]]
    assert shapes == {
        "none": [],
        "per_head": [[batch, H, L, L]],
        "mean": [[batch, L, L]],
        "top_k": [[batch, H, L, 2]] * 2,
    }


def check_heads(client: httpx.Client) -> None:
    """As many heads come as are named, and each may be named once."""
    outputs = ask(client, heads="2,0").json()["outputs"]
    assert outputs[1]["shape"] == [len(QUERY["query"]), 2, L, L]
    check_values("heads", ("0", "0,1,2"), ("", "3", "1,1", "0_1", 0, True), 400)(client)


def check_binary_output(client: httpx.Client) -> None:
    """All outputs are binary, or none."""
    assert (
        ask(client, binary_data_output=True).headers["content-type"] == "application/octet-stream"
    )
    assert ask(client, binary_data_output=False).headers["content-type"] == "application/json"


def check_values(
    name: str, good: tuple[Any, ...], bad: tuple[Any, ...], status: int, **others: Any
) -> Check:
    """A check that a parameter takes good values, beside others, and that bad ones get a status."""

    def check(client: httpx.Client) -> None:
        for expected, values in ((200, good), (status, bad)):
            for value in values:
                assert ask(client, **others, **{name: value}).status_code == expected, (name, value)

    return check


def check_sequences(client: httpx.Client) -> None:
    """What means no sequence is taken, whatever its name."""
    for name in ("sequence_id", "sequence_start", "sequence_end"):
        check_values(name, (0, False, ""), (1, True, "one"), 501)(client)


PARAMETERS: Final[dict[str, Check]] = {
    "`causal`": check_values("causal", (True, False, "top_left", "bottom_right"), ("left", 2), 400),
    "`weights`": check_weights,
    "`heads`": check_heads,
    "`top_k`": check_values("top_k", (1, 2, 1000), (0, True, 1.5, "2"), 400, weights="top_k"),
    "`binary_data_output`": check_binary_output,
    "`timeout`": check_values("timeout", (0, 60_000_000), (-1, 0.5, "1", True), 400),
    "`priority`": check_values("priority", (0, 1, 1000), (-1, 0.5, "1", True), 400),
    "`sequence_id`, `sequence_start`, `sequence_end`": check_sequences,
    "`triton_…`": check_values("triton_enable_empty_final_response", (), (False, 1), 400),
}


def check_listed_default(client: httpx.Client) -> None:
    """The request's default holds for the output that says nothing."""
    outputs = [
        {"name": "output"},
        {"name": "attention_weights", "parameters": {"binary_data": False}},
    ]
    asked = BODY | {"parameters": {"binary_data_output": True}, "outputs": outputs}
    (response,) = post(client, asked)
    cut = int(response.headers[HEADER_LENGTH])
    first, second = json.loads(response.content[:cut])["outputs"]
    assert "binary_data_size" in first["parameters"]
    assert "data" in second


def check_compression(client: httpx.Client) -> None:
    """One coding alone is a wish, a list of them is not, and nothing but answers is compressed."""
    for coding, wbits in (("gzip", 31), ("deflate", 15)):
        request = client.build_request(
            "POST", INFER, json=BODY, headers={"Accept-Encoding": coding}
        )
        response = client.send(request, stream=True)
        raw = b"".join(response.iter_raw())
        assert response.headers["content-encoding"] == coding
        assert json.loads(zlib.decompress(raw, wbits))["outputs"]
        plain = client.get("/v2", headers={"Accept-Encoding": coding})
        assert "content-encoding" not in plain.headers
    (listed,) = post(client, BODY, **{"Accept-Encoding": "gzip, deflate"})
    assert "content-encoding" not in listed.headers


def check_masks(client: httpx.Client) -> None:
    """Masks of two, three and four axes, and axes of 1."""
    for shape in ((L, L), (1, L), (1, L, L), (1, 1, 1, L), (1, H, L, L)):
        tensors = QUERY | {"mask": np.ones(shape, np.bool_)}
        (response,) = post(client, write_v2_json(tensors))
        assert response.status_code == 200, shape


def check_status(status: int, *replies: Replies) -> Check:
    """A check that all these have one status."""

    def check(client: httpx.Client) -> None:
        assert {each.status_code for reply in replies for each in reply(client)} == {status}

    return check


def check_health(client: httpx.Client) -> None:
    """The bodies are JSON."""
    for name in ("live", "ready"):
        assert client.get(f"/v2/health/{name}").json() == {name: True}


def check_datatypes(client: httpx.Client) -> None:
    """BYTES and BF16 are not read, and nothing is converted."""
    kinds = ("BYTES", "BF16", "FP64", "INT32")
    assert {r.status_code for r in post(client, *(vary(datatype=kind) for kind in kinds))} == {400}


def check_booleans(client: httpx.Client) -> None:
    """0 and 1 are false and true."""
    numbers, answers = [1, 1, 0, 1, 0], []
    for data in (numbers, [bool(each) for each in numbers]):
        entry = {"name": "mask", "shape": [1, L], "datatype": "BOOL", "data": data}
        answers += post(client, BODY | {"inputs": [*BODY["inputs"], entry]})
    assert answers[0].status_code == 200
    assert answers[0].content == answers[1].content


def check_model_list(client: httpx.Client) -> None:
    """The names of the models."""
    assert client.get("/v2/models").json() == {"models": ["demo"]}


def check_metrics(client: httpx.Client) -> None:
    """The port of everything else has them, and those of others are not there."""
    text = client.get("/metrics").text
    assert "nv_inference_count{" in text
    assert "nv_gpu_" not in text
    assert "nv_cpu_" not in text


def check_shared_memory(client: httpx.Client) -> None:
    """Regions cannot be registered, and nothing is generated."""
    for kind in ("system", "cuda"):
        path = f"/v2/{kind}sharedmemory/region/any/register"
        assert client.post(path, json={}).status_code == 501
        assert client.get(f"/v2/{kind}sharedmemory/status").json() == []
        assert client.post(f"/v2/{kind}sharedmemory/unregister").status_code == 200
    assert client.post("/v2/models/demo/generate").status_code == 404


def check_settings(client: httpx.Client) -> None:
    """What is so may be written, anything else not."""
    for path in ("/v2/trace/setting", "/v2/models/demo/trace/setting", "/v2/logging"):
        present = client.get(path).json()
        assert client.post(path, json=present).json() == present
    trace, log = {"trace_level": ["TIMESTAMPS"]}, {"log_verbose_level": 2}
    assert client.post("/v2/trace/setting", json=trace).status_code == 501
    assert client.post("/v2/logging", json=log).status_code == 501


def load_and_unload(client: httpx.Client) -> list[httpx.Response]:
    """The answers of a server without model control."""
    return [client.post(f"/v2/repository/models/demo/{verb}") for verb in ("load", "unload")]


DIFFERENCES: Final[dict[str, Check]] = {
    "NaN and infinities in a JSON answer": check_status(
        400, STATUSES["a JSON answer would hold NaN or an infinity"]
    ),
    "`binary_data_output` beside a list of outputs": check_listed_default,
    "compressed answers": check_compression,
    "health": check_health,
    "a `Content-Encoding` that is not read": check_status(
        415, STATUSES["a `Content-Encoding` that is not read"]
    ),
    "a shape that does not fit its data": check_status(
        400, lambda client: post(client, vary(shape=[1, 1, D]), vary(shape=[2**31 - 1, 1, D]))
    ),
    "sequences, classification": check_status(501, ask_what_is_not_offered),
    "raw binary requests (`Inference-Header-Content-Length: 0`)": check_status(
        400, lambda client: post(client, bytes(4 * L * D), **{HEADER_LENGTH: "0"})
    ),
    "datatypes": check_datatypes,
    "BOOL in JSON": check_booleans,
    "shape of a mask": check_masks,
    "a member that comes twice": check_status(
        400, lambda client: post(client, b'{"inputs": [], "id": "1", "id": "2"}')
    ),
    "load and unload outside of `explicit`": check_status(501, load_and_unload),
    "writing settings of trace and log": check_settings,
    "`GET /v2/models`": check_model_list,
    "metrics of the GPU and the process": check_metrics,
    "shared memory, gRPC, generate": check_shared_memory,
}
