"""What Metropolis steps with pseudo-observations integrated out have in common."""

import math

from glfm.kernels.jit import Floats, kernel

__all__ = ["LARGE", "SMALL", "TRUSTED", "adapt_step"]

# Ratios are multiplied as long as the product keeps its digits: one logarithm for many cells.
SMALL, LARGE = 1e-100, 1e100
TRUSTED = 1e-4  # a mass from which the quick distribution function gives ratios with nine digits
_TARGET = 0.44  # acceptance that suits a step in one dimension
_RATE = 0.1


@kernel
def adapt_step(step: Floats, i: int, accepted: bool) -> None:
    """Lengthen a step that was accepted, shorten one that was not; for warm-up only."""
    step[i] *= math.exp(_RATE * ((1.0 if accepted else 0.0) - _TARGET))
