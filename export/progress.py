"""What a person at a terminal sees while an export works."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from model.contract import GRAPHS


def count_steps(layers: int = 1, templates: int = 1) -> int:
    """How often an export says that it has done something.

    Args:
        layers: each has every graph verified.
        templates: layers of one size share a template, of which every graph is traced.
    """
    return (layers + templates) * len(GRAPHS)


@contextmanager
def show_progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Draw a bar on stderr while the block works, and nothing where stderr is not a terminal.

    Yields:
        What to call after each of `steps` steps, with what was done.
    """
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Asked here and not of rich, which takes FORCE_COLOR for a terminal.
    hidden = not sys.stderr.isatty()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("reading the weights", total=steps)
        yield lambda done: progress.update(task, advance=1, description=done)
