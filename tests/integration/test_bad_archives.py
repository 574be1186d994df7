"""npz and safetensors bodies that are broken or hostile."""

import io
import json
import pickle
import zipfile
from typing import Any

import httpx
import numpy as np
import pytest

from tests.integration.demo import D, check_close, draw_tokens, expect
from tests.integration.doors import ATTENTION, NPZ, SAFETENSORS, ask, write_npz, write_safetensors

TENSORS = draw_tokens()
LIMIT = 64 * 2**20


def refuse(client: httpx.Client, body: bytes, form: str, status: int = 400) -> str:
    """The text of the refusal of a body."""
    response = client.post(ATTENTION, content=body, headers={"Content-Type": form})
    assert response.status_code == status, response.text
    return str(response.json()["error"])


def write_npy(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    """One npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def write_zip(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive with these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


QUERY = write_npy(TENSORS["query"])


class Exploit:
    """Would leave a trace where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize("name", ["query", "extra"])
def test_pickled_arrays_are_refused(client: httpx.Client, name: str) -> None:
    stream = io.BytesIO()
    hostile = np.array([Exploit()], object)
    arrays: dict[str, Any] = TENSORS | {name: hostile}
    np.savez(stream, **arrays)
    text = refuse(client, stream.getvalue(), NPZ)
    assert text == (
        f"array '{name}.npy' has dtype '|O', expected numbers or booleans of at most 8 bytes"
    )


def test_a_bare_pickle_is_no_archive(client: httpx.Client) -> None:
    assert "cannot be read" in refuse(client, pickle.dumps(TENSORS), NPZ)


@pytest.mark.parametrize("dtype", ["U3", "S3", "c8", "M8[s]", [("a", "f4")], "V8"], ids=str)
def test_arrays_that_are_no_numbers_are_refused(client: httpx.Client, dtype: Any) -> None:
    text = refuse(client, write_npz({"query": np.zeros((1, 1, D), dtype)}), NPZ)
    assert text.startswith("array 'query.npy' has dtype ")
    assert text.endswith(", expected numbers or booleans of at most 8 bytes")


def test_an_archive_that_would_inflate_beyond_the_limit_is_413(client: httpx.Client) -> None:
    zeros = write_npy(np.zeros((1, LIMIT // 4 // D + 1, D), np.float32))
    bomb = write_zip([("query.npy", zeros)], zipfile.ZIP_DEFLATED)
    assert len(bomb) < LIMIT // 100
    text = refuse(client, bomb, NPZ, 413)
    assert text == (
        f"the npz archive holds {len(zeros)} bytes, expected at most {LIMIT} "
        "(LIMELIGHT_MAX_REQUEST_BYTES)"
    )


def test_an_archive_that_lies_about_its_size_is_refused(client: httpx.Client) -> None:
    zeros = write_npy(np.zeros((1, LIMIT // 4 // D + 1, D), np.float32))
    bomb = write_zip([("query.npy", zeros)], zipfile.ZIP_DEFLATED)
    lie = bomb.replace(len(zeros).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert lie != bomb
    assert "cannot be read" in refuse(client, lie, NPZ)


def test_members_that_share_their_bytes_are_refused(client: httpx.Client) -> None:
    """The trick of the archives that inflate millionfold."""
    body = write_zip([("query.npy", QUERY), ("key.npy", QUERY)])
    offset = body.rindex(b"PK\x01\x02") + 42
    overlapping = body[:offset] + bytes(4) + body[offset + 4 :]
    assert refuse(client, overlapping, NPZ) in {
        "member 'key.npy' of the npz archive overlaps another",
        "member 'query.npy' of the npz archive overlaps another",
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            write_zip([("query.txt", QUERY)]),
            "member 'query.txt' of the npz archive has no suffix .npy",
            id="suffix",
        ),
        pytest.param(
            write_zip([("query.npy", QUERY)], zipfile.ZIP_BZIP2),
            "member 'query.npy' of the npz archive is encrypted or compressed in another way "
            "than deflate; write it with numpy.savez",
            id="bzip2",
        ),
        pytest.param(
            write_zip([(f"a{n}.npy", QUERY) for n in range(65)]),
            "the npz archive has 65 members, expected at most 64",
            id="many",
        ),
        pytest.param(
            write_zip([("query.npy", QUERY[:-4])]),
            "array 'query.npy' has 476 bytes of data, expected 480 for shape [4, 5, 6] of float32",
            id="short-data",
        ),
        pytest.param(
            write_zip([("query.npy", QUERY + b"1234")]),
            "array 'query.npy' has 484 bytes of data, expected 480 for shape [4, 5, 6] of float32",
            id="long-data",
        ),
        pytest.param(write_zip([]), "input 'query' is missing", id="no-members"),
    ],
)
def test_an_archive_that_does_not_fit(client: httpx.Client, body: bytes, text: str) -> None:
    assert refuse(client, body, NPZ) == text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"not a zip", id="no-zip"),
        pytest.param(write_npz(TENSORS)[:-30], id="cut-at-the-end"),
        pytest.param(write_npz(TENSORS)[30:], id="cut-at-the-start"),
        pytest.param(b"PK\x05\x06" + b"\xff" * 18, id="hostile-directory"),
        pytest.param(write_zip([("query.npy", b"\x93NUMPY\x01\x00")]), id="no-header"),
        pytest.param(write_zip([("query.npy", QUERY.replace(b"<f4", b"<q4"))]), id="odd-dtype"),
        pytest.param(write_zip([("query.npy", QUERY.replace(b"(4,", b"(-4"))]), id="odd-shape"),
        pytest.param(
            write_zip([("query.npy", QUERY.replace(b"False", b"exit("))]), id="code-in-the-header"
        ),
    ],
)
def test_a_broken_archive_is_400(client: httpx.Client, body: bytes) -> None:
    assert refuse(client, body, NPZ)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_versions_of_npy_are_read(client: httpx.Client, version: tuple[int, int]) -> None:
    members = [(f"{name}.npy", write_npy(a, version)) for name, a in TENSORS.items()]
    response = client.post(
        ATTENTION,
        content=write_zip(members),
        headers={"Content-Type": NPZ},
        params={"format": "json"},
    )
    right = expect(TENSORS)["output"]
    np.testing.assert_allclose(response.json()["output"], right, rtol=0, atol=1e-5)


GOOD = {"dtype": "F32", "shape": [1, 1, D], "data_offsets": [0, 4 * D]}


def write_header(header: Any, data: bytes = bytes(4 * D), length: int | None = None) -> bytes:
    """A safetensors body with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"1234567", id="too-short"),
        pytest.param(write_header({"query": GOOD}, length=2**63), id="huge-header"),
        pytest.param(write_header({"query": GOOD}, length=500), id="header-beyond-the-body"),
        pytest.param(write_header({"query": GOOD}, length=5), id="header-cut"),
        pytest.param(write_header([]), id="header-no-object"),
        pytest.param(write_header(b"{" * 60_000), id="deep-header"),
        pytest.param(write_header({"query": 5}), id="entry-no-object"),
        pytest.param(write_header({"query": GOOD | {"dtype": "BF16"}}), id="bf16"),
        pytest.param(write_header({"query": GOOD | {"dtype": ["F32"]}}), id="dtype-list"),
        pytest.param(write_header({"query": GOOD | {"shape": [-1, 1, D]}}), id="negative"),
        pytest.param(write_header({"query": GOOD | {"shape": [True, 1, D]}}), id="true"),
        pytest.param(write_header({"query": GOOD | {"shape": [1.0, 1, D]}}), id="float"),
        pytest.param(write_header({"query": GOOD | {"shape": [2**62, 4, D]}}), id="huge-shape"),
        pytest.param(write_header({"query": GOOD | {"data_offsets": [0, 20]}}), id="size"),
        pytest.param(write_header({"query": GOOD | {"data_offsets": [24, 0]}}), id="backwards"),
        pytest.param(write_header({"query": GOOD | {"data_offsets": [4, 28]}}), id="gap"),
        pytest.param(write_header({"query": GOOD}, bytes(23)), id="data-missing"),
        pytest.param(write_header({"query": GOOD}, bytes(25)), id="data-left"),
        pytest.param(write_header({"query": GOOD, "key": GOOD}), id="overlap"),
        pytest.param(
            write_header(b'{"query": %s, "query": %s}' % ((json.dumps(GOOD).encode(),) * 2)),
            id="twice",
        ),
    ],
)
def test_a_broken_safetensors_body_is_400(client: httpx.Client, body: bytes) -> None:
    assert refuse(client, body, SAFETENSORS)


def test_json_under_the_name_of_another_form_is_400(client: httpx.Client) -> None:
    for form in (NPZ, SAFETENSORS):
        assert refuse(client, b'{"query": [[1, 0, 0, 0, 0, 0]]}', form)


def test_a_body_of_another_form_under_the_name_of_json_is_400(client: httpx.Client) -> None:
    for body in (write_npz(TENSORS), write_safetensors(TENSORS)):
        assert "is not JSON" in refuse(client, body, "application/json")


def test_a_good_request_follows_all_of_these(client: httpx.Client) -> None:
    check_close(ask(client, "v1-npz", TENSORS), expect(TENSORS))
