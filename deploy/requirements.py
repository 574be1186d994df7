"""Print what pyproject.toml names for the server and for the extras given, one to a line.

The image installs these before our own code is copied, so that a change of the code does not
install them again.
"""

import re
import sys
import tomllib
from pathlib import Path


def requirements(extras: list[str]) -> list[str]:
    """Dependencies of the project and of `extras`, with the extras that those name in turn.

    Raises:
        KeyError: if pyproject.toml has no such extra.
    """
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    found = list(project["dependencies"])
    waiting = list(extras)
    while waiting:
        for line in project["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(rf"{project['name']}\[([^\]]+)\]", line)
            if own:
                waiting += own[1].split(",")
            else:
                found.append(line)
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(sys.argv[1:])) + "\n")
