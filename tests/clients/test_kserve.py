"""KServe's `InferenceRESTClient`, unmodified."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.clients.cases import (
    BINARY,
    CASES,
    CODING,
    CONCURRENCY,
    EACH_CASE,
    EACH_FAULT,
    EACH_FORM,
    EXPIRY_TRIES,
    FORMS,
    JSON_AND_BINARY,
    LARGE,
    LARGE_FORM,
    PLAIN,
    REQUESTS_EACH,
    Case,
    Fault,
    Form,
    draw_many,
)
from tests.clients.kserve_tensors import read_outputs, write_request
from tests.integration.demo import MODEL, check_close
from tests.integration.doors import OUTPUTS

pytestmark = [pytest.mark.clients, pytest.mark.kserve]


@pytest.fixture(name="ask")
def bind_client(rest: Any, server_url: str, auth_headers: Mapping[str, str]) -> Any:
    """`infer` of the demo, with the key that the server may want."""

    async def ask(request: Any, name: str = MODEL, **options: Any) -> Any:
        headers = dict(auth_headers) | options.pop("headers", {})
        return await rest.infer(server_url, request, name, headers=headers, **options)

    return ask


async def test_server_and_model_are_live_and_ready(
    rest: Any, server_url: str, auth_headers: Mapping[str, str]
) -> None:
    assert await rest.is_server_live(server_url) is True
    assert await rest.is_server_ready(server_url) is True
    names = {MODEL: True, f"{MODEL}/versions/1": True, f"{MODEL}/versions/9": False, "other": False}
    for name, is_ready in names.items():
        assert await rest.is_model_ready(server_url, name, dict(auth_headers)) is is_ready


@EACH_FORM
@EACH_CASE
async def test_the_values_are_right(kserve: Any, ask: Any, case: Case, form: Form) -> None:
    response = await ask(write_request(kserve, case, form))
    check_close(read_outputs(response), case.find_answer())


@pytest.mark.parametrize("sent", ["json", "binary"])
@pytest.mark.parametrize("answered", ["by default", "all binary", "each as it says"])
async def test_all_combinations_of_json_and_binary(
    kserve: Any, ask: Any, sent: str, answered: str
) -> None:
    listed = Case(PLAIN.tensors, asked=OUTPUTS if answered == "each as it says" else None)
    parameters = {"binary_data_output": True} if answered == "all binary" else {}
    request, got = write_request(kserve, listed, FORMS[sent], **parameters), dict[str, str]()
    if request.request_outputs:
        request.request_outputs[0].parameters = {"binary_data": sent == "json"}
    response = await ask(request, response_headers=got)
    check_close(read_outputs(response), PLAIN.find_answer())
    is_binary = answered != "by default"
    assert ("inference-header-content-length" in got) is is_binary
    assert (got["content-type"] == "application/octet-stream") is is_binary


@JSON_AND_BINARY
@EACH_FAULT
async def test_the_text_of_an_error_is_shown(
    kserve: Any, ask: Any, fault: Fault, form: Form
) -> None:
    name = f"{fault.model}/versions/{fault.version}" if fault.version else fault.model
    with pytest.raises(httpx.HTTPStatusError) as caught:
        await ask(write_request(kserve, fault, form), name)
    assert str(caught.value).startswith(f"{fault.text}, '{fault.status} ")


async def test_a_dictionary_will_do(ask: Any) -> None:
    case = CASES["query-alone"]
    query = case.tensors["query"]
    entry = {"name": "query", "shape": query.shape, "datatype": "FP32", "data": query.tolist()}
    response = await ask({"inputs": [entry]})
    check_close(read_outputs(response), case.find_answer())


async def test_the_id_and_the_model_come_back(kserve: Any, ask: Any) -> None:
    request = write_request(kserve, PLAIN, BINARY)
    request.id = "9/é"
    response = await ask(request, f"{MODEL}/versions/1")
    assert (response.id, response.model_name) == ("9/é", MODEL)
    check_close(read_outputs(response), PLAIN.find_answer())


@CODING
async def test_an_answer_is_compressed_on_request(kserve: Any, ask: Any, coding: str) -> None:
    got, case = dict[str, str](), LARGE["json"]
    request = write_request(kserve, case, BINARY)
    response = await ask(request, headers={"Accept-Encoding": coding}, response_headers=got)
    assert got["content-encoding"] == coding
    check_close(read_outputs(response), case.find_answer())


@JSON_AND_BINARY
@CONCURRENCY
async def test_many_at_once_each_get_their_own_answer(
    kserve: Any, ask: Any, concurrency: int, form: Form
) -> None:
    cases = draw_many(concurrency * REQUESTS_EACH)
    for first in range(0, len(cases), concurrency):
        now = cases[first : first + concurrency]
        responses = await asyncio.gather(*(ask(write_request(kserve, each, form)) for each in now))
        for case, response in zip(now, responses, strict=True):
            check_close(read_outputs(response), case.find_answer())


async def test_a_timeout_that_passed_in_the_queue_is_an_error(kserve: Any, ask: Any) -> None:
    with pytest.raises(httpx.HTTPStatusError, match=r"timeout.*'503 ") as caught:
        [await ask(write_request(kserve, PLAIN, BINARY, timeout=1)) for _ in range(EXPIRY_TRIES)]
    assert caught.value.response.headers["Retry-After"]
    request = write_request(kserve, PLAIN, BINARY, timeout=60_000_000, priority=1)
    check_close(read_outputs(await ask(request)), PLAIN.find_answer())


@LARGE_FORM
async def test_large_tensors(kserve: Any, ask: Any, form: str) -> None:
    case = LARGE[form]
    response = await ask(write_request(kserve, case, FORMS[form]))
    check_close(read_outputs(response), case.find_answer())
