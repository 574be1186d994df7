"""What a person at a terminal sees while an export works."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from model.contract import GRAPHS

STEPS = 2 * len(GRAPHS)
"""How often `export_module` calls `on_step`: each graph is traced, then verified."""


@contextmanager
def show_progress() -> Iterator[Callable[[str], None]]:
    """Draw a bar on stderr while the block works, and nothing where stderr is not a terminal.

    Yields:
        What to call after each of `STEPS` steps, with what was done.
    """
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    # Asked here and not of rich, which takes FORCE_COLOR for a terminal.
    hidden = not sys.stderr.isatty()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("reading the weights", total=STEPS)
        yield lambda done: progress.update(task, advance=1, description=done)
