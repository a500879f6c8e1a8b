"""Scales of panels."""

import numpy as np

from glfm.plots.panels import scale_of


def test_only_long_tails_have_a_logarithmic_scale():
    rng = np.random.default_rng(0)
    tail, bell = np.exp(2.0 * rng.standard_normal(500)), 50.0 + rng.standard_normal(500)
    assert scale_of(tail, (), False).is_log
    assert not scale_of(bell, (), False).is_log
    assert not scale_of(np.append(tail, 0.0), (), False).is_log  # a zero that has no place of its own
    assert scale_of(np.append(tail, 0.0), [0.0], False).atoms == (0.0,)
    assert not scale_of(rng.random(500), (), False).is_log  # decades, but no tail
    assert not scale_of(np.empty(0), (), False).is_log
