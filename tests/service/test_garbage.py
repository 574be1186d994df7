"""The collector of circles works seldom, and not on what is there to the end."""

import subprocess
import sys

SCRIPT = """
import gc
from service.garbage import collect_seldom, keep_what_is_there
before = gc.get_threshold()
collect_seldom()
kept = [[] for _ in range(1000)]
keep_what_is_there()
print(gc.isenabled(), gc.get_threshold()[0] > 20 * before[0], gc.get_freeze_count() > 1000)
circle = []
circle.append(circle)
del circle
print(gc.collect() > 0)
"""


def test_circles_are_found_seldom_and_not_among_what_was_there() -> None:
    # In a process of its own: what is frozen here is never looked at by other tests.
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True
    )
    assert done.stdout.split() == ["True"] * 4
