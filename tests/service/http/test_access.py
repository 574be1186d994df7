"""Which requests need no key, and which need an administrator's."""

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.http.access import Access, Need

OPEN = [
    "/v2/health/live", "/v2/health/ready", "", "/", "/docs", "/docs/start.js",
    "/docs/assets/swagger-ui.css", "/page/style.css", "/page/parts/heat-map.js",
]  # fmt: skip
INFER_READS = [
    "/v2", "/v2/", "/v2/models", "/v2/models/demo", "/v2/models/demo/ready",
    "/v2/models/demo/config", "/v2/models/demo/versions/1/ready",
    "/v2/models/demo/versions/1/stats", "/v2/models/stats",
    "/v2/trace/setting", "/v2/logging", "/v2/systemsharedmemory/status", "/metrics",
    "/openapi.json", "/nothing",
]  # fmt: skip
INFER_POSTS = [
    "/v1/attention", "/v2/models/demo/infer", "/v2/models/demo/versions/1/infer",
    "/v2/repository/index",
]  # fmt: skip
ADMIN_POSTS = [
    "/v2/repository/models/demo/load", "/v2/repository/models/demo/unload",
    "/v2/repository/ours/models/demo/load", "/v2/trace/setting", "/v2/models/demo/trace/setting",
    "/v2/logging", "/v2/systemsharedmemory/region/r/register", "/v2/cudasharedmemory/unregister",
    "/v2/health/live", "/", "/metrics", "/nothing", "/v1/attention/", "/v2/models/a/b/infer",
]  # fmt: skip
# What resembles an open path, and is another one to the router.
LOOKALIKES = [
    "//", "//v2/health/live", "/v2//health/live", "/v2/health/live/", "/V2/HEALTH/LIVE",
    "/v2/health/live;x", "/v2/health/live\0", "/v2/health/live\n", "/v2/health/live?",
    "/v2/health/../models", "/v2/health/live/../../models", "/v2/health/livex", "v2/health/live",
    "/x/v2/health/live", "/v2/health/live%00", "/docs/", "/docs/../metrics", "/docs/start.js/",
    "/docs/assets/", "/docs/assets/../../metrics", "/docs/assets/..", "/docs/assets//etc/passwd",
    "/page", "/page/", "/page/../metrics", "/page/..", "/page/.env", "/page/x/../../metrics",
    "/page/./style.css", "/page/style.css/", "/page/%2e%2e/metrics", "/page/..\\metrics",
    "/page\n/style.css", "/page/st yle.css", "/metrics", "/metrics/", "/openapi.json",
]  # fmt: skip


def ask(method: str, path: str) -> Need:
    """What a request needs with the settings as they are."""
    return Access().find_need(method, path)


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_health_and_files_that_are_the_same_everywhere_are_open(method: str, path: str) -> None:
    assert ask(method, path) == "nothing"


@pytest.mark.parametrize("path", [*INFER_READS, *LOOKALIKES])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_anything_else_needs_a_key(method: str, path: str) -> None:
    assert ask(method, path) == "infer"


@pytest.mark.parametrize("path", INFER_POSTS)
def test_inference_needs_a_key(path: str) -> None:
    assert ask("POST", path) == "infer"


@pytest.mark.parametrize("path", ADMIN_POSTS)
def test_whatever_changes_something_needs_an_administrator(path: str) -> None:
    assert ask("POST", path) == "admin"


@pytest.mark.parametrize("path", [*OPEN, *INFER_READS, *INFER_POSTS, *ADMIN_POSTS])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "get", "FOO"])
def test_so_does_every_method_that_nobody_thought_of(method: str, path: str) -> None:
    assert ask(method, path) == "admin"


def test_the_metrics_may_be_opened_and_nothing_else_with_them() -> None:
    access = Access(metrics_without_key=True)
    assert access.find_need("GET", "/metrics") == "nothing"
    assert access.find_need("POST", "/metrics") == "admin"
    for path in ("/metrics/", "//metrics", "/v2/metrics", "/METRICS", "/v2/models"):
        assert access.find_need("GET", path) == "infer"


PARTS = st.sampled_from(["v2", "health", "live", "docs", "page", "..", ".", "", "a.css"])


@given(st.text() | st.lists(PARTS | st.text(max_size=3), max_size=6).map("/".join))
def test_a_path_that_is_open_has_no_other_reading(text: str) -> None:
    path = f"/{text}"
    if ask("GET", path) == "nothing" and path not in OPEN:
        assert path.startswith(("/page/", "/docs/assets/"))
        assert posixpath.normpath(path) == path
        assert path.isascii()
