"""The collector of circles: what it looks at, and how often."""

import gc
from typing import Final

# Objects that may be made before the young ones are looked at, and how many times those are before
# the next generation is. A request makes some fifty and leaves none in a circle.
YOUNG_OBJECTS: Final = 20_000
ROUNDS: Final = (20, 20)


def collect_seldom() -> None:
    """Look for circles every few hundred requests, and not every ten or twenty.

    A request that is answered leaves none: the collector took a twelfth of the event loop's time at
    16 connections of 1x128 (measured).
    """
    gc.set_threshold(YOUNG_OBJECTS, *ROUNDS)


def keep_what_is_there() -> None:
    """Never look at what is there now, when the models are loaded: it is there to the end.

    There are some 200,000 objects, and to look at them stops all requests for 50 ms (measured).
    """
    gc.freeze()
