"""A server with express in front and one without, which are asked the same."""

import json
from contextlib import ExitStack
from typing import Any

import numpy as np

from service.settings import Settings
from tests.service.http.live_server import ask
from tests.service.routes.front import Front, Told, open_front

QUERY = np.random.default_rng(17).standard_normal((2, 5, 6)).astype(np.float32)
V2 = {"inputs": [{"name": "query", "shape": [2, 5, 6], "datatype": "FP32", "data": QUERY.tolist()}]}
V1 = {"query": QUERY.tolist()}
V2_PATH = "/v2/models/demo/infer"


class Pair:
    """A server with express in front, and one of FastAPI alone."""

    def __init__(self, express: Front, plain: Front) -> None:
        self.express = express
        self.plain = plain

    def ask(self, path: str, body: bytes, *headers: str, method: str = "POST") -> Told:
        """What a request comes to, which is the same with both."""
        more = *headers, "Connection: close", "X-Request-Id: mine"
        request = ask(path, body, *more, method=method)
        first, second = self.express.ask(request), self.plain.ask(request)
        assert first == second, request[:200]
        return first

    def compare_counts(self) -> None:
        """See that both counted the same."""
        assert self.express.count() == self.plain.count()


def open_pair(stack: ExitStack, settings: Settings) -> Pair:
    """Both servers, with the same settings."""
    fronts = (
        stack.enter_context(open_front(settings, is_express=is_express))
        for is_express in (True, False)
    )
    return Pair(*fronts)


def write(body: Any) -> bytes:
    return json.dumps(body).encode()
