"""Arguments of a fit, checked and put in order."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, validate_data

from glfm.errors import DataError, SchemaError
from glfm.frames.frame import Frame


def read_alpha(alpha: object) -> tuple[float | None, tuple[float, float]]:
    """Return the fixed value, if any, and the gamma prior."""
    if alpha is None:
        return None, (1.0, 1.0)
    if isinstance(alpha, numbers.Real):
        return float(alpha), (1.0, 1.0)
    if (
        isinstance(alpha, tuple | list)
        and len(alpha) == 2
        and all(isinstance(a, numbers.Real) for a in alpha)
    ):
        return None, (float(alpha[0]), float(alpha[1]))
    raise SchemaError(f"alpha is a positive number, a pair of them (shape, rate) or None, not {alpha!r}.")


def check_budget(time_budget: object) -> None:
    """Refuse a time budget that is not a positive number."""
    if time_budget is not None and not (isinstance(time_budget, int | float | np.number) and time_budget > 0):
        raise SchemaError(f"time_budget is a positive number of seconds, not {time_budget!r}.")


def check_sample(sample: object) -> None:
    """Refuse a number of sampled rows that is not a positive whole number."""
    if isinstance(sample, bool) or not isinstance(sample, int | np.integer) or sample < 1:
        raise SchemaError(f"sample is a positive number of rows, not {sample!r}.")


def check_table(estimator: Any, X: Any, reset: bool = False) -> Any:
    """Return a table whose shape is checked as scikit-learn does, if it is an array or a list of rows.

    `reset` says that it is the table of a fit; otherwise it must have as many columns as that one.
    """
    is_array = hasattr(X, "tocsr") or (hasattr(X, "__array__") and not hasattr(X, "to_frame"))
    if isinstance(X, Frame) or hasattr(X, "columns") or not (is_array or isinstance(X, list | tuple)):
        return X
    try:
        if is_array:
            checked = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name="X")
            X = X if isinstance(X, np.ndarray) else checked  # the mask of an array would be lost
        if not reset:
            validate_data(estimator, X, reset=False, skip_check_array=True)
    except (TypeError, ValueError) as error:
        sentence = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"The table is not one that can be read: {sentence}.") from error
    return X


def at_least_one(n_draws: int) -> int:
    """Return a number of draws to add, or refuse it."""
    if n_draws < 1:
        raise SchemaError(f"The number of draws to add must be at least 1, not {n_draws!r}.")
    return n_draws


def read_pinned(inactive: ArrayLike | None, n_rows: int) -> NDArray[np.bool_] | None:
    """Return which rows are pinned to have no feature; None: no row is."""
    if inactive is None:
        return None
    pinned = np.asarray(inactive)
    if pinned.dtype != np.bool_ or pinned.shape != (n_rows,):
        raise DataError(
            f"inactive must be one True or False for each of the {n_rows} rows, not an array of "
            f"{pinned.dtype} with shape {pinned.shape}."
        )
    return pinned.copy()


def seed_sequence(random_state: object) -> np.random.SeedSequence:
    """Return the seeds that a random_state stands for."""
    if random_state is None or isinstance(random_state, int | np.integer):
        if random_state is not None and random_state < 0:
            raise SchemaError(f"random_state is a whole number from 0 on, not {random_state!r}.")
        return np.random.SeedSequence(None if random_state is None else int(random_state))
    raise SchemaError(f"random_state is a whole number or None, not {random_state!r}.")
