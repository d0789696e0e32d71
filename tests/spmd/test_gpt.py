"""A small GPT on 8 devices learns as on one (gpt.py trains it for longer)."""
import gpt
import numpy as np


def test_the_loss_curve_is_that_of_one_device():
    (one, _), (eight, exe) = gpt.train(1, 6), gpt.train(8, 6)
    np.testing.assert_allclose(eight, one, rtol=1e-4)
    assert one[-1] < one[0]
    found = exe.explain("sharding").data
    assert found["whole"] is None and found["resharded"] == {}
    assert {move["axes"] for move in found["moves"] if move["kind"] == "all_reduce"} >= {"data", "model"}
