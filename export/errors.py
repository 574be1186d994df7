"""What can go wrong between a trained layer and its model directory.

    ExportError
    ├── CheckpointError     the file does not hold an attention layer that can be read
    ├── VerificationError   the layer or a graph computes something else than the formula
    └── RepositoryError     the model cannot be put where it was asked for

Each message is one line: what came, what was expected, how to mend it.
"""


class ExportError(Exception):
    """The model is not written, and nothing is left behind."""


class CheckpointError(ExportError):
    """The file does not hold an attention layer that can be read."""


class VerificationError(ExportError):
    """The layer or a graph computes something else than the formula."""


class RepositoryError(ExportError):
    """The model cannot be put where it was asked for."""
