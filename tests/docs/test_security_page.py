"""SECURITY.md says what the code does, and names a test for what was tried."""

import hashlib
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from service.http.access import INFER, Access
from service.http.security_headers import PAGE as HEADERS
from service.settings import PREFIX, Settings
from tests.docs.markdown import (
    REFERENCE,
    ROOT,
    is_test,
    read_blocks,
    read_section,
    read_table,
)
from tests.integration.server_process import run_line

PAGE: Final = (ROOT / "SECURITY.md").read_text()
TRIED: Final = read_table(PAGE, "fault", "published as")
KEYS: Final = read_section(PAGE, "Keys")


@pytest.mark.parametrize("row", TRIED, ids=lambda row: row[0])
def test_what_was_tried_names_tests_that_exist(row: list[str]) -> None:
    references = REFERENCE.findall(row[3])
    assert references, "names no test"
    for file, name in references:
        assert is_test(f"{file}::{name}"), f"{file} has no {name}"


def test_no_test_is_named_anywhere_else() -> None:
    """Else its name could rot."""
    named = [reference for row in TRIED for reference in REFERENCE.findall(row[3])]
    assert len(named) == PAGE.count(".py") == PAGE.count("::")


def test_ids_of_published_faults_have_their_form() -> None:
    found = [word.strip(",:;.") for word in PAGE.split() if "CVE" in word]
    assert len(found) > 25
    assert all(re.fullmatch(r"CVE-20\d\d-\d{4,6}", word) for word in found)


def test_every_setting_that_is_named_is_one() -> None:
    named = set(re.findall(rf"\b{PREFIX}\w+", PAGE))
    assert named
    assert named <= {PREFIX + name.upper() for name in Settings.model_fields}


def list_paths(text: str) -> list[str]:
    """The paths in a text, with something in place of what varies."""
    found = re.findall(r"`(/[^`]*)`", text)
    return [re.sub(r"\{\w+\}", "x", path.replace("…", "x.js")) for path in found]


def test_the_list_of_what_needs_no_key_is_the_list() -> None:
    lines = re.findall(r"^- .*(?:\n  .*)*", KEYS, re.MULTILINE)
    listed = [path for line in lines for path in list_paths(line)]
    assert len(listed) == 8
    opened = Access(metrics_without_key=True)
    assert [path for path in listed if opened.find_need("GET", path) != "nothing"] == []
    assert [path for path in listed if Access().find_need("GET", path) != "nothing"] == ["/metrics"]


def test_what_infer_may_post_is_what_it_may() -> None:
    listed = list_paths(re.split(r"and `POST` to", KEYS)[1])
    assert len(listed) == 4
    assert all(INFER.fullmatch(path) for path in listed)
    # One alternative of the pattern stands for a model with and without a version.
    assert INFER.pattern.count("|") + 2 == len(listed)


def test_what_is_said_to_need_a_key_does() -> None:
    sentence = re.split(r"\n\n", KEYS)[-2 if KEYS.endswith("\n\n") else -1]
    closed = list_paths(sentence.split("both need a key")[0])
    assert closed == ["/openapi.json", "/v2/models/x/ready"]
    assert {Access().find_need("GET", path) for path in closed} == {"infer"}


def test_the_headers_that_are_named_are_sent() -> None:
    named = set(re.findall(r"`((?:X|Referrer|Cross-Origin)-[\w-]+)`", PAGE)) | {
        "Content-Security-Policy"
    }
    sent = {name.decode() for name, _ in HEADERS} - {"x-content-type-options"}
    assert {name.lower() for name in named} == sent


def test_the_commands_make_a_file_of_keys(tmp_path: Path) -> None:
    lines = [line.partition("#")[0] for line in re.findall(r"^    (.*)$", KEYS, re.MULTILINE)]
    (tmp_path / "file-with-a-key").write_text("a-key-that-you-have\n")
    for line in lines[:2]:
        command = line.replace("limelight-serve", f"{sys.executable} -m service")
        run_line(f"cd {tmp_path} && PYTHONPATH={ROOT} {command}")
    made, given = (tmp_path / "keys").read_text().splitlines()
    assert re.fullmatch(r"admin:[0-9a-f]{64}", made)
    assert given == f"infer:{hashlib.sha256(b'a-key-that-you-have').hexdigest()}"
    assert lines[2].startswith("LIMELIGHT_API_KEYS_FILE=keys ")


def test_the_proxy_leaves_bounds_and_hosts_to_the_server() -> None:
    (text,) = read_blocks(PAGE, "nginx")
    assert "client_max_body_size 0;" in text  # else nginx answers 413 in a form of its own
    assert "proxy_request_buffering off;" in text  # else it would keep a body of any size
    assert "proxy_set_header Host $http_host;" in text  # the page's own requests are of its host
    assert text.count("{") == text.count("}") == 2
