"""How long requests wait when they come at random, and how many replicas keep that short.

One replica is a queue before as many servers as it has cores. Requests come independently of each
other, from many clients (Poisson).
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Replica:
    """What takes requests.

    Attributes:
        cores: that compute requests.
        request_ms: processor time of a request.
        variation: of it: 0 where all are alike, 1 where they vary as much as their mean
            (the squared coefficient of variation).
    """

    cores: int
    request_ms: float
    variation: float = 0.0

    @property
    def most_per_second(self) -> float:
        """Requests per second that it computes at most."""
        return self.cores * 1000 / self.request_ms

    def predict_ms(self, per_second: float, quantile: float = 0.99) -> float:
        """The time within which a share of the requests is answered; infinite in overload.

        Erlang's C gives the share that waits, and those wait exponentially long, with the mean of
        an M/M/c queue times (1 + variation) / 2 (Lee and Longton; exact for one core on average).
        """
        spare = self.most_per_second - per_second
        if spare <= 0:
            return math.inf
        share = wait_share(self.cores, per_second * self.request_ms / 1000)
        if share <= 1 - quantile:
            return self.request_ms
        mean_ms = 1000 / spare * (1 + self.variation) / 2
        return self.request_ms + mean_ms * math.log(share / (1 - quantile))

    def count(self, per_second: float, limit_ms: float, quantile: float = 0.99) -> int:
        """Replicas with which a share of the requests is answered within a limit.

        Raises:
            ValueError: if a request takes longer by itself.
        """
        if self.request_ms > limit_ms:
            raise ValueError(
                f"a request takes {self.request_ms:g} ms by itself, expected at most the limit of "
                f"{limit_ms:g} ms; more replicas do not help, shorter requests do"
            )
        replicas = max(1, math.ceil(per_second / self.most_per_second))
        while self.predict_ms(per_second / replicas, quantile) > limit_ms:
            replicas += 1
        return replicas


def wait_share(servers: int, offered: float) -> float:
    """Share of requests that wait (Erlang's C), by the recursion of his B.

    Args:
        servers: that work at the same time.
        offered: mean number of servers that are busy, less than there are.
    """
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / servers * (1 - blocked))
