"""Unmodified clients of a server below a path, as behind a proxy."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.cases import FAULTS, FORMS, MAY_DROP_ANSWERS, PLAIN
from tests.clients.conftest import Connect
from tests.clients.kserve_tensors import read_outputs as read_kserve
from tests.clients.kserve_tensors import write_request as write_kserve
from tests.clients.readings import READINGS, Call, describe
from tests.clients.triton_tensors import read_outputs, write_request
from tests.integration.demo import MODEL, check_close
from tests.integration.server_process import start_server

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif("LIMELIGHT_TEST_URL" in os.environ, reason="a deployed server is tested"),
]
PREFIX = "/attn"
FORM = FORMS["mixed"]
EACH_CALL = pytest.mark.parametrize("call", READINGS, ids=describe)


@pytest.fixture(scope="module", name="url")
def serve_below_a_path() -> Iterator[str]:
    """The address of a server, with its path."""
    with start_server(LIMELIGHT_ROOT_PATH=PREFIX) as server:
        yield server.url.removesuffix(PREFIX) + PREFIX


@EACH_CALL
def test_what_a_server_says_of_itself(connect: Connect, url: str, call: Call) -> None:
    call.check(getattr(connect(url), call.method)(*call.arguments))


@MAY_DROP_ANSWERS
@EACH_CALL
async def test_the_same_in_an_event_loop(connect_aio: Connect, url: str, call: Call) -> None:
    call.check(await getattr(connect_aio(url), call.method)(*call.arguments))


def test_answers_and_errors_below_a_path(http: Any, connect: Connect, url: str) -> None:
    client, fault = connect(url, concurrency=2), FAULTS["unknown-model"]
    request = write_request(http, PLAIN, FORM)
    check_close(read_outputs(client.infer(MODEL, **request)), PLAIN.find_answer())
    pending = client.async_infer(MODEL, **request, model_version="1")
    check_close(read_outputs(pending.get_result()), PLAIN.find_answer())
    with pytest.raises(http.InferenceServerException) as caught:
        client.infer(fault.model, **request)
    assert caught.value.message() == fault.text


async def test_answers_in_an_event_loop(http: Any, connect_aio: Connect, url: str) -> None:
    result = await connect_aio(url).infer(MODEL, **write_request(http, PLAIN, FORM))
    check_close(read_outputs(result), PLAIN.find_answer())


@pytest.mark.kserve
async def test_kserve_below_a_path(kserve: Any, rest: Any, url: str) -> None:
    assert await rest.is_server_live(url) is True
    assert await rest.is_server_ready(url) is True
    assert await rest.is_model_ready(url, MODEL) is True
    response = await rest.infer(url, write_kserve(kserve, PLAIN, FORM), MODEL)
    check_close(read_kserve(response), PLAIN.find_answer())
