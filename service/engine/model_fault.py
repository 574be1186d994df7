"""The error for a model whose files are not whole, or not as they may be."""


class ModelFaultError(Exception):
    """Base of the errors of a model's files; a text names files, never the path to them."""


class UnreadableError(ModelFaultError):
    """A file is there and cannot be read; another try may find it mended."""
