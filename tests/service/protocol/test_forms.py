"""Which of its three forms a body has, and which its answer gets."""

import io
from contextlib import suppress
from typing import get_args

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidRequestError, UnsupportedMediaError
from service.protocol.forms import MEDIA_TYPES, Form, choose_answer_form, choose_request_form

ALL = "application/json, application/x-npz, application/x-safetensors"
SILENT = ["", "application/octet-stream", "application/x-www-form-urlencoded"]


def write_npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, query=np.zeros((2, 6)))
    return stream.getvalue()


BODIES: dict[Form, bytes] = {
    "json": b'{"query": [[1, 2]]}',
    "npz": write_npz(),
    "safetensors": safetensors.numpy.save({"query": np.zeros((2, 6))}),
}


@pytest.mark.parametrize("form", get_args(Form))
@pytest.mark.parametrize("suffix", ["", "; charset=utf-8", " ;x=y"])
def test_the_media_type_decides(form: Form, suffix: str) -> None:
    assert choose_request_form(MEDIA_TYPES[form].upper() + suffix, b"anything") == form


@pytest.mark.parametrize("form", get_args(Form))
@pytest.mark.parametrize("content_type", SILENT)
def test_clients_that_name_no_form_are_understood_by_the_first_bytes(
    form: Form, content_type: str
) -> None:
    assert choose_request_form(content_type, BODIES[form]) == form


@given(st.sampled_from(SILENT), st.binary(max_size=12))
def test_any_bytes_have_a_form(content_type: str, body: bytes) -> None:
    assert choose_request_form(content_type, body) in MEDIA_TYPES


@given(st.text(' \t\r\n{["0123456789abc', max_size=12))
def test_json_is_never_taken_for_anything_else(text: str) -> None:
    assert choose_request_form("", text.encode()) == "json"


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml; q=1", "multipart/form-data"]
)
def test_other_media_types_are_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaError) as caught:
        choose_request_form(content_type, b"{}")
    shown = content_type.partition(";")[0]
    assert str(caught.value) == f'Content-Type is "{shown}", expected one of {ALL}'


@pytest.mark.parametrize("wish", get_args(Form))
def test_a_wish_goes_before_the_accept_header(wish: Form) -> None:
    assert choose_answer_form(wish, "application/json", "npz") == wish


def test_another_wish_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        choose_answer_form("xml", "", "json")
    assert str(caught.value) == (
        "parameter 'format' is \"xml\", expected one of json, npz, safetensors"
    )


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "npz"),
        ("*/*", "npz"),
        ("application/*", "npz"),
        ("application/json", "json"),
        ("Application/X-Safetensors", "safetensors"),
        ("application/json, application/x-safetensors", "json"),
        ("application/json;q=0.5, application/x-safetensors", "safetensors"),
        ("application/json;q=0.5, application/x-safetensors;q=0.25", "json"),
        ("application/json;q=0, */*;q=0.1", "npz"),
        ("text/html, application/json;q=0.9, */*;q=0.8", "json"),
        ("text/html, */*;q=0.8, application/json;q=0.7", "npz"),
        ("application/json; charset=utf-8; q=0.4, application/x-safetensors; q=0.6", "safetensors"),
        (" , application/json", "json"),
    ],
)
def test_the_accept_header_decides_by_its_q_values(accept: str, form: Form) -> None:
    assert choose_answer_form(None, accept, "npz") == form


def test_a_refused_form_is_not_brought_back_by_a_wider_range() -> None:
    assert choose_answer_form(None, "application/json;q=0, */*", "json") == "npz"


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "*/*;q=0.000", "json"])
def test_a_header_that_accepts_no_form_is_refused(accept: str) -> None:
    with pytest.raises(UnsupportedMediaError) as caught:
        choose_answer_form(None, accept, "json")
    assert str(caught.value) == f'Accept is "{accept}", expected one of {ALL} or */*'


@given(st.text(), st.sampled_from(get_args(Form)))
def test_any_accept_header_gives_a_form_or_is_refused(accept: str, request_form: Form) -> None:
    with suppress(UnsupportedMediaError):
        assert choose_answer_form(None, accept, request_form) in MEDIA_TYPES
