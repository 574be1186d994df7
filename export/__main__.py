"""The command line: ``limelight-export`` or ``python -m export``."""

import os
import sys

from export.errors import ExportError


def main() -> None:
    """Run a command; whatever can be foreseen ends in one line on stderr and exit code 1."""
    # Read when numpy is imported. The threads of its library spin: beside another busy process a
    # layer of d_model 512 was verified in 2 to 8 s with two, and in 0.7 s with one (2 cores).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from export.commands import app

        app()
    except ModuleNotFoundError as error:
        fail(f"the module '{error.name}' is missing; install the extra 'export' (make export-env)")
    except ExportError as error:
        fail(str(error))
    except MemoryError:
        fail("not enough memory for a layer of this size")
    except OSError as error:
        fail(f"'{error.filename}': {error.strerror}" if error.filename else str(error))


def fail(message: str) -> None:
    """End with `message` on stderr.

    Raises:
        SystemExit: always, with code 1.
    """
    sys.exit(f"limelight-export: {' '.join(message.split())}")


if __name__ == "__main__":
    main()
