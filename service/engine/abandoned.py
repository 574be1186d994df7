"""The end of a run that nobody waits for any more."""


class AbandonedError(Exception):
    """Whoever asked has left, or had no more time, while the request was computed."""
