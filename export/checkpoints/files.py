"""Files that hold tensors by name, opened without running anything that is in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from export.checkpoints.places import INDEX, PICKLES, find_checkpoint
from export.checkpoints.tensors import Tensors


@contextmanager
def open_tensors(path: Path) -> Iterator[Tensors]:
    """Open a checkpoint; its tensors can be read within the block, one at a time.

    Args:
        path: a file of a kind that `places.KINDS` lists, or a directory with one.

    Raises:
        CheckpointError: if there is no such file, its kind is unknown, or it is damaged.
        OSError: if the file may not be read.
    """
    from export.checkpoints.pickles import open_pickle
    from export.checkpoints.safetensors_file import open_safetensors
    from export.checkpoints.shards import open_shards

    file = find_checkpoint(path)
    if file.suffix in PICKLES:
        with open_pickle(file) as tensors:
            yield tensors
    else:
        yield open_shards(file) if file.name.endswith(INDEX) else open_safetensors(file)
