"""tritonclient's client for event loops, unmodified."""

import asyncio
import re
from typing import Any

import pytest

from tests.clients.cases import (
    BINARY,
    CODING,
    CONCURRENCY,
    EACH_CASE,
    EACH_FAULT,
    EACH_FORM,
    EXPIRY_TRIES,
    FAULTS,
    FORMS,
    JSON_AND_BINARY,
    LARGE,
    LARGE_FORM,
    MAY_DROP_ANSWERS,
    PLAIN,
    REQUESTS_EACH,
    Case,
    Fault,
    Form,
    draw_many,
)
from tests.clients.conftest import Connect
from tests.clients.readings import READINGS, REFUSALS, Call, Refusal, describe
from tests.clients.triton_tensors import read_outputs, write_request
from tests.integration.demo import MODEL, check_close, draw_tokens

pytestmark = [pytest.mark.clients, MAY_DROP_ANSWERS]


@pytest.mark.parametrize("call", READINGS, ids=describe)
async def test_what_a_server_says_of_itself(aio: Any, call: Call) -> None:
    """This client asks for gzip always and undoes it in results only."""
    call.check(await getattr(aio, call.method)(*call.arguments))


@pytest.mark.parametrize("refusal", REFUSALS, ids=describe)
async def test_what_is_refused_is_refused_in_words(http: Any, aio: Any, refusal: Refusal) -> None:
    with pytest.raises(http.InferenceServerException) as caught:
        await getattr(aio, refusal.method)(*refusal.arguments)
    assert refusal.words in caught.value.message()
    assert caught.value.status() == str(refusal.status)


@EACH_FORM
@EACH_CASE
async def test_the_values_are_right(http: Any, aio: Any, case: Case, form: Form) -> None:
    result = await aio.infer(MODEL, **write_request(http, case, form))
    check_close(read_outputs(result), case.find_answer())


@EACH_FAULT
async def test_the_text_of_an_error_is_shown(http: Any, aio: Any, fault: Fault) -> None:
    request = write_request(http, fault, BINARY)
    with pytest.raises(http.InferenceServerException) as caught:
        await aio.infer(fault.model, model_version=fault.version, **request)
    assert caught.value.message() == fault.text
    assert caught.value.status() == str(fault.status)


@JSON_AND_BINARY
@CONCURRENCY
async def test_many_at_once_each_get_their_own_answer(
    http: Any, aio: Any, concurrency: int, form: Form
) -> None:
    for first in range(REQUESTS_EACH):
        cases = draw_many((first + 1) * concurrency)[-concurrency:]
        requests = [write_request(http, case, form) for case in cases]
        results = await asyncio.gather(
            *(aio.infer(MODEL, **request, request_id=str(n)) for n, request in enumerate(requests))
        )
        for number, (case, result) in enumerate(zip(cases, results, strict=True)):
            assert result.get_response()["id"] == str(number)
            check_close(read_outputs(result), case.find_answer())


@CODING
@JSON_AND_BINARY
async def test_compressed_as_asked(
    http: Any, connect_aio: Connect, form: Form, coding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(draw_tokens(2, 211, 7))
    client = connect_aio(verbose=True)
    for sent in (None, "gzip", "deflate"):
        result = await client.infer(
            MODEL,
            **write_request(http, case, form),
            request_compression_algorithm=sent,
            response_compression_algorithm=coding,
        )
        answer = capsys.readouterr().out.partition("<ClientResponse")[2]
        assert re.search(f"'content-encoding': '{coding}'", answer, re.IGNORECASE)
        check_close(read_outputs(result), case.find_answer())


@CODING
async def test_an_error_is_never_compressed(http: Any, aio: Any, coding: str) -> None:
    fault = FAULTS["wrong-shape"]
    request = write_request(http, fault, BINARY)
    with pytest.raises(http.InferenceServerException) as caught:
        await aio.infer(MODEL, **request, response_compression_algorithm=coding)
    assert caught.value.message() == fault.text


async def test_the_id_and_the_version_come_back(http: Any, aio: Any) -> None:
    request = write_request(http, PLAIN, BINARY)
    result = await aio.infer(MODEL, **request, request_id="8/é", model_version="1", priority=1)
    answer = result.get_response()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("8/é", MODEL, "1")


async def test_a_timeout_that_passed_in_the_queue_is_an_error(http: Any, aio: Any) -> None:
    request = write_request(http, PLAIN, BINARY)
    with pytest.raises(http.InferenceServerException) as caught:
        [await aio.infer(MODEL, **request, timeout=1) for _ in range(EXPIRY_TRIES)]
    assert caught.value.status() == "503"
    assert "timeout" in caught.value.message()
    result = await aio.infer(MODEL, **request, timeout=60_000_000)
    check_close(read_outputs(result), PLAIN.find_answer())


# aiohttp says so of every body above 1 MiB that is not a stream.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
@LARGE_FORM
async def test_large_tensors(http: Any, aio: Any, form: str) -> None:
    case = LARGE[form]
    result = await aio.infer(MODEL, **write_request(http, case, FORMS[form]))
    check_close(read_outputs(result), case.find_answer())
