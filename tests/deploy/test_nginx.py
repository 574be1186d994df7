"""nginx itself with our configuration: TLS, and a server below a prefix."""

import re
import ssl
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.deploy.nginx import PREFIX, Nginx, start_nginx
from tests.integration.demo import H, check_close, draw_bias, draw_tokens, expect

pytestmark = pytest.mark.nginx

TIMEOUT_S: Final = 60
MIB: Final = 2**20


@pytest.fixture(scope="module", name="nginx")
def serve_behind_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """An nginx before a server."""
    with start_nginx(tmp_path_factory.mktemp("nginx")) as nginx:
        yield nginx


@pytest.fixture(scope="module", name="proxy")
def connect(nginx: Nginx) -> Iterator[httpx.Client]:
    """A client of nginx that trusts its certificate, and takes no other."""
    context = ssl.create_default_context(cafile=str(nginx.certificate))
    with httpx.Client(base_url=nginx.url, verify=context, timeout=TIMEOUT_S) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_and_everything_that_it_loads_come_through(proxy: httpx.Client, path: str) -> None:
    page = proxy.get(f"{PREFIX}{path}")
    assert page.status_code == 200
    assert "Strict-Transport-Security" in page.headers
    links = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"'#]+)["']""", page.text)
    assert links
    for link in links:
        address = page.url.join(link)
        assert address.path.startswith(f"{PREFIX}/"), link
        assert proxy.get(address).status_code == 200, link


def test_the_prefix_without_a_slash_and_plain_http_lead_to_the_page(
    proxy: httpx.Client, nginx: Nginx
) -> None:
    page = proxy.get(f"{PREFIX}?model=demo", follow_redirects=True)
    assert page.url.path == f"{PREFIX}/"
    assert page.url.query == b"model=demo"
    answer = httpx.post(f"{nginx.plain_url}{PREFIX}/v1/attention")
    assert (answer.status_code, answer.headers["Location"]) == (
        308,
        f"https://localhost{PREFIX}/v1/attention",
    )


def test_nothing_is_served_beside_the_prefix(proxy: httpx.Client) -> None:
    assert proxy.get("/v2/health/ready").status_code == 404


def test_what_the_docs_try_out_is_answered_as_to_a_browser(proxy: httpx.Client) -> None:
    """A browser on that page says so in these headers, and takes the address from `servers`."""
    (entry,) = proxy.get(f"{PREFIX}/openapi.json").json()["servers"]
    origin = str(proxy.base_url).rstrip("/")
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    body = {"query": [[1, 0, 0, 0, 0, 0]]}
    answer = proxy.post(f"{entry['url']}/v1/attention", json=body, headers=headers)
    assert (answer.status_code, answer.json()["model_name"]) == (200, "demo")
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = proxy.post(f"{entry['url']}/v1/attention", json=body, headers=foreign)
    assert answer.status_code == 403


def test_an_error_of_the_server_arrives_word_for_word(proxy: httpx.Client) -> None:
    answer = proxy.get(f"{PREFIX}/v2/models/other")
    assert answer.status_code == 404
    assert answer.json() == {"error": "model 'other' is not served here; served: demo"}


def test_a_body_beyond_the_bound_is_refused_by_the_server_that_names_it(
    proxy: httpx.Client,
) -> None:
    answer = proxy.post(f"{PREFIX}/v1/attention", content=bytes(65 * MIB))
    assert answer.status_code == 413
    assert "LIMELIGHT_MAX_REQUEST_BYTES" in answer.json()["error"]


@pytest.fixture(name="triton")
def connect_tritonclient(nginx: Nginx) -> Iterator[Any]:
    """tritonclient with a base path, over TLS."""
    import tritonclient.http

    client = tritonclient.http.InferenceServerClient(
        nginx.url.removeprefix("https://") + PREFIX,
        ssl=True,
        ssl_options={"ca_certs": str(nginx.certificate)},
    )
    yield client
    client.close()


def ask(triton: Any, tensors: dict[str, Any], outputs: tuple[str, ...]) -> dict[str, Any]:
    """The outputs that tritonclient gets for tensors it sends as binary."""
    from tritonclient import http

    given = []
    for name, array in tensors.items():
        given.append(http.InferInput(name, list(array.shape), "FP32"))
        given[-1].set_data_from_numpy(array)
    wanted = [http.InferRequestedOutput(name) for name in outputs]
    result = triton.infer("demo", given, outputs=wanted)
    return {name: result.as_numpy(name) for name in outputs}


@pytest.mark.clients
def test_tritonclient_takes_a_base_path_over_tls(triton: Any) -> None:
    assert triton.is_server_ready()
    assert triton.get_model_metadata("demo")["name"] == "demo"
    tensors = draw_tokens()
    check_close(ask(triton, tensors, ("output", "attention_weights")), expect(tensors))


@pytest.mark.clients
def test_twenty_mebibytes_of_binary_tensors_are_answered_right(triton: Any) -> None:
    length = 1325
    query = draw_tokens(1, length)["query"]
    tensors = {"query": query, "bias": draw_bias(1, H, length, length)}
    assert sum(array.nbytes for array in tensors.values()) > 20 * MIB
    check_close(ask(triton, tensors, ("output",)), expect(tensors, weights="none"))
