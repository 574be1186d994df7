"""The command ``limelight-serve``."""

import importlib.metadata
import logging
import sys

from service import hash_key
from service.engine.memory import use_one_arena
from service.errors import StartError
from service.garbage import collect_seldom
from service.http.descriptors import allow_connections
from service.http.exposure import check_exposure
from service.http.listening import listen_everywhere
from service.logs import configure_logging
from service.settings import Settings, SettingsError


def main() -> None:
    """Serve until told to stop; exit with 1 and one line where that is not possible."""
    arguments = sys.argv[1:]
    try:
        run(arguments)
    except (SettingsError, StartError) as error:
        sys.exit(f"limelight-serve: {error}")
    finally:
        logging.shutdown()  # what the log still holds comes before the last line


def run(arguments: list[str]) -> None:
    """Do what a command line says.

    Raises:
        SettingsError: if a setting does not fit.
        StartError: if the server cannot start.
    """
    if arguments == ["--version"]:
        print(importlib.metadata.version("limelight"))  # noqa: T201 - what was asked for
    elif arguments[:1] == ["hash-key"]:
        hash_key.run(arguments[1:])
    else:
        serve(Settings.load(arguments))


def serve(settings: Settings) -> None:
    """Listen, load, answer, and finish what is in flight when the process is told to stop.

    Raises:
        StartError: if the address is taken or the models cannot be loaded.
    """
    use_one_arena()
    collect_seldom()
    configure_logging(settings.log_level, settings.log_format)
    has_keys = settings.api_keys_file is not None
    check_exposure(settings.host, has_keys=has_keys, allow_anonymous=settings.allow_anonymous)
    allow_connections(settings.max_connections)
    listeners = listen_everywhere(settings)
    # Imported when it is known which: a supervisor needs neither the engine nor the routes.
    if settings.workers > 1:
        from service.workers.supervisor import Supervisor

        Supervisor(settings, listeners).supervise()
    else:
        from service import alone

        alone.serve(settings, listeners)


if __name__ == "__main__":
    main()
