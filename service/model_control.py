"""Which changes of the models a server takes, by LIMELIGHT_MODEL_CONTROL, and when."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from service.engine.control import Control
from service.engine.directories import find_models
from service.engine.loader import Loader
from service.engine.model_index import IndexEntry
from service.errors import NotOfferedError, StartError, UnavailableError
from service.settings import Settings

Result = TypeVar("Result")

MAX_WAITING: Final = 16
CURES: Final = {
    "none": "loads models at start alone; start the server with explicit",
    "poll": (
        "follows the directory of models: put the model there or take it away, or start the server "
        "with explicit"
    ),
}


class ModelControl:
    """Loads and unloads models on a thread of its own, one change after the other.

    Inference and health go on meanwhile: reading, hashing and opening a model may take seconds.
    """

    def __init__(self, settings: Settings, control: Control, loader: Loader) -> None:
        self._settings = settings
        self._control = control
        self._loader = loader
        self._thread = ThreadPoolExecutor(1, "control")
        self._waiting = 0

    def start(self) -> None:
        """Load the models of the start; blocks.

        Raises:
            StartError: if onnxruntime does not run as the settings say or, without control, if a
                model fails.
        """
        self._loader.start()
        mode, names = self._settings.model_control, self._settings.load_models
        if mode == "poll":
            self._control.scan()
        elif mode == "explicit":
            self._control.load_all({"*": None, "-": []}.get(names, names.split(",")))
        else:
            self._load_strictly()

    def _load_strictly(self) -> None:
        survey = find_models(self._settings.models, demo=self._settings.demo)
        found = [directory for versions in survey.versions.values() for directory in versions]
        most = self._settings.max_models
        if len(found) > most:
            raise StartError(
                f"LIMELIGHT_MODELS holds {len(found)} versions of models, expected at most {most} "
                "(LIMELIGHT_MAX_MODELS)"
            )
        models = []
        for directory in found:
            if self._control.is_stopping:
                return
            models.append(self._loader.load(directory, survey.root))
        for model in models:
            self._control.serve(model)

    async def load(self, name: str) -> None:
        """Load a model, or load it again.

        Raises:
            NotOfferedError: unless the settings say explicit, and one worker.
            ServiceError: if the model fails, or is not there.
        """
        await self._change(partial(self._control.load, name))

    async def unload(self, name: str) -> None:
        """Unload a model.

        Raises:
            NotOfferedError: unless the settings say explicit, and one worker.
            NotFoundError: if there is no such model.
        """
        await self._change(partial(self._control.unload, name))

    async def list_entries(self) -> list[IndexEntry]:
        """The states of all versions that are known."""
        if self._settings.model_control != "explicit":
            return self._control.index.list_all()
        return await asyncio.to_thread(self._control.list_entries)

    def find_fault(self, name: str, version: str | None) -> str | None:
        """Why a model that is known does not serve; nothing where it is not known."""
        for entry in self._control.index.list_of(name):
            if version in (None, entry.version):
                return f"it is {entry.state}" + (f", {entry.reason}" if entry.reason else "")
        return None

    async def scan(self) -> None:
        """Serve what the directory of models holds by now."""
        await self._run(self._control.scan)

    def stop(self) -> None:
        """Begin no further change."""
        self._control.stop()

    def close(self) -> None:
        """End the thread, with the change that it makes; blocks."""
        self.stop()
        self._thread.shutdown(cancel_futures=True)

    async def _change(self, change: Callable[[], None]) -> None:
        mode, workers = self._settings.model_control, self._settings.workers
        if workers > 1:
            raise NotOfferedError(
                f"models cannot be loaded or unloaded on request: LIMELIGHT_WORKERS is {workers}, "
                "and a request reaches one worker alone; set LIMELIGHT_MODEL_CONTROL to poll, so "
                "that each follows the directory of models, or start the server with one worker"
            )
        if mode != "explicit":
            raise NotOfferedError(
                f"models cannot be loaded or unloaded on request: LIMELIGHT_MODEL_CONTROL is "
                f"{mode}, which {CURES[mode]}"
            )
        if self._waiting >= MAX_WAITING:
            raise UnavailableError(
                f"{self._waiting} changes of models are waiting already, expected fewer than "
                f"{MAX_WAITING}; try again later"
            )
        self._waiting += 1
        try:
            await self._run(change)
        finally:
            self._waiting -= 1

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
