"""Which requests need no key, and which need an administrator's: everything else needs any key.

Paths are compared as the router compares them, whole and without normalising: what only looks like
an open path (`//v2/health/live`, `/page/../metrics`) is a closed one.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from service.http.keys import Role

Need = Literal["nothing"] | Role

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})  # RFC 9110, 9.2.1: they change nothing
READ: Final = frozenset({"GET", "HEAD"})
METRICS: Final = "/metrics"
# Health, for probes; and files that are the same in every installation, which a browser must load
# before anyone can type a key; the empty path is the prefix of a proxy, which leads to the page.
# /openapi.json is none: its examples name a model and its sizes.
OPEN: Final = re.compile(
    r"/v2/health/(live|ready)"
    r"|/?|/docs|/docs/start\.js"
    r"|/(page|docs/assets)(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+"
)
# What infer may do beside reading. An endpoint that is added and forgotten here is for admin.
INFER: Final = re.compile(
    r"/v1/attention|/v2/models/[^/]+(/versions/[^/]+)?/infer|/v2/repository/index"
)


@dataclass(frozen=True, slots=True)
class Access:
    """What a request needs.

    Attributes:
        metrics_without_key: whether everyone may read the metrics.
    """

    metrics_without_key: bool = False

    def find_need(self, method: str, path: str) -> Need:
        """What a request needs.

        Args:
            method: in capitals.
            path: as the router sees it, percent-decoded and without the prefix of a proxy.
        """
        if method in READ and self._is_open(path):
            return "nothing"
        if method in SAFE or (method == "POST" and INFER.fullmatch(path)):
            return "infer"
        return "admin"

    def _is_open(self, path: str) -> bool:
        return OPEN.fullmatch(path) is not None or (self.metrics_without_key and path == METRICS)
