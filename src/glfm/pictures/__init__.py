"""Pictures of a fit, made by `model.plot`: matplotlib figures with the numbers they were drawn from."""

from glfm.pictures.artists import Artists
from glfm.pictures.plot import Plot
from glfm.pictures.states import tile_map

__all__ = ["Artists", "Plot", "tile_map"]
