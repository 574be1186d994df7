"""Everything one application holds; made once, passed on, no globals."""

import asyncio
import importlib.metadata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeVar

from service.counts import Counts
from service.engine.control import Control
from service.engine.cuda import CudaOptions
from service.engine.loader import Loader
from service.engine.machine import count_cores
from service.engine.memory import free_memory
from service.engine.model import Model
from service.engine.renewal import Renewal
from service.engine.repository import Repository
from service.engine.scheduler import Scheduler
from service.engine.session import load_runtime, make_shrinking_options
from service.engine.sizes import Limits
from service.errors import NotFoundError, StartError, UnavailableError
from service.http.holdings import Holdings
from service.metrics import Metrics
from service.model_control import ModelControl
from service.protocol.v2_layout import Layouts
from service.pulse import Pulse
from service.settings import Settings
from service.statistics import Statistics
from service.watchdog import Watchdog

Result = TypeVar("Result")
Phase = Literal["starting", "ready", "failed", "draining", "stopping"]

# Below this size a hop to a thread costs more than it saves the event loop. Text is read, tensors
# are only pointed at, but for masks, of which 1 MiB takes 1 ms at most.
OFFLOAD_TEXT_BYTES: Final = 65536
OFFLOAD_BINARY_BYTES: Final = 2**23
# 4 ms of parsing: nobody waits but a probe of the server's health.
ALONE_TEXT_BYTES: Final = 2**21 + 2**19


class State:
    """Settings, models, threads and metrics of one application.

    Attributes:
        settings: of the process.
        version: of the server.
        repository: the models that are served.
        control: of the changes of what is served.
        loader: of the models.
        scheduler: the threads that compute.
        holdings: bytes of bodies and answers, within their bounds.
        layouts: of requests of the protocol V2.
        statistics: counts of the models that are served.
        metrics: of the application.
        counts: of this process, or of all workers.
        pulse: shows that the models compute.
        watchdog: of the threads.
        phase: where the application is in its life.
        hold: why it is not to be sent requests yet although it takes them; nothing where it is.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.version = importlib.metadata.version("limelight")
        self.repository = Repository(settings.default_model)
        self.scheduler = Scheduler(
            settings.inference_threads or count_cores(settings.workers),
            settings.max_queue_requests,
            settings.max_queue_bytes,
        )
        self.holdings = Holdings(settings)
        self.statistics = Statistics()
        self.layouts = Layouts()
        self.metrics = Metrics(self.version, self.statistics)
        self.counts = Counts(self.metrics, self.statistics)
        self.metrics.traffic.watch_held("body", lambda: self.holdings.bodies.in_use_bytes)
        self.metrics.traffic.watch_held("answer", lambda: self.holdings.answers.in_use_bytes)
        self.loader = self._make_loader()
        self.control = self._make_control()
        self.pulse = Pulse(self.scheduler, self.repository)
        self.watchdog = Watchdog(self.scheduler.find_stuck, settings.stuck_timeout_s)
        self.metrics.traffic.watch_threads(lambda: self.watchdog.stuck)
        self.phase: Phase = "starting"
        self.hold: str | None = None
        self._decoders = ThreadPoolExecutor(count_cores(settings.workers), "decode")

    def _make_loader(self) -> Loader:
        settings = self.settings
        limits = Limits(
            settings.max_batch_size,
            settings.max_tokens,
            settings.max_score_bytes,
            settings.max_output_bytes,
        )
        cuda = CudaOptions(
            settings.cuda_device,
            settings.cuda_tf32,
            settings.cuda_arena_bytes,
            settings.cuda_join_tokens,
            settings.cuda_join_delay_us,
        )
        return Loader(settings.provider, settings.intra_op_threads, limits, cuda, settings.workers)

    def _make_control(self) -> ModelControl:
        settings = self.settings
        control = Control(
            settings.models,
            demo=settings.demo,
            renewal=Renewal(self.loader),
            repository=self.repository,
            on_load=self.metrics.count_model,
            on_unload=self.metrics.forget_model,
            max_models=settings.max_models,
        )
        return ModelControl(settings, control, self.loader)

    def load_models(self) -> None:
        """Load the models of the start, then be ready; blocks.

        Raises:
            StartError: if onnxruntime cannot run where the settings say or, without model control,
                if a model is not whole.
        """
        self.control.start()
        if self.settings.default_model is not None and self.settings.model_control == "none":
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
        if self.phase not in ("ready", "draining"):
            raise UnavailableError(f"the server is not ready: {self.phase}; try again later")

    def check_able(self) -> None:
        """See whether the server should be sent requests: it takes them, and computes.

        Raises:
            UnavailableError: saying why not.
        """
        fault: str | None = self.phase
        if self.phase == "ready":
            fault = self.watchdog.fault or self.pulse.fault or self.hold
        if fault is not None:
            raise UnavailableError(f"the server is not ready: {fault}")

    def find_model(self, name: str, version: str | None = None) -> Model:
        """One version of a model that is served; the highest unless `version` is given.

        Raises:
            NotFoundError: if there is no such model or version.
            UnavailableError: if the server is not ready.
        """
        self.check_ready()
        return self.repository.get(name, version)

    def check_model(self, name: str, version: str | None = None) -> None:
        """See whether a model is served; one that is known and is not may be later.

        Raises:
            NotFoundError: if there is no such model or version.
            UnavailableError: if it is known and does not serve, or the server is not ready.
        """
        try:
            self.find_model(name, version)
            self.check_able()
        except NotFoundError:
            fault = self.control.find_fault(name, version)
            if fault is None:
                raise
            raise UnavailableError(f"model '{name}' is not ready: {fault}") from None

    def is_quick(
        self, size_bytes: int, text_bytes: int | None = None, *, is_alone: bool = False
    ) -> bool:
        """Whether to look at so many bytes takes less time than a switch of threads is worth.

        Args:
            size_bytes: to look at.
            text_bytes: those of them that are read; the others are mostly pointed at. All unless
                given.
            is_alone: whether no request would wait meanwhile.
        """
        most_bytes = ALONE_TEXT_BYTES if is_alone else OFFLOAD_TEXT_BYTES
        text_bytes = size_bytes if text_bytes is None else text_bytes
        return text_bytes < most_bytes and size_bytes < OFFLOAD_BINARY_BYTES

    async def offload(
        self,
        work: Callable[[], Result],
        size_bytes: int,
        text_bytes: int | None = None,
        *,
        is_alone: bool = False,
    ) -> Result:
        """Call `work`, on a thread unless it `is_quick`."""
        if self.is_quick(size_bytes, text_bytes, is_alone=is_alone):
            return work()
        return await self.hand_over(work)

    async def hand_over(self, work: Callable[[], Result]) -> Result:
        """Call `work` on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._decoders, work)

    def free_memory(self) -> None:
        """Give back to the system what is kept for the next request; blocks."""
        shrinking = make_shrinking_options(load_runtime())
        for model in self.repository.models:
            model.give_back(shrinking)
        free_memory()

    def drain(self) -> bool:
        """Be not ready from now on, and take work still; says whether any was taken before."""
        if self.phase != "ready":
            return False
        self.phase = "draining"
        return True

    def stop(self) -> None:
        """Take no more work; what was taken is finished."""
        self.phase = "stopping"
        self.control.stop()

    def close(self) -> None:
        """Finish what waits and end the threads; blocks."""
        self.stop()
        self.control.close()
        self.scheduler.close()
        self._decoders.shutdown()
