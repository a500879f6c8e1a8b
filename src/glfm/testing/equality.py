"""Equality of draws, to the last bit."""

from collections.abc import Iterator, Sequence

import numpy as np

from glfm.sampling.draws import Draw


def assert_same_draws(draws: Sequence[Draw], expected: Sequence[Draw]) -> None:
    """Raise AssertionError unless two posteriors hold the same draws, bit for bit.

    Parameters
    ----------
    draws, expected
        For example `model.draws_` of two fits.
    """
    if len(draws) != len(expected):
        raise AssertionError(f"{len(draws)} draws, not {len(expected)}")
    for at, (draw, wanted) in enumerate(zip(draws, expected, strict=True)):
        parts = zip(_parts(draw), _parts(wanted), strict=True)
        different = [name for (name, one), (_, other) in parts if not _same_bits(one, other)]
        if different:
            raise AssertionError(f"Draw {at} differs in {', '.join(different)}: {draw}, not {wanted}")


def _parts(draw: Draw) -> Iterator[tuple[str, object]]:
    for name in ("chain", "index", "alpha", "packed", "weights", "variances", "scores"):
        yield name, getattr(draw, name)
    yield "thetas", np.concatenate([np.empty(0), *draw.thetas])
    yield "sizes of thetas", np.array([theta.size for theta in draw.thetas])


def _same_bits(one: object, other: object) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    shape = one.shape == other.shape and one.dtype == other.dtype
    return shape and (one.dtype == object or one.tobytes() == other.tobytes())
