"""The command line: ``limelight-export`` or ``python -m export``."""

import sys

from export.errors import ExportError


def main() -> None:
    """Run a command; whatever can be foreseen ends in one line on stderr and exit code 1."""
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
