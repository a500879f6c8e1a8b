"""Four small images are mixed at random and buried in noise; the model finds them again.

The setting is that of the toolbox's demo: 1,000 images of 6 x 6 pixels, each of the four shapes in one image
of five, noise of variance 0.5, alpha = 2, 100 sweeps, and a random Z of two features to start from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import toolbox_demo as demo
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

from glfm import toolbox as GLFM  # noqa: N812
from glfm.datasets import make_images

SIDE = 6
LETTERS = "g" * SIDE * SIDE


def generate(seed: int, n_rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy images, and the shapes in them."""
    rng = np.random.default_rng(seed)
    shapes = make_images(1).shapes.reshape(4, -1)
    Z = rng.random((n_rows, 4)) < 0.2
    return Z @ shapes + np.sqrt(0.5) * rng.standard_normal((n_rows, SIDE * SIDE)), shapes


def infer(X: np.ndarray, seed: int, sweeps: int = 100) -> tuple[dict[str, Any], np.ndarray]:
    """Return what was learnt, and the image that each feature adds."""
    start = np.random.default_rng(seed).integers(0, 2, (len(X), 2))
    hidden = {"Z": np.column_stack([np.ones(len(X)), start])}
    params = {"alpha": 2, "Niter": sweeps, "maxK": 40, "bias": 1, "missing": None, "seed": seed}
    learnt = demo.common(GLFM.infer({"X": X, "C": LETTERS}, hidden, params), 0.01)
    values = GLFM.computeMAP(LETTERS, demo.each_feature(learnt), learnt, params)
    return learnt, values[1:] - values[0]


def match(images: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the image nearest to each shape, one to one, and the largest error of a pixel."""
    found = np.vstack([images, np.zeros_like(shapes)])  # a shape that is not found is an empty image
    errors = np.abs(found[None] - shapes[:, None]).max(axis=2)
    nearest = linear_sum_assignment(errors)[1]
    return found[nearest], errors[np.arange(len(shapes)), nearest]


def draw(X: np.ndarray, shapes: np.ndarray, found: np.ndarray) -> Figure:
    figure = Figure(figsize=(6, 4.6), layout="constrained")
    axes = figure.subplots(3, 4)
    rows = (("true", shapes), ("observed", X[:4]), ("inferred", found))
    for line, (title, images) in zip(axes, rows, strict=True):
        for k, (ax, image) in enumerate(zip(line, images, strict=True)):
            ax.imshow(image.reshape(SIDE, SIDE), cmap="gray", vmin=-0.3, vmax=1.3)
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_title(f"{title} {k + 1}", fontsize=9)
    return figure


def main() -> None:
    args = demo.arguments(__doc__)
    X, shapes = generate(args.seed)
    hidden, images = infer(X, args.seed, args.sweeps or 100)
    found, errors = match(images, shapes)
    numbers = {
        "features": hidden["Z"].shape[1] - 1,
        "share of images with each feature": hidden["Z"][:, 1:].mean(axis=0).round(3).tolist(),
        "largest error of a pixel": errors.round(3).tolist(),
        "images recovered": int((errors < 0.5).sum()),
    }
    demo.keep(args.output, "toy", numbers, images=draw(X, shapes, found))


if __name__ == "__main__":
    main()
