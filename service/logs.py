"""What the server says on its standard error."""

import logging
import sys


def configure_logging(level: str) -> None:
    """Send all loggers to standard error, one line for each record.

    Args:
        level: least severe level that is written: debug, info, warning or error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The server speaks for itself: uvicorn's own lines about its start say less.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, root.level))
