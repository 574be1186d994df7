"""The server that an application runs in, as the settings want it."""

from collections.abc import Callable
from functools import partial

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from service.http.bounds import ConnectionBounds
from service.http.company import Company
from service.http.connection import Connection
from service.http.familiar import Heads
from service.http.metrics_port import MetricsPort
from service.http.prompting import Answerer
from service.http.server import Server
from service.http.sweeper import Sweeper
from service.routes.express import Express
from service.settings import Settings
from service.state import State


def make_server(
    app: FastAPI,
    settings: Settings,
    metrics_port: int | None = None,
    make: Callable[..., Server] = Server,
) -> Server:
    """A server that has not begun to listen.

    Args:
        app: what it serves; its state is told when to stop.
        settings: of the process.
        metrics_port: where there is one of its own.
        make: the server.
    """
    state: State = app.state.service
    served, answerer = put_in_front(app, metrics_port)
    bounds, traffic = read_bounds(settings), state.metrics.traffic
    connect = partial(
        Connection,
        bounds=bounds,
        on_departure=traffic.count_stage,
        on_cut=traffic.count_cut,
        answerer=answerer,
        company=Company(),
        heads=Heads(),
    )
    config = uvicorn.Config(
        served,
        loop="uvloop",
        http=connect,  # type: ignore[arg-type] # uvicorn only calls it
        timeout_keep_alive=settings.keep_alive_timeout_s,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Nothing asks for the address or the scheme of a client.
        proxy_headers=False,
        timeout_graceful_shutdown=settings.shutdown_timeout_s,
    )
    return make(
        config,
        on_stop=state.stop,
        on_drain=state.drain,
        drain_delay_ms=settings.drain_delay_ms,
        sweeper=partial(Sweeper, bounds=bounds, on_cut=traffic.count_cut),
    )


def put_in_front(app: FastAPI, metrics_port: int | None) -> tuple[ASGIApp, Answerer]:
    """What connections ask, and who may answer them at once.

    Args:
        app: behind it.
        metrics_port: where there is one of its own.
    """
    express: Express = app.state.express
    if metrics_port is None:
        return express, express.prompt
    both = MetricsPort(express, metrics_port, express.prompt)
    return both, both


def read_bounds(settings: Settings) -> ConnectionBounds:
    """What the settings say of connections."""
    return ConnectionBounds(
        max_connections=settings.max_connections,
        header_timeout_s=settings.header_timeout_s,
        answer_timeout_s=settings.answer_timeout_s,
        drain_bytes=settings.max_request_bytes,
    )
