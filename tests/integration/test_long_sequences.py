"""Sequences whose score matrix is larger than what the server holds of it at once."""

import httpx
import numpy as np

from tests.integration.demo import check_close, draw_tokens, expect
from tests.integration.doors import ask

LENGTH = 3500  # 140 MiB of scores with three heads; no multiple of a slice's rows
"""Above the threshold of 128 MiB."""


def test_a_long_sequence_is_that_of_the_formula(client: httpx.Client) -> None:
    """Its causal hiding counts the rows of the sequence, and not those of a slice."""
    tensors = draw_tokens(1, LENGTH, LENGTH + 1)
    tensors["key_mask"] = np.arange(LENGTH + 1)[None] % 7 != 3
    options = {"causal": "bottom_right", "weights": "none"}
    found = ask(client, "v2-binary", tensors, **options)
    check_close(found, expect(tensors, **options))
