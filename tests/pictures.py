"""What the tests of pictures look at."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from glfm.plots.artists import Artists


def check_picture(artists: Artists) -> None:
    """Check that a picture comes out as a notebook shows it, and that no window has opened."""
    assert isinstance(artists, Artists)
    assert isinstance(artists.data, pd.DataFrame)
    assert artists.axes
    assert not plt.get_fignums()
    png = artists._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def yticks(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_yticklabels()]


def graded(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """Return a table whose rows differ by degree, and fall into no groups."""
    rng = np.random.default_rng(seed)
    place = rng.standard_normal(n_rows)
    frame = pd.DataFrame({f"m{i}": place + 0.5 * rng.standard_normal(n_rows) for i in range(4)})
    frame["sick"] = np.where(place + 0.5 * rng.standard_normal(n_rows) > 0, "yes", "no")
    return frame
