"""What is asked of a model and what it answers."""

import numpy as np

from service.inference import Answer, Inference, WantedWeights


def test_without_a_wish_the_model_says_what_hides_and_no_weights_are_computed() -> None:
    asked = Inference({})
    assert (asked.causal, asked.weights) == (None, WantedWeights("none"))


def test_the_size_of_an_answer_is_that_of_its_tensors() -> None:
    tensors = {
        "output": np.zeros((4, 5, 6), "f4"),
        "attention_weights": np.zeros((4, 3, 5, 7), "f4"),
    }
    assert Answer(tensors, "model", "demo", "1").size_bytes == 4 * (4 * 5 * 6 + 4 * 3 * 5 * 7)
