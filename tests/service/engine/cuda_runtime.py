"""Stands for onnxruntime on CUDA: says that it is, notes what crosses, and computes on the CPU.

What it computes is right or wrong as on the CPU; that a GPU does the same is not shown by it.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"


@dataclass
class Crossing:
    """Bytes between the host and the GPU.

    Attributes:
        names: of the inputs or outputs, one where an array crosses, all that it stands for.
        size_bytes: of it.
        way: what carries it.
    """

    names: list[str]
    size_bytes: int
    way: str


class CudaBinding:
    """A binding of the CPU's session that notes what is bound."""

    def __init__(self, binding: Any, session: "CudaSession") -> None:
        self.real = binding
        self._session = session
        self._put: dict[int, Crossing] = {}

    def bind_cpu_input(self, name: str, array: NDArray[Any]) -> None:
        assert array.flags.c_contiguous, f"{name} would be copied once more"
        self._session.inputs.append(Crossing([name], array.nbytes, "bind_cpu_input"))
        self._session.arrays.append(array)
        self.real.bind_cpu_input(name, array)

    def bind_ortvalue_input(self, name: str, value: Any) -> None:
        crossing = self._put.get(id(value))
        if crossing is None:
            crossing = self._put[id(value)] = Crossing([], value.tensor_size_in_bytes(), "OrtValue")
            self._session.inputs.append(crossing)
        crossing.names.append(name)
        self.real.bind_ortvalue_input(name, value)

    def bind_output(self, name: str, device: str, number: int, *rest: Any) -> None:
        assert (device, number) == ("cpu", 0), "the answer is wanted on the host"
        _, shape, _ = rest
        self._session.outputs.append(Crossing([name], 4 * int(np.prod(shape)), "bind_output"))
        self.real.bind_output(name, device, number, *rest)


@dataclass
class CudaSession:
    """A session of the CPU that says that it is CUDA's.

    Attributes:
        real: of the CPU.
        providers: what it says.
        options: of the provider.
        inputs: what has crossed to it.
        outputs: what has come back.
        arrays: that were bound.
        left: operators that it says to have left to the CPU.
        fault: what a run raises.
    """

    real: Any
    providers: list[str]
    options: dict[str, str]
    inputs: list[Crossing] = field(default_factory=list)
    outputs: list[Crossing] = field(default_factory=list)
    arrays: list[NDArray[Any]] = field(default_factory=list)
    left: tuple[str, ...] = ("Shape", "Concat")
    fault: Exception | None = None

    def get_providers(self) -> list[str]:
        return self.providers

    def get_inputs(self) -> Any:
        return self.real.get_inputs()

    def get_outputs(self) -> Any:
        return self.real.get_outputs()

    def get_provider_graph_assignment_info(self) -> list[Any]:
        parts = []
        for part in self.real.get_provider_graph_assignment_info():
            nodes = part.get_nodes()
            is_left = any(node.op_type in self.left for node in nodes)
            name = CPU if is_left else CUDA
            parts.append(SimpleNamespace(ep_name=name, get_nodes=lambda nodes=nodes: nodes))
        return parts

    def io_binding(self) -> CudaBinding:
        return CudaBinding(self.real.io_binding(), self)

    def run_with_iobinding(self, binding: CudaBinding, run_options: Any = None) -> None:
        if self.fault is not None:
            raise self.fault
        self.real.run_with_iobinding(binding.real, run_options)


@dataclass
class CudaRuntime:
    """The module onnxruntime, of a machine with a GPU.

    Attributes:
        sessions: that were opened.
        values: device and number of each array that was put there by itself.
        left: operators that its sessions say to have left to the CPU.
        says: providers that its sessions say to have.
    """

    sessions: list[CudaSession] = field(default_factory=list)
    values: list[tuple[str, int]] = field(default_factory=list)
    left: tuple[str, ...] = ("Shape", "Concat")
    says: tuple[str, ...] = (CUDA, CPU)
    cuda_version: str = "13.0"
    __version__: str = "1.31.1"
    SessionOptions: Any = onnxruntime.SessionOptions

    @property
    def OrtValue(self) -> Any:
        return SimpleNamespace(ortvalue_from_numpy=self._put)

    def get_available_providers(self) -> list[str]:
        return [CUDA, CPU]

    def InferenceSession(self, content: Any, options: Any, providers: list[Any]) -> CudaSession:
        (name, wanted), last = providers
        assert (name, last) == (CUDA, CPU)
        real = onnxruntime.InferenceSession(content, options, providers=[CPU])
        self.sessions.append(CudaSession(real, [*self.says], wanted, left=self.left))
        return self.sessions[-1]

    def _put(self, array: NDArray[Any], device: str, number: int) -> Any:
        self.values.append((device, number))
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
