"""What the commands print: tables for people."""

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from export.checkpoints.inspection import LayerReport
from export.verify import Report
from model.contract import GRAPHS

# Nobody folds the lines of a file.
FILE_WIDTH = 10_000


def print_errors(reports: Sequence[Report]) -> None:
    """The largest error of each graph under each hiding, over all outputs and models."""
    names = [graph.name for graph in GRAPHS if any(graph.name in report for report in reports)]
    hidings = dict.fromkeys(hiding for report in reports for hiding in report[names[0]])
    rows = [
        [hiding, *(show_error(reports, graph, hiding) for graph in names)] for hiding in hidings
    ]
    print_table(["hiding", *names], rows, numbers=names)


def show_error(reports: Iterable[Report], graph: str, hiding: str) -> str:
    """The largest error in scientific notation; "-" where the graph cannot hide so."""
    errors = [error for report in reports for error in report[graph].get(hiding, {}).values()]
    return f"{max(errors):.1e}" if errors else "-"


def print_layers(layers: Iterable[LayerReport]) -> None:
    """The attention layers of a checkpoint."""
    columns = ["#", "layer", "family", "d_model", "heads", "parameters", "dtype", "importable"]
    rows = [
        [
            str(layer.number),
            layer.name or "(the file itself)",
            layer.family,
            str(layer.d_model or "-"),
            str(layer.num_heads or "-"),
            f"{layer.parameters:,}",
            layer.datatype,
            "yes" if layer.importable else f"no: {layer.reason}",
        ]
        for layer in layers
    ]
    print_table(columns, rows, numbers=["#", "d_model", "heads", "parameters"])


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str]
) -> None:
    """Columns under their names; those of numbers to the right."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, justify="right" if name in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_printable(cell)) for cell in row))
    width = None if sys.stdout.isatty() else FILE_WIDTH
    Console(width=width, highlight=False).print(table)


def make_printable(text: str) -> str:
    """The text without what would move the cursor of a terminal: a file chooses its names."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
