"""What two fits have in common if they are the same to the last bit."""

import glfm


def bits(model: glfm.GLFM) -> list[tuple[object, ...]]:
    """Return everything that is in the draws of a model."""
    return [
        (
            d.chain,
            d.index,
            d.alpha,
            *(part.tobytes() for part in (d.packed, d.weights, d.variances, *d.thetas)),
        )
        for d in model.draws_
    ]
