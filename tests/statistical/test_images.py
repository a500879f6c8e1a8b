"""The paper's toy: four binary shapes in noisy 6 x 6 images are found again.

Chains start at random places. Two or three in twelve code two shapes by four features, one for each
combination, and stay there for long; what is looked at is the representative draw of four chains.
"""

import numpy as np
import pytest

import glfm
from glfm.datasets import make_images
from glfm.posterior.alignment import representative

from .tables import but_first_slow

N_ROWS = 500

pytestmark = pytest.mark.statistical


def recovery(seed: int, permuted: bool = False) -> float:
    """Return the correlation of the worst found shape with the truth, matching each to its best feature."""
    images = make_images(n_rows=N_ROWS, noise=0.5, seed=seed)
    frame = images.frame
    if permuted:  # pixels shuffled on their own: no shape is left to find
        rng = np.random.default_rng(seed)
        frame = frame.apply(lambda pixel: rng.permutation(pixel.to_numpy()))
    settings = {"n_chains": 4, "n_warmup": 200, "n_draws": 5, "random_state": seed, "progress": False}
    model = glfm.GLFM(dict.fromkeys(frame, "real"), **settings).fit(frame)
    draw = model.draws_[representative(model.draws_)]
    scale = np.array([kind.scale for kind in model.schema_.kinds.values()])
    found = (draw.weights[1:] * scale)[draw.Z.mean(axis=0) > 0.01]
    if not len(found):
        return 0.0
    truth = images.shapes.reshape(4, 36)
    # A feature may stand for the absence of a shape: the bias then carries the shape.
    return float(np.abs(np.corrcoef(truth, found)[:4, 4:]).max(axis=1).min())


@pytest.mark.parametrize("seed", but_first_slow(range(5)))
def test_all_four_shapes_are_found(seed):
    assert recovery(seed) > 0.95


def test_nothing_is_found_where_there_is_nothing():
    assert recovery(0, permuted=True) < 0.95
