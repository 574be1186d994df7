"""The page is small, whole, and needs nobody but this server."""

import re
from pathlib import Path

import httpx
import pytest

import service

PAGE = Path(service.__file__).parent / "page"
INDEX = (PAGE / "index.html").read_text()
MODULES = sorted(PAGE.rglob("*.js"))
STYLE = (PAGE / "style.css").read_text()
MOST_BYTES = 200_000
MOST_LINES = 300


def test_all_of_it_is_small() -> None:
    assert sum(file.stat().st_size for file in PAGE.rglob("*") if file.is_file()) < MOST_BYTES


@pytest.mark.parametrize("module", MODULES, ids=lambda file: str(file.relative_to(PAGE)))
def test_a_module_is_short_says_what_it_is_and_imports_what_there_is(module: Path) -> None:
    text = module.read_text()
    assert text.startswith("/**")
    assert len(text.splitlines()) < MOST_LINES
    for address in re.findall(r'(?:from |import\()"([^"]+)"', text):
        assert address.startswith("."), address
        assert (module.parent / address).resolve() in MODULES, address


def test_every_module_is_used() -> None:
    used = {PAGE / "start.js"}
    for module in MODULES:
        for address in re.findall(r'from "([^"]+)"', module.read_text()):
            used.add((module.parent / address).resolve())
    assert sorted(used) == MODULES


def test_nothing_is_inline_or_from_elsewhere() -> None:
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", INDEX)
    assert not re.search(r"(?:src|href)=\"(?:https?:|//|/)", INDEX)
    assert not re.search(r"url\(|@import", STYLE)


def test_every_element_that_a_module_looks_for_is_there() -> None:
    there = re.findall(r'\sid="([^"]+)"', INDEX)
    assert len(there) == len(set(there))
    wanted = {
        name for file in MODULES for name in re.findall(r'find\("([^"]+)"\)', file.read_text())
    }
    assert wanted <= set(there)


def test_a_browser_that_has_the_page_gets_304(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.text == INDEX
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
