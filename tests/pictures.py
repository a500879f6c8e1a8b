"""What the tests of pictures look at."""

import matplotlib.pyplot as plt
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
