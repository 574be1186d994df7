"""Shows that the server still computes: ready means able."""

import asyncio
import itertools
import logging
import time
from typing import Final

from service.engine.model import Model
from service.engine.repository import Repository
from service.engine.scheduler import Scheduler
from service.errors import ServiceError
from service.inference import Schedule

PERIOD_S: Final = 5.0
PATIENCE_S: Final = 15.0
FIRST: Final = Schedule(priority=1)  # before all requests that ask for no priority

log = logging.getLogger("limelight")


class Pulse:
    """Computes a tiny request, of one model after the other, where no client had an answer of late.

    It goes through the scheduler, so that all that clients depend on is tried, and through no
    metrics. There is one at a time: where threads do not come back, no more of them are lost.

    Args:
        scheduler: that computes.
        repository: its models are tried.
        period_s: between two looks.
        patience_s: how long there may be no success before the server counts as not able.

    Attributes:
        probe: an inference of its own that has not ended.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        repository: Repository,
        period_s: float = PERIOD_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._scheduler = scheduler
        self._repository = repository
        self._period_s = period_s
        self._patience_s = patience_s
        self._turns = itertools.count()
        self._seen = 0
        self._succeeded_s = time.monotonic()
        self._failure: str | None = None
        self.probe: asyncio.Task[None] | None = None
        self._probed_s = 0.0
        self._beating: asyncio.Task[None] | None = None

    @property
    def fault(self) -> str | None:
        """Why the server should get no requests; none where it computes or was not tried."""
        now_s = time.monotonic()
        silent_s = now_s - self._succeeded_s
        reason = self._failure
        if self.probe is not None and now_s - self._probed_s > self._period_s:
            reason = f"one that began {now_s - self._probed_s:.0f} s ago has not ended"
        if silent_s <= self._patience_s or reason is None:
            return None
        return f"no inference has succeeded for {silent_s:.0f} s: {reason}"

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._beating = asyncio.create_task(self._run())

    def stop(self) -> None:
        """Compute no more."""
        for task in (self._beating, self.probe):
            if task is not None:
                task.cancel()

    def look(self) -> None:
        """See whether requests succeeded since the last look; try one if none did."""
        models, succeeded = self._repository.models, self._scheduler.succeeded
        if succeeded != self._seen or not models:
            self._seen = succeeded
            self._succeed()
        elif self.probe is None:
            self._probed_s = time.monotonic()
            model = models[next(self._turns) % len(models)]
            self.probe = asyncio.create_task(self._try(model))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            self.look()

    async def _try(self, model: Model) -> None:
        try:
            timed = await self._scheduler.submit(model.lane, model.make_probe(), FIRST)
            model.check_probe(timed.result)
        except Exception as error:  # onnxruntime's errors have no class in common
            self._fail(model, error)
        else:
            self._seen = self._scheduler.succeeded
            self._succeed()
        finally:
            self.probe = None

    def _succeed(self) -> None:
        self._succeeded_s = time.monotonic()
        if self._failure is not None:
            self._failure = None
            log.warning("inference succeeds again")

    def _fail(self, model: Model, error: Exception) -> None:
        is_ours = isinstance(error, ServiceError)  # then its text is for clients
        if self._failure is None:
            text = "model %s/%s: an inference of the server's own failed: %s"
            fault = None if is_ours else error
            log.error(text, model.name, model.version, error, exc_info=fault)
        self._failure = str(error) if is_ours else "the last one failed; the log says why"
