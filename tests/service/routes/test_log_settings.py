"""The settings of the log over HTTP."""

import httpx
import pytest

from service.settings import Settings
from service.state import State

PATH = "/v2/logging"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The settings of a server that logs warnings and errors."""
    return settings.model_copy(update={"log_level": "warning"})


LOG = {
    "log_file": "",
    "log_info": False,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


async def test_they_can_be_read(client: httpx.AsyncClient, state: State) -> None:
    state.phase = "starting"
    answer = await client.get(PATH)
    assert (answer.status_code, answer.json()) == (200, LOG)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"log_info": false, "log_format": null}'])
async def test_an_update_that_changes_nothing_is_answered_with_all(
    client: httpx.AsyncClient, body: bytes
) -> None:
    answer = await client.post(PATH, content=body)
    assert (answer.status_code, answer.json()) == (200, LOG)


async def test_the_level_is_that_of_the_settings(client: httpx.AsyncClient) -> None:
    answer = await client.post(PATH, json={"log_info": True})
    assert answer.status_code == 501
    assert answer.json()["error"].endswith(
        "set LIMELIGHT_LOG_LEVEL to debug, info, warning or error, and restart"
    )


async def test_a_malformed_update_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post(PATH, json={"log_info": "no"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "setting 'log_info' is \"no\", expected true or false"}
