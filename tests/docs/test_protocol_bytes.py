"""The worked example of docs/protocol.md, byte by byte: what a server takes and gives."""

import itertools
import json
import re
from typing import Final

import httpx
import numpy as np

from tests.docs.markdown import ROOT, read_blocks, read_section
from tests.integration.demo import Arrays, check_close, expect
from tests.integration.doors import HEADER_LENGTH, INFER

SECTION: Final = read_section((ROOT / "docs" / "protocol.md").read_text(), "Binary data")
LINE: Final = re.compile(r"([0-9a-f]{8}): ([0-9a-f ]{39})  (.+)")
NUMBERS: Final = {"FP32": "<f4", "BOOL": "?"}


def read_dump(text: str) -> bytes:
    """The bytes of a dump as ``xxd`` prints it, whose offsets and characters must be right."""
    content = b""
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        part = bytes.fromhex(match[2])
        assert int(match[1], 16) == len(content)
        assert match[3] == "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        content += part
    return content


REQUEST, ANSWER = map(read_dump, read_blocks(SECTION, "hex"))
REQUEST_JSON, ANSWER_JSON = map(int, re.findall(rf"{HEADER_LENGTH}: (\d+)`", SECTION))


def read_tensors(content: bytes, json_bytes: int, member: str) -> Arrays:
    """The tensors of a dump by name, found as the page says."""
    tensors: Arrays = {}
    offset = json_bytes
    for entry in json.loads(content[:json_bytes])[member]:
        size = entry["parameters"]["binary_data_size"]
        data = np.frombuffer(content[offset : offset + size], NUMBERS[entry["datatype"]])
        tensors[entry["name"]] = data.reshape(entry["shape"])
        offset += size
    assert offset == len(content)
    return tensors


def test_the_answer_that_is_shown_is_right() -> None:
    """In float64."""
    asked = read_tensors(REQUEST, REQUEST_JSON, "inputs")
    given = read_tensors(ANSWER, ANSWER_JSON, "outputs")
    assert asked.keys() == {"query", "key_mask"}
    check_close(given, {"output": expect(asked, weights="none")["output"]})


def test_the_server_gives_it(client: httpx.Client) -> None:
    response = client.post(INFER, content=REQUEST, headers={HEADER_LENGTH: str(REQUEST_JSON)})
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers[HEADER_LENGTH] == str(ANSWER_JSON)
    assert response.content[:ANSWER_JSON] == ANSWER[:ANSWER_JSON]
    got = read_tensors(response.content, ANSWER_JSON, "outputs")
    check_close(got, read_tensors(ANSWER, ANSWER_JSON, "outputs"))


def list_spans(tensors: Arrays, json_bytes: int) -> list[tuple[int, int]]:
    """First and last byte of the JSON, and of each tensor behind it."""
    sizes = [json_bytes, *(array.nbytes for array in tensors.values())]
    ends = list(itertools.accumulate(sizes))
    return [(end - size, end - 1) for size, end in zip(sizes, ends, strict=True)]


def test_the_tables_say_where_each_tensor_is() -> None:
    spans = re.findall(r"^\| (\d+) to (\d+) \|", SECTION, re.MULTILINE)
    assert [(int(first), int(last)) for first, last in spans] == [
        *list_spans(read_tensors(REQUEST, REQUEST_JSON, "inputs"), REQUEST_JSON),
        *list_spans(read_tensors(ANSWER, ANSWER_JSON, "outputs"), ANSWER_JSON),
    ]


def test_the_numbers_that_the_tables_name_are_there() -> None:
    one, first = re.findall(r"`((?:[0-9a-f]{2} ){3}[0-9a-f]{2})` is (-?[0-9.]+)", SECTION)
    assert REQUEST[252:256] == bytes.fromhex(one[0])
    assert np.frombuffer(bytes.fromhex(one[0]), "<f4") == float(one[1])
    assert ANSWER[142:146] == bytes.fromhex(first[0])
    assert np.frombuffer(bytes.fromhex(first[0]), "<f4") == np.float32(first[1])
