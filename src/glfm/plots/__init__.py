"""Pictures of a fit, made by `model.plot`: matplotlib figures with the numbers they were drawn from."""

from glfm.plots.artists import Artists
from glfm.plots.plot import Plot
from glfm.plots.us_states import tile_map

__all__ = ["Artists", "Plot", "tile_map"]
