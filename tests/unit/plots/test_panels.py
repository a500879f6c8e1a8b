"""Scales of panels."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from glfm.plots.panels import Scale, draw_numbers, scale_of


def test_only_long_tails_have_a_logarithmic_scale():
    rng = np.random.default_rng(0)
    tail, bell = np.exp(2.0 * rng.standard_normal(500)), 50.0 + rng.standard_normal(500)
    assert scale_of(tail, (), False).is_log
    assert not scale_of(bell, (), False).is_log
    assert not scale_of(np.append(tail, 0.0), (), False).is_log  # a zero that has no place of its own
    assert scale_of(np.append(tail, 0.0), [0.0], False).atoms == (0.0,)
    assert not scale_of(rng.random(500), (), False).is_log  # decades, but no tail
    assert not scale_of(np.empty(0), (), False).is_log


@pytest.mark.parametrize("is_count", [True, False])
def test_a_column_of_nothing_but_atoms(is_count):
    fig, ax = plt.subplots()
    table = pd.DataFrame({"data": [1.0], "rows": [0.9]}, index=[0.0])
    artists = draw_numbers(ax, table, Scale(is_log=False, atoms=(0.0,), is_count=is_count))
    assert artists
    assert ax.get_ylim() == (0.0, 1.0)
    plt.close(fig)
