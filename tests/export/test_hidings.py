"""The forms of hiding, and how graphs are told of them."""

import numpy as np

from export.hidings import Hiding, draw_hidings, draw_tokens, graph_inputs
from model.contract import BIAS, DECOMPOSED, FUSED, NO_KEY_SCORE
from model.weights import Weights


def test_rows_without_keys_get_the_finite_bias_and_others_minus_infinity(weights: Weights) -> None:
    mask = np.array([[[[False, False, False], [True, False, True]]]])
    tokens = draw_tokens(np.random.default_rng(2), weights.spec, 1, 2, 3)
    bias = graph_inputs(DECOMPOSED, tokens, Hiding("mask", mask=mask))[BIAS]
    low = np.float32(NO_KEY_SCORE)
    np.testing.assert_array_equal(bias, [[[[low, low, low], [0, -np.inf, 0]]]])


def test_key_masks_become_lengths_for_the_graph_that_takes_them(weights: Weights) -> None:
    generator = np.random.default_rng(2)
    tokens = draw_tokens(generator, weights.spec, 2, 4, 5)
    for hiding in draw_hidings(generator, weights.spec, 2, 4, 5):
        if hiding.name == "key_mask":
            assert hiding.key_mask is not None
            lengths = graph_inputs(FUSED, tokens, hiding)["key_lengths"]
            expected = np.arange(5) < lengths[:, None]
            np.testing.assert_array_equal(hiding.key_mask, expected)
