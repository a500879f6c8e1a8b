"""Hide 30 % of the pixels of 100 handwritten digits, and fill them in.

The digits are those of MNIST in GLFM_DATA, or the smaller ones of scikit-learn where there are none.
"""

from __future__ import annotations

import numpy as np
import toolbox_demo as demo
from matplotlib.figure import Figure

import glfm
from glfm import toolbox as GLFM  # noqa: N812


def load(n_rows: int = 100) -> tuple[str, np.ndarray]:
    """Return the name of the digits, and digits x pixels."""
    try:
        return "MNIST", glfm.datasets.load_mnist_small().frame.iloc[:n_rows, 1:].to_numpy(dtype=float)
    except glfm.DataError:
        from sklearn.datasets import load_digits

        return "scikit-learn", load_digits().data[:n_rows]


def hide(X: np.ndarray, seed: int, share: float = 0.3) -> np.ndarray:
    """Return the digits with holes; every pixel keeps at least one observed cell."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    holes[0, holes.all(axis=0)] = False
    return np.where(holes, np.nan, X)


def draw(X: np.ndarray, holed: np.ndarray, completed: np.ndarray) -> Figure:
    side = int(np.sqrt(X.shape[1]))
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for line, (title, images) in zip(
        figure.subplots(3, 8), (("true", X), ("holed", holed), ("completed", completed)), strict=True
    ):
        for ax, image in zip(line, images, strict=False):
            ax.imshow(image.reshape(side, side), cmap="gray", vmin=0, vmax=X.max())
            ax.set_facecolor("#D55E00")  # holes
            ax.set_xticks([])
            ax.set_yticks([])
        line[0].set_ylabel(title)
    return figure


def main() -> None:
    args = demo.arguments(__doc__)
    name, X = load()
    holed = hide(X, args.seed)
    # As real numbers: what is filled in is then the mean, which is what a squared error asks for.
    data = {"X": holed, "C": "g" * X.shape[1]}
    params = {"Niter": args.sweeps or 60, "bias": 1, "maxK": 50, "missing": None, "seed": args.seed}
    completed, hidden = GLFM.complete(data, params=params)
    completed = np.clip(completed, 0.0, X.max())
    holes = np.isnan(holed)

    def error(filled: np.ndarray) -> float:
        return round(float(np.sqrt(np.mean((filled - X)[holes] ** 2))), 2)

    numbers = {
        "digits": name,
        "pixels": X.shape[1],
        "features": hidden["Z"].shape[1] - 1,
        "root mean squared error": error(completed),
        "of the pixel's mean": error(np.broadcast_to(np.nanmean(holed, axis=0), X.shape)),
    }
    demo.keep(args.output, "digits", numbers, images=draw(X, holed, completed))


if __name__ == "__main__":
    main()
