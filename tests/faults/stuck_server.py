"""`limelight-serve` with a fault: an inference, or the event loop, that stands still.

``python -m tests.faults.stuck_server FOLDER [arguments of limelight-serve]``: while FOLDER has a
file ``run``, an inference of more than `LARGE` rows does not end; while it has a file ``loop``, the
question for readiness stops the event loop.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from service import __main__ as command
from service.engine.runner import Computed, Runner
from service.engine.signature import Prepared
from service.state import State

LARGE: Final = 10
PAUSE_S: Final = 0.01


def install(folder: Path) -> None:
    """Put the faults into the server."""
    run, check_able = Runner.run, State.check_able

    def run_or_stick(
        runner: Runner, requests: Sequence[Prepared], *others: Any, **options: Any
    ) -> list[Computed]:
        while requests[0].rows > LARGE and (folder / "run").exists():
            time.sleep(PAUSE_S)
        return run(runner, requests, *others, **options)

    def check_or_stick(state: State) -> None:
        while (folder / "loop").exists():
            time.sleep(PAUSE_S)
        check_able(state)

    setattr(Runner, "run", run_or_stick)  # noqa: B010 - mypy takes an assignment for a mistake
    setattr(State, "check_able", check_or_stick)  # noqa: B010 - the same


if __name__ == "__main__":
    install(Path(sys.argv.pop(1)))
    command.main()
