"""The server is made as the settings want it."""

import pytest

from service.app import create_app
from service.http.connection import Connection
from service.http.metrics_port import MetricsPort
from service.routes.express import Express
from service.serving import make_server, read_bounds
from service.settings import Settings


def test_the_bounds_of_connections_are_those_of_the_settings(settings: Settings) -> None:
    changes = {
        "max_connections": 7,
        "header_timeout_s": 8,
        "answer_timeout_s": 9,
        "max_request_bytes": 10,
    }
    bounds = read_bounds(settings.model_copy(update=changes))
    assert bounds.max_connections == 7
    assert bounds.header_timeout_s == 8
    assert bounds.answer_timeout_s == 9
    assert bounds.drain_bytes == 10


def test_the_times_are_those_of_the_settings(settings: Settings) -> None:
    changed = settings.model_copy(update={"keep_alive_timeout_s": 11, "shutdown_timeout_s": 12})
    config = make_server(create_app(changed), changed).config
    assert config.timeout_keep_alive == 11
    assert config.timeout_graceful_shutdown == 12
    assert config.http.func is Connection  # type: ignore[union-attr] # a partial of it


@pytest.mark.parametrize(("metrics_port", "front"), [(None, Express), (9100, MetricsPort)])
def test_what_connections_ask_answers_at_once_too(
    settings: Settings, metrics_port: int | None, front: type
) -> None:
    config = make_server(create_app(settings), settings, metrics_port).config
    assert isinstance(config.app, front)
    answerer = config.http.keywords["answerer"]  # type: ignore[union-attr]
    assert answerer is getattr(config.app, "prompt", config.app)
