"""A session on CUDA, whose inputs and outputs cross between the host and the GPU once."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.engine.native import Native
from service.engine.shortage import find_shortage

DEVICE: Final = "cuda"


class BoundSession:
    """Runs a session of onnxruntime with what it reads and writes bound beforehand.

    An input crosses where it is bound, into the session's own arena, and an output at the end of
    the run, into an array that is made here. `IOBinding.copy_outputs_to_cpu` would copy what has
    crossed once more (measured on the CPU, 1.32), and `run` lets an array that stands for query,
    key and value cross three times.

    All host memory is pageable: the driver copies it by way of a buffer of its own, about half as
    fast as from pinned memory, which onnxruntime's Python interface does not give out.

    Args:
        runtime: the onnxruntime module.
        session: that was opened.
        number: of the GPU.
        device: where arrays that stand for several inputs are put.
    """

    def __init__(
        self,
        runtime: ModuleType,
        session: Native,
        number: int,
        device: str = DEVICE,
    ) -> None:
        self._runtime = runtime
        self._session = session
        self._place = (device, number)
        self._inputs = {each.name: each.shape for each in session.get_inputs()}
        self._outputs = {each.name: each.shape for each in session.get_outputs()}

    def get_providers(self) -> list[str]:
        """Where the session computes, the first choice first."""
        providers: list[str] = self._session.get_providers()
        return providers

    def run(
        self,
        output_names: list[str],
        input_feed: Mapping[str, NDArray[Any]],
        run_options: Native = None,
    ) -> list[NDArray[Any]]:
        """Compute the named outputs.

        Raises:
            DeviceMemoryError: if the GPU has no memory left for it.
        """
        try:
            return self._run(output_names, input_feed, run_options)
        except Exception as error:  # onnxruntime's errors have no class in common
            shortage = find_shortage(error)
            if shortage is None:
                raise
        # Out of the handler: the other error's traceback would keep the tensors.
        raise shortage

    def _run(
        self,
        output_names: list[str],
        input_feed: Mapping[str, NDArray[Any]],
        run_options: Native,
    ) -> list[NDArray[Any]]:
        binding = self._session.io_binding()
        self._bind_inputs(binding, input_feed)
        sizes = self._find_sizes(input_feed)
        outputs = []
        for name in output_names:
            shape = [sizes.get(size, size) for size in self._outputs[name]]
            outputs.append(np.empty(shape, np.float32))
            address = outputs[-1].ctypes.data
            binding.bind_output(name, "cpu", 0, np.float32, shape, address)
        self._session.run_with_iobinding(binding, run_options)
        return outputs

    def _bind_inputs(self, binding: Native, feeds: Mapping[str, NDArray[Any]]) -> None:
        arrays = [id(array) for array in feeds.values()]
        shared: dict[int, Any] = {}
        for name, array in feeds.items():
            if arrays.count(id(array)) == 1:
                # Where the graph reads it, on the host or the GPU, is the session's to know.
                binding.bind_cpu_input(name, array)
                continue
            if id(array) not in shared:
                shared[id(array)] = self._runtime.OrtValue.ortvalue_from_numpy(array, *self._place)
            binding.bind_ortvalue_input(name, shared[id(array)])

    def _find_sizes(self, feeds: Mapping[str, NDArray[Any]]) -> dict[Any, int]:
        """The sizes of the axes that the graph leaves free, by the names that it gives them."""
        return {
            axis: size
            for name, array in feeds.items()
            for axis, size in zip(self._inputs[name], array.shape, strict=True)
            if isinstance(axis, str)
        }
