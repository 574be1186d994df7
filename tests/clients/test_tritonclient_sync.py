"""tritonclient's client that waits for its answers, unmodified."""

import re
from typing import Any

import numpy as np
import pytest

from tests.clients.cases import (
    BINARY,
    CODING,
    EACH_CASE,
    EACH_FAULT,
    EACH_FORM,
    EXPIRY_TRIES,
    FAULTS,
    FORMS,
    JSON_AND_BINARY,
    LARGE,
    LARGE_FORM,
    PLAIN,
    TENSORS,
    Case,
    Fault,
    Form,
)
from tests.clients.conftest import Connect
from tests.clients.readings import READINGS, REFUSALS, Call, Refusal, describe, find_growth
from tests.clients.triton_tensors import read_outputs, write_inputs, write_request
from tests.integration.demo import MODEL, B, check_close, check_same, draw_tokens
from tests.integration.doors import OUTPUTS

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("call", READINGS, ids=describe)
def test_what_a_server_says_of_itself(triton: Any, call: Call) -> None:
    call.check(getattr(triton, call.method)(*call.arguments))


@pytest.mark.parametrize("refusal", REFUSALS, ids=describe)
def test_what_is_refused_is_refused_in_words(http: Any, triton: Any, refusal: Refusal) -> None:
    with pytest.raises(http.InferenceServerException) as caught:
        getattr(triton, refusal.method)(*refusal.arguments)
    assert refusal.words in caught.value.message()
    assert caught.value.status() == str(refusal.status)


@EACH_FORM
@EACH_CASE
def test_the_values_are_right(http: Any, triton: Any, case: Case, form: Form) -> None:
    result = triton.infer(MODEL, **write_request(http, case, form))
    check_close(read_outputs(result), case.find_answer())


@EACH_CASE
def test_numbers_in_json_are_the_same_bit_for_bit(http: Any, triton: Any, case: Case) -> None:
    answers = [triton.infer(MODEL, **write_request(http, case, form)) for form in FORMS.values()]
    for answer in answers[1:]:
        check_same(read_outputs(answer), read_outputs(answers[0]))


@JSON_AND_BINARY
def test_numbers_that_are_not_finite_come_back_in_binary_only(
    http: Any, triton: Any, form: Form
) -> None:
    """This client writes the bare tokens NaN and Infinity into JSON."""
    query = TENSORS["query"].copy()
    query[1, 2, 3], query[3, 4, 5] = np.nan, np.inf
    case = Case(TENSORS | {"query": query})
    result = triton.infer(MODEL, **write_request(http, case, form | {*OUTPUTS}))
    with np.errstate(invalid="ignore"):
        check_close(read_outputs(result), case.find_answer())
    with pytest.raises(http.InferenceServerException) as caught:
        triton.infer(MODEL, **write_request(http, case, form - {*OUTPUTS}))
    assert caught.value.status() == "400"
    assert "binary" in caught.value.message()


@JSON_AND_BINARY
@EACH_FAULT
def test_the_text_of_an_error_is_shown(http: Any, triton: Any, fault: Fault, form: Form) -> None:
    with pytest.raises(http.InferenceServerException) as caught:
        triton.infer(fault.model, model_version=fault.version, **write_request(http, fault, form))
    assert caught.value.message() == fault.text
    assert caught.value.status() == str(fault.status)


@JSON_AND_BINARY
@pytest.mark.parametrize("answered", [None, "gzip", "deflate"])
@pytest.mark.parametrize("sent", ["gzip", "deflate"])
def test_a_request_may_be_compressed(
    http: Any, triton: Any, form: Form, sent: str, answered: str | None
) -> None:
    result = triton.infer(
        MODEL,
        **write_request(http, PLAIN, form),
        request_compression_algorithm=sent,
        response_compression_algorithm=answered,
    )
    check_close(read_outputs(result), PLAIN.find_answer())


@JSON_AND_BINARY
@CODING
def test_an_answer_is_compressed_on_request(
    http: Any, connect: Connect, form: Form, coding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(draw_tokens(2, 211, 7))
    result = connect(verbose=True).infer(
        MODEL, **write_request(http, case, form), response_compression_algorithm=coding
    )
    assert re.search(f"'content-encoding': '{coding}'", capsys.readouterr().out, re.IGNORECASE)
    check_close(read_outputs(result), case.find_answer())


@CODING
def test_an_error_is_never_compressed(http: Any, triton: Any, coding: str) -> None:
    fault = FAULTS["wrong-shape"]
    with pytest.raises(http.InferenceServerException) as caught:
        triton.infer(
            MODEL, **write_request(http, fault, BINARY), response_compression_algorithm=coding
        )
    assert caught.value.message() == fault.text


def test_the_id_and_the_version_come_back(http: Any, triton: Any) -> None:
    request = write_request(http, PLAIN, BINARY)
    answer = triton.infer(MODEL, **request, request_id="7/é", model_version="1").get_response()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("7/é", MODEL, "1")
    assert "id" not in triton.infer(MODEL, **request).get_response()


def test_a_long_timeout_a_priority_and_unknown_parameters_change_nothing(
    http: Any, triton: Any
) -> None:
    request = {
        **write_request(http, PLAIN, BINARY),
        "parameters": {"tag": "a", "ratio": 0.5, "count": 3, "flag": True},
    }
    for priority in (0, 1, 2):
        result = triton.infer(MODEL, **request, timeout=60_000_000, priority=priority)
        check_close(read_outputs(result), PLAIN.find_answer())


def test_a_timeout_that_passed_in_the_queue_is_an_error(http: Any, triton: Any) -> None:
    request = write_request(http, PLAIN, BINARY)
    with pytest.raises(http.InferenceServerException) as caught:
        [triton.infer(MODEL, **request, timeout=1) for _ in range(EXPIRY_TRIES)]
    assert caught.value.status() == "503"
    assert "timeout" in caught.value.message()


def test_shared_memory_and_classes_are_refused_in_words(http: Any, triton: Any) -> None:
    (shared,) = write_inputs(http, {"query": TENSORS["query"]}, BINARY)
    shared.set_shared_memory("region", TENSORS["query"].nbytes)
    inputs = write_inputs(http, TENSORS, BINARY)
    classes = [http.InferRequestedOutput("output", class_count=2)]
    for words, request in {
        "shared memory": {"inputs": [shared]},
        "classification": {"inputs": inputs, "outputs": classes},
    }.items():
        with pytest.raises(http.InferenceServerException) as caught:
            triton.infer(MODEL, **request)
        assert words in caught.value.message().replace("_", " ")
        assert caught.value.status() == "501"


@LARGE_FORM
def test_large_tensors(http: Any, triton: Any, form: str) -> None:
    case = LARGE[form]
    result = triton.infer(MODEL, **write_request(http, case, FORMS[form]))
    check_close(read_outputs(result), case.find_answer())


def test_the_statistics_move(http: Any, triton: Any) -> None:
    before = triton.get_inference_statistics(MODEL)
    for _ in range(3):
        triton.infer(MODEL, **write_request(http, PLAIN, BINARY))
    growth = find_growth(before, triton.get_inference_statistics(MODEL))
    assert growth == {
        "inference_count": 3 * B,
        "execution_count": 3,
        "success": 3,
        "queue": 3,
        "compute_input": 3,
        "compute_infer": 3,
        "compute_output": 3,
        "fail": 0,
    }
