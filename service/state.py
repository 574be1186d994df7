"""Everything one application holds; made once, passed on, no globals."""

import asyncio
import importlib.metadata
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

from service.engine.machine import count_cores
from service.engine.model import Model
from service.engine.repository import Loader, Repository, find_versions
from service.engine.scheduler import Scheduler
from service.engine.sizes import Limits
from service.errors import NotFoundError, StartError, UnavailableError
from service.metrics import Metrics
from service.settings import Settings

Result = TypeVar("Result")
Phase = Literal["starting", "ready", "failed", "stopping"]

# Below this size a hop to a thread costs more than it saves the event loop.
OFFLOAD_BYTES = 65536

log = logging.getLogger("limelight")


class State:
    """Settings, models, threads and metrics of one application.

    Attributes:
        settings: of the process.
        version: of the server.
        repository: the models that are served.
        scheduler: the threads that compute.
        metrics: of the application.
        phase: where the application is in its life.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.version = importlib.metadata.version("limelight")
        self.repository = Repository(settings.default_model)
        self.scheduler = Scheduler(
            settings.inference_threads or count_cores(),
            settings.max_queue_requests,
            settings.max_queue_bytes,
        )
        self.metrics = Metrics(self.version)
        self.phase: Phase = "starting"
        self._decoders = ThreadPoolExecutor(count_cores(), "decode")

    def load_models(self) -> None:
        """Load every model of the settings, then be ready; blocks.

        Raises:
            StartError: if one is not whole, or cannot run where the settings say.
        """
        settings = self.settings
        limits = Limits(
            settings.max_batch_size,
            settings.max_tokens,
            settings.max_score_bytes,
            settings.max_output_bytes,
        )
        loader = Loader(settings.provider, settings.intra_op_threads, limits)
        for directory in find_versions(settings.models, demo=settings.demo):
            model = loader.load(directory)
            self.repository.add(model)
            self.metrics.count_model(model)
            log.info("model %s/%s is loaded on %s", model.name, model.version, model.provider)
        if settings.default_model is not None:
            self._check_default()

    def _check_default(self) -> None:
        try:
            self.repository.get_default()
        except NotFoundError as error:
            raise StartError(f"LIMELIGHT_DEFAULT_MODEL: {error}") from None

    def check_ready(self) -> None:
        """Refuse work before the models are loaded and while the server stops.

        Raises:
            UnavailableError: saying which of the two.
        """
        if self.phase != "ready":
            raise UnavailableError(f"the server is not ready: {self.phase}; try again later")

    def find_model(self, name: str, version: str | None = None) -> Model:
        """One version of a model that is served; the highest unless `version` is given.

        Raises:
            NotFoundError: if there is no such model or version.
            UnavailableError: if the server is not ready.
        """
        self.check_ready()
        return self.repository.get(name, version)

    async def offload(self, work: Callable[[], Result], size_bytes: int) -> Result:
        """Call `work`, on a thread if it has many bytes to look at."""
        if size_bytes < OFFLOAD_BYTES:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._decoders, work)

    def stop(self) -> None:
        """Take no more work; what was taken is finished."""
        self.phase = "stopping"

    def close(self) -> None:
        """Finish what waits and end the threads; blocks."""
        self.stop()
        self.scheduler.close()
        self._decoders.shutdown()
