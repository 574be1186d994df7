"""Limelight as a deployment of Ray Serve: every replica is a whole server without a listener.

    serve run deploy/ray/laptop.yaml

What ``limelight-serve`` reads from its environment a replica reads from that of its actor. Requests
are joined and queued by the scheduler inside the replica: `@serve.batch` knows no lengths, bytes
or deadlines.
"""

import asyncio

import ray
from fastapi import FastAPI
from ray import serve

from deploy.ray.departure import Departures
from deploy.ray.loopback import keep_to_loopback
from deploy.ray.request_id import SoleRequestId
from deploy.ray.settings import load_settings
from service.app import create_app
from service.engine.memory import use_one_arena
from service.errors import StartError
from service.logs import configure_logging
from service.state import State


@serve.ingress()
class Attention:
    """A replica; Serve's proxies send it requests once its models are loaded.

    Raises:
        SettingsError: if a setting does not fit.
        StartError: if it does not fit a replica.
    """

    def __init__(self) -> None:
        keep_to_loopback()
        use_one_arena()
        cores = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
        self._settings = load_settings(cores)
        configure_logging(self._settings.log_level, self._settings.log_format)
        self._settled = asyncio.Event()
        self._failure: str | None = None

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The application, which Serve starts and, after the last request, stops."""
        app = create_app(self._settings, self._note_ready, self._note_failure)
        self._state: State = app.state.service
        app.add_middleware(Departures, on_departure=self._state.metrics.traffic.count_stage)
        app.add_middleware(SoleRequestId)
        return app

    async def check_health(self) -> None:
        """See whether the replica computes; at its start, wait until it can be known.

        Raises:
            StartError: if the models could not be loaded. Serve then tries another replica.
            UnavailableError: if no inference has succeeded of late. After three times Serve ends
                the replica and starts another.
        """
        await self._settled.wait()
        if self._failure is not None:
            raise StartError(self._failure)
        self._state.check_able()

    def _note_ready(self, _: State) -> None:
        self._settled.set()

    def _note_failure(self, reason: str) -> None:
        self._failure = reason
        self._settled.set()


app = serve.deployment(Attention).bind()
