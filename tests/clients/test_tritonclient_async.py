"""tritonclient's `async_infer`, unmodified: greenlets over a pool of connections."""

from typing import Any

import pytest

from tests.clients.cases import (
    BINARY,
    CODING,
    CONCURRENCY,
    EACH_CASE,
    EACH_FAULT,
    FAULTS,
    FORMS,
    JSON_AND_BINARY,
    LARGE,
    LARGE_FORM,
    REQUESTS_EACH,
    Case,
    Fault,
    Form,
    draw_many,
)
from tests.clients.conftest import Connect
from tests.clients.triton_tensors import read_outputs, write_request
from tests.integration.demo import MODEL, check_close

pytestmark = pytest.mark.clients


@EACH_CASE
def test_the_values_are_right(http: Any, connect: Connect, case: Case) -> None:
    client = connect(concurrency=len(FORMS))
    waiting = [
        client.async_infer(MODEL, **write_request(http, case, form)) for form in FORMS.values()
    ]
    for pending in waiting:
        check_close(read_outputs(pending.get_result()), case.find_answer())


@EACH_FAULT
def test_the_text_of_an_error_is_shown(http: Any, triton: Any, fault: Fault) -> None:
    request = write_request(http, fault, BINARY)
    pending = triton.async_infer(fault.model, model_version=fault.version, **request)
    with pytest.raises(http.InferenceServerException) as caught:
        pending.get_result()
    assert caught.value.message() == fault.text
    assert caught.value.status() == str(fault.status)


@JSON_AND_BINARY
@CONCURRENCY
def test_many_at_once_each_get_their_own_answer(
    http: Any, connect: Connect, concurrency: int, form: Form
) -> None:
    client, cases = connect(concurrency=concurrency), draw_many(concurrency * REQUESTS_EACH)
    waiting = [
        client.async_infer(MODEL, **write_request(http, case, form), request_id=str(number))
        for number, case in enumerate(cases)
    ]
    for number, (case, pending) in enumerate(zip(cases, waiting, strict=True)):
        result = pending.get_result()
        assert result.get_response()["id"] == str(number)
        check_close(read_outputs(result), case.find_answer())


def test_faults_among_many_harm_no_other(http: Any, connect: Connect) -> None:
    client, cases, fault = connect(concurrency=16), draw_many(16), FAULTS["wrong-shape"]
    waiting = []
    for case in cases:
        waiting.append(client.async_infer(MODEL, **write_request(http, case, BINARY)))
        waiting.append(client.async_infer(MODEL, **write_request(http, fault, BINARY)))
    for case, good, bad in zip(cases, waiting[::2], waiting[1::2], strict=True):
        check_close(read_outputs(good.get_result()), case.find_answer())
        with pytest.raises(http.InferenceServerException) as caught:
            bad.get_result()
        assert caught.value.message() == fault.text


@CODING
def test_both_ways_compressed(http: Any, connect: Connect, coding: str) -> None:
    client, cases = connect(concurrency=4), draw_many(4)
    waiting = [
        client.async_infer(
            MODEL,
            **write_request(http, case, BINARY),
            request_compression_algorithm=coding,
            response_compression_algorithm=coding,
        )
        for case in cases
    ]
    for case, pending in zip(cases, waiting, strict=True):
        check_close(read_outputs(pending.get_result()), case.find_answer())


@LARGE_FORM
def test_large_tensors(http: Any, connect: Connect, form: str) -> None:
    client, case = connect(concurrency=2), LARGE[form]
    waiting = [
        client.async_infer(MODEL, **write_request(http, case, FORMS[form])) for _ in range(2)
    ]
    for pending in waiting:
        check_close(read_outputs(pending.get_result()), case.find_answer())
