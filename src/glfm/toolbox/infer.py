"""Inference and completion: infer, infer_draws and complete."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from glfm.errors import FitWarning
from glfm.frames.column import Column, FloatArray
from glfm.posterior.alignment import representative
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draws, column_cells
from glfm.sampling.engine import LocalEngine
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State
from glfm.toolbox.arguments import Data, Params, read
from glfm.toolbox.hidden_dict import hidden_of, learn_kinds, read_features

_MOST_DRAWS = 25  # per chain, whatever the number of sweeps


def infer(
    data: Mapping[str, Any],
    hidden: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the representative draw from the posterior.

    Parameters
    ----------
    data, params
        See `glfm.toolbox` and `init_default_params`; arguments are not modified.
    hidden
        If it has ``Z`` (the bias first if there is one), every chain starts from it; otherwise from
        features made of independent components, which is better than a random Z.

    Returns
    -------
    dict
        A new `hidden`, most common features first.
    """
    draws, seconds = _sample(*read(data, params), hidden)
    return hidden_of(draws[representative(draws)], seconds)


def infer_draws(
    data: Mapping[str, Any],
    hidden: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return every draw that was kept, each a `hidden`; their features differ in number and order."""
    draws, seconds = _sample(*read(data, params), hidden)
    return [hidden_of(draw, seconds) for draw in draws]


def complete(
    data: Mapping[str, Any],
    hidden: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> tuple[FloatArray, dict[str, Any]]:
    """Return the completed table, and the representative draw.

    A missing cell gets the median of a number or the most probable level, as in `compute_map` but averaged
    over all draws.
    """
    table, settings = read(data, params)
    draws, seconds = _sample(table, settings, hidden)
    X = table.X
    layout = draws[0].layout
    for d, kind in enumerate(layout.kinds.values()):
        rows = np.flatnonzero(np.isnan(X[:, d]))
        if not rows.size:
            continue
        cells = column_cells(draws, d, [draw.location(rows, layout.slices[d]) for draw in draws])
        best = cells.mode() if kind.n_levels else cells.quantile(0.5)
        X[rows, d] = kind.decode(best).astype(np.float64)
    return X, hidden_of(draws[representative(draws)], seconds)


def _sample(table: Data, settings: Params, hidden: Mapping[str, Any] | None) -> tuple[Draws, float]:
    """Return the draws and the seconds they took."""
    kinds = learn_kinds(table, settings)
    x = np.column_stack(
        [kind.encode(Column(name, table.X[:, d], "float")) for d, (name, kind) in enumerate(kinds.items())]
    )
    Z = read_features(hidden, x.shape[0], settings)
    priors = Priors(
        alpha=settings.alpha,
        weight_variance=settings.s2B,
        bias=bool(settings.bias),
        max_features=settings.maxK,
    )
    problem = LocalProblem(kinds, np.asfortranarray(x), priors)
    seeds = np.random.SeedSequence(settings.seed).spawn(settings.chains)
    engine = LocalEngine()
    with engine.preparation(problem, 0, None) as preparation:
        chains = [Chain(problem, schedule_of(settings.Niter), seed, i) for i, seed in enumerate(seeds)]
        if Z is not None:
            for chain, seed in zip(chains, seeds, strict=True):
                chain.state = State.start(problem, seed, Z)
        begin = time.perf_counter()
        engine.run(chains, progress=settings.verbose, preparation=preparation)
        seconds = time.perf_counter() - begin
    draws = Draws([draw for chain in chains for draw in chain.draws])
    if settings.maxK and any(draw.n_features >= settings.maxK for draw in draws):
        warnings.warn(
            f"Some draws have params['maxK'] = {settings.maxK} features: the posterior is that of a model "
            "with at most as many; raise maxK if that is not what you want.",
            FitWarning,
            stacklevel=3,
        )
    return draws, seconds


def schedule_of(n_sweeps: int) -> Schedule:
    """Keep at most `_MOST_DRAWS` draws, evenly spaced in the second half."""
    half = n_sweeps - n_sweeps // 2
    n_draws = min(_MOST_DRAWS, half)
    thin = half // n_draws
    return Schedule(n_sweeps - n_draws * thin, n_draws, thin)
