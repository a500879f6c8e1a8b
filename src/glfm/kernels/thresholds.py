"""What moving the thresholds of a column, or the scale of its weights, does to a likelihood."""

import math

from glfm.kernels.gaussian import interval_log_mass, quick_cdf
from glfm.kernels.jit import Codes, Floats, kernel
from glfm.kernels.metropolis import LARGE, SMALL, TRUSTED

__all__ = ["level_gains"]


@kernel
def level_gains(
    codes: Codes, mean: Floats, sd: float, edges: Floats, new_edges: Floats, scale: float, out: Floats
) -> None:
    """Add up by level the change of the log-likelihood when edges move and means are multiplied by `scale`.

    Level r lies between edges r and r + 1; a negative code is a hole. Ratios are multiplied as long as the
    product keeps its digits, so that there is one logarithm for many cells.
    """
    products = out.copy()
    for r in range(out.size):
        out[r] = 0.0
        products[r] = 1.0
    for n in range(codes.size):
        r = codes[n]
        if r < 0 or (scale == 1.0 and edges[r] == new_edges[r] and edges[r + 1] == new_edges[r + 1]):
            continue
        a, b = (edges[r] - mean[n]) / sd, (edges[r + 1] - mean[n]) / sd
        a_new, b_new = (new_edges[r] - scale * mean[n]) / sd, (new_edges[r + 1] - scale * mean[n]) / sd
        old, new = quick_cdf(b) - quick_cdf(a), quick_cdf(b_new) - quick_cdf(a_new)
        if old > TRUSTED and new > TRUSTED:
            products[r] *= new / old
            if not SMALL < products[r] < LARGE:
                out[r] += math.log(products[r])
                products[r] = 1.0
        else:
            out[r] += interval_log_mass(a_new, b_new) - interval_log_mass(a, b)
    for r in range(out.size):
        out[r] += math.log(products[r])
