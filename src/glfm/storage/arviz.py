"""The posterior as ArviZ has it; the only module that imports ArviZ."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.analysis.diagnostics import LABEL_FREE
from glfm.analysis.summary import Summary
from glfm.errors import GLFMError, SchemaError
from glfm.posterior.fit import Fit
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.problem import LocalProblem, Problem

#: Names of variables and dimensions, which a column of the table cannot have too.
_OURS = {
    *("chain", "draw", "row", "feature", "pseudo_column", "noisy_column", "between", "cell", "cells"),
    *("total_log_likelihood", "n_features", "features_per_row", "alpha", "noise_variance", "threshold"),
    *("bias", "activation", "co_activation"),
}

Variables = dict[str, NDArray[Any]]
Named = dict[str, list[str]]


def to_arviz(fit: Fit, summary: Summary, thin: int = 1) -> Any:
    """Return an InferenceData (ArviZ 0.x) or a DataTree (1.x); see `GLFM.to_arviz`.

    Chains that were stopped early are cut to the length of the shortest.
    """
    if not isinstance(thin, int) or thin < 1:
        raise SchemaError(f"thin is a whole number from 1 on, not {thin!r}.")
    arviz = _arviz()
    problem = fit.rows
    numbers = _chosen(fit.draws, thin)
    shape = (len(numbers), len(numbers[0]))
    flat = [t for chain in numbers for t in chain]
    draws = [fit.draws[t] for t in flat]
    cells = ~np.isnan(problem.x)
    densities = [draw.log_densities() for draw in draws]
    posterior, dims, coords = _posterior(problem, draws)
    posterior["total_log_likelihood"] = np.array([np.nansum(one) for one in densities])
    dims |= {"activation": ["row", "feature"], "bias": ["pseudo_column"]}
    coords |= {
        "feature": summary.names,
        "row": _labels(fit.table.labels),
        "pseudo_column": _pseudo_columns(problem),
    }
    rows, columns = np.nonzero(cells)
    labels = coords["row"]
    coords["cell"] = [f"{labels[n]}: {problem.names[d]}" for n, d in zip(rows, columns, strict=True)]
    dims["cells"] = ["cell"]
    observed, replicated, more = _replicates(problem, draws, fit.seed)
    for name, (dim, seen) in more.items():
        dims[name] = [dim]
        coords[dim] = [labels[n] for n in seen] if isinstance(labels, list) else labels[seen]
    stats = {"co_activation": np.array([LABEL_FREE["co-activation"](draw) for draw in draws])}
    groups = {
        "posterior": _by_chain(posterior, shape),
        "posterior_predictive": _by_chain(replicated, shape),
        "log_likelihood": _by_chain({"cells": np.array([one[cells] for one in densities])}, shape),
        "sample_stats": _by_chain(stats, shape),
        "observed_data": observed,
    }
    data = _gathered(arviz, groups, dims, coords)
    for name, column in zip(observed, problem.kinds, strict=True):
        kind = problem.kinds[column]
        if kind.n_levels:
            for group in ("observed_data", "posterior_predictive"):
                data[group][name].attrs["levels"] = [str(level) for level in kind.levels or ()]
    if summary.names:
        features = {"activation": _activations(summary, flat)}
        alone = _gathered(arviz, {"posterior": _by_chain(features, shape)}, dims, coords)
        _add_group(data, "features", alone["posterior"])
    return data


def _arviz() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own future, on import
            import arviz
    except ImportError as error:
        raise GLFMError("ArviZ is not installed: pip install 'pyglfm[arviz]' installs it.") from error
    return arviz


def _gathered(arviz: Any, groups: dict[str, Variables], dims: Named, coords: Any) -> Any:
    """Put the groups together as the installed ArviZ does, each with the names that it uses."""
    used = {dim for group in groups.values() for name in group for dim in dims.get(name, ())}
    coords = {dim: labels for dim, labels in coords.items() if dim in used}
    dims = {name: names for name, names in dims.items() if any(name in group for group in groups.values())}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:  # ArviZ 0.x
        data = arviz.from_dict(**groups, dims=dims, coords=coords)
    else:
        data = arviz.from_dict(groups, dims=dims, coords=coords)
    for group in groups:
        data[group].attrs["inference_library"] = "glfm"
    return data


def _add_group(data: Any, name: str, group: Any) -> None:
    """Add a group of our own: in the posterior, NaN and many variables would spoil what ArviZ says of it."""
    if hasattr(data, "add_groups"):  # ArviZ 0.x, which warns of groups that it does not know
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            data.add_groups({name: group})
    else:
        data[name] = group.copy()


def _chosen(draws: Draws, thin: int) -> list[list[int]]:
    """Return the numbers of the draws of each chain, as many of each."""
    chains: dict[int, list[int]] = {}
    for t, draw in enumerate(draws):
        chains.setdefault(draw.chain, []).append(t)
    length = min(len(chain) for chain in chains.values())
    return [chain[:length][thin - 1 :: thin] or chain[:1] for chain in chains.values()]


def _by_chain(variables: Variables, shape: tuple[int, int]) -> Variables:
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in variables.items()}


def _posterior(problem: Problem, draws: Sequence[Draw]) -> tuple[Variables, Named, dict[str, Any]]:
    """Return what does not depend on the order of features, with its dimensions and their labels."""
    found: Variables = {
        "n_features": np.array([draw.n_features for draw in draws]),
        "features_per_row": np.array([LABEL_FREE["features per row"](draw) for draw in draws]),
    }
    if problem.priors.alpha is None:
        found["alpha"] = np.array([draw.alpha for draw in draws])
    if problem.priors.bias and problem.n_pseudo:
        found["bias"] = np.array([draw.weights[0] for draw in draws])
    dims: Named = {}
    coords: dict[str, Any] = {}
    noisy = [d for d, kind in enumerate(problem.kinds.values()) if kind.samples_noise]
    if noisy:
        found["noise_variance"] = np.array([draw.variances[noisy] for draw in draws])
        dims["noise_variance"] = ["noisy_column"]
        coords["noisy_column"] = [problem.names[d] for d in noisy]
    # The first threshold of a column is fixed.
    thresholds = [(d, r) for d, theta in enumerate(draws[0].thetas) for r in range(1, theta.size)]
    if thresholds:
        found["threshold"] = np.array([[draw.thetas[d][r] for d, r in thresholds] for draw in draws])
        dims["threshold"] = ["between"]
        levels = [kind.levels or () for kind in problem.kinds.values()]
        coords["between"] = [
            f"{problem.names[d]}: {levels[d][r]} | {levels[d][r + 1]}" for d, r in thresholds
        ]
    return found, dims, coords


def _activations(summary: Summary, chosen: Sequence[int]) -> NDArray[np.float32]:
    """Return which row has which feature in each draw, or its place on a scale."""
    consensus, every = summary.consensus, np.arange(summary.fit.problem.n_rows)
    each = [consensus.memberships(consensus.rows, t, every) for t in chosen]
    return np.array(each, dtype=np.float32)


def _replicates(
    problem: LocalProblem, draws: Sequence[Draw], seed: np.random.SeedSequence
) -> tuple[Variables, Variables, dict[str, tuple[str, NDArray[np.intp]]]]:
    """Return the observed cells by column, replicates of them, and for each its dimension and rows."""
    rng = np.random.default_rng(seed)
    observed: Variables = {}
    replicated: Variables = {}
    where: dict[str, tuple[str, NDArray[np.intp]]] = {}
    for d, ((column, kind), part) in enumerate(zip(problem.kinds.items(), problem.slices, strict=True)):
        rows = np.flatnonzero(~np.isnan(problem.x[:, d]))
        name = free_name(column, problem.names)
        each = [
            kind.sample(rng, draw.location(rows, part), float(draw.variances[d]), draw.thetas[d])
            for draw in draws
        ]
        observed[name], replicated[name] = problem.x[rows, d], np.array(each)
        where[name] = f"{column}: row", rows
    return observed, replicated, where


def free_name(column: str, columns: Sequence[str]) -> str:
    """Return the name of a column's variable, which no dimension may have."""
    taken = _OURS | {f"{name}: row" for name in columns}
    while column in taken:
        column += "_"
    return column


def _pseudo_columns(problem: Problem) -> list[str]:
    """Return names of the free pseudo-columns: the column's own, or with the level that it speaks for."""
    names: list[str] = []
    for name, kind in problem.kinds.items():
        if kind.n_levels and not kind.is_ordered:
            names += [f"{name}={level}" for level in (kind.levels or ())[: kind.n_free]]
        else:
            names += [name] if kind.n_free == 1 else [f"{name}[{j}]" for j in range(kind.n_free)]
    return names


def _labels(labels: Any) -> Any:
    """Return the labels of rows as something that can be a coordinate and be written to a file."""
    if isinstance(labels, pd.MultiIndex):
        return [" / ".join(map(str, label)) for label in labels]
    values = np.asarray(labels)
    return values if values.dtype.kind in "iufM" else [str(label) for label in values.tolist()]
