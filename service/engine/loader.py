"""Versions loaded from their files: checked, opened and warmed up."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from model.contract import FUSED_BIAS
from service.engine.cuda import CudaOptions, describe_device
from service.engine.directories import DEMO
from service.engine.machine import count_cores
from service.engine.model import Model
from service.engine.model_fault import ModelFaultError
from service.engine.native import Native
from service.engine.session import (
    DEFAULT_CUDA,
    Provider,
    Session,
    Width,
    choose_provider,
    load_runtime,
    open_session,
)
from service.engine.sizes import Limits
from service.engine.version_files import VersionFiles, check_version
from service.errors import DeviceMemoryError, ServiceError, StartError

# Any graph shows where onnxruntime runs. One that may be broken must not decide it for all.
PROBE: Final = DEMO / "demo" / "1" / FUSED_BIAS.file


class Loader:
    """Loads versions; onnxruntime is imported, and the provider chosen, with the first one.

    Args:
        wish: where to compute.
        intra_op_threads: cores for one run; 0 gives a run that is alone all, and others one.
        limits: of one request.
        cuda: how CUDA is used, where that is the provider.
        workers: processes that share the cores.

    Attributes:
        device: what the GPU is, in a line; nothing before the start, and on the CPU.
    """

    def __init__(
        self,
        wish: Literal["auto", "cpu", "cuda"],
        intra_op_threads: int,
        limits: Limits,
        cuda: CudaOptions = DEFAULT_CUDA,
        workers: int = 1,
    ) -> None:
        self.device: str | None = None
        self._cuda = cuda
        self._wish = wish
        cores = count_cores(workers)
        self._threads: dict[Width, int] = {"narrow": intra_op_threads or 1, "wide": cores}
        self._may_be_wide = not intra_op_threads and cores > 1
        self._limits = limits
        self._runtime: ModuleType | None = None
        self._provider: Provider | None = None

    def start(self) -> Provider:
        """Import onnxruntime, and choose where all models compute.

        Raises:
            StartError: if it is not installed, or does not run where it was told to.
        """
        if self._runtime is None or self._provider is None:
            self._runtime = load_runtime()
            self._provider = choose_provider(
                self._runtime, PROBE, self._wish, self._threads["narrow"], self._cuda
            )
            if self._provider == "cuda":
                self.device = describe_device(self._cuda)
        return self._provider

    def load(self, directory: Path, root: Path | None = None, *, eager: bool = False) -> Model:
        """Check, open and warm up one version.

        Args:
            directory: of the version; its name is the version, that of its parent the model.
            root: the directory of models, which no link may leave; the model's unless given.
            eager: whether to open every graph at once, as the files may be gone later.

        Raises:
            StartError: if the files are not a whole model, or the provider does not run.
        """
        # Its parent names the model, which "." would not.
        directory = directory.absolute()
        try:
            files = check_version(directory, root.absolute() if root else directory.parent)
        except ModelFaultError as error:
            raise StartError(f"model {directory.parent.name}/{directory.name}: {error}") from None
        return self.open(files, eager=eager)

    def open(self, files: VersionFiles, *, eager: bool = False) -> Model:
        """Open and warm up a version whose files were checked.

        Raises:
            StartError: if onnxruntime cannot open or run it, or the provider does not run.
        """
        provider = self.start()
        open_graph = partial(self._open_graph, files, eager)
        model = Model(
            files.directory,
            files.spec,
            provider,
            partial(open_graph, "narrow"),
            self._limits,
            files.config,
            partial(open_graph, "wide") if self._may_be_wide and provider == "cpu" else None,
            self._cuda,
        )
        try:
            if eager:
                model.open_all()
            model.warm_up()
        except DeviceMemoryError as error:
            raise StartError(f"{files.label}: {error}") from None
        except (StartError, ServiceError):
            raise
        except Exception as error:  # onnxruntime's errors have no class in common
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise StartError(f"{files.label}: its graphs do not run: {reason}") from error
        return model

    def _open_graph(self, files: VersionFiles, eager: bool, width: Width, path: Path) -> Session:
        if self._runtime is None or self._provider is None:
            raise RuntimeError("a graph was opened before its version was loaded")
        # Some graphs are opened long after the version was checked: other weights by then would
        # answer requests for weights with another layer.
        try:
            content, external = files.read_graph(path.name)
        except ModelFaultError as error:
            if eager:
                raise StartError(f"{files.label}: {error}") from None
            raise ServiceError(
                f"the model changed on the disk since it was loaded ({error}); restart the server"
            ) from None
        runtime: Any = MemoryRuntime(self._runtime, content, external)
        threads = self._threads[width]
        return open_session(runtime, path, self._provider, threads, width, self._cuda)


class MemoryRuntime:
    """onnxruntime, made to open a graph from memory, where the files have been checked.

    From the disk onnxruntime maps the weights into its memory and goes on reading them there:
    overwriting the file changed the answers of the session, and truncating it ended the process
    with SIGBUS (both measured with 1.32).
    """

    def __init__(self, runtime: ModuleType, content: bytes, external: Mapping[str, bytes]) -> None:
        self._runtime = runtime
        self._content = content
        self._external = external

    def __getattr__(self, name: str) -> Native:
        return getattr(self._runtime, name)

    def InferenceSession(self, _: Path, options: Native, providers: list[Any]) -> Session:
        """A session of the content instead of the file; onnxruntime copies what it keeps."""
        names, contents = list(self._external), list(self._external.values())
        options.add_external_initializers_from_files_in_memory(
            names, contents, [len(content) for content in contents]
        )
        session: Session = self._runtime.InferenceSession(
            self._content, options, providers=providers
        )
        return session
