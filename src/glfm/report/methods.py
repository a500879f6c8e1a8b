"""How the page was made: settings, versions, and a paragraph to paste into a paper."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Hashable
from importlib.metadata import version

import numpy as np

from glfm import __version__
from glfm.analysis.consensus import REPRODUCED
from glfm.analysis.summary import Summary
from glfm.posterior.fit import Fit
from glfm.report.columns import Missingness
from glfm.report.figures import Curve
from glfm.report.formatting import clipped, counted, listed, percent
from glfm.sampling.draws import Draws

_SETTINGS: dict[str, str] = {
    "random_state": "seed",
    "alpha": "concentration (alpha)",
    "weight_variance": "prior variance of weights",
    "bias": "a feature that every row has (bias)",
    "max_features": "largest number of features",
    "n_warmup": "warm-up sweeps per chain",
    "thin": "sweeps per draw",
}


def settings(summary: Summary) -> list[tuple[str, str]]:
    """Return the settings of the run, in words."""
    draws = summary.fit.draws
    rows = [
        ("chains", f"{draws.n_chains}"),
        ("draws kept", f"{len(draws) - draws.n_warmup:,} ({_per_chain(draws)} per chain)"),
    ]
    if draws.n_warmup:
        rows.append(("chains stopped in warm-up, of which the last state was kept", f"{draws.n_warmup}"))
    return rows + [(words, _setting(name, summary.fit.settings[name])) for name, words in _SETTINGS.items()]


def _per_chain(draws: Draws) -> str:
    """Return how many draws after warm-up a chain has."""
    lengths = [sum(not draw.is_warmup for draw in chain) for chain in draws.by_chain()]
    return f"{min(lengths):,}" if min(lengths) == max(lengths) else f"{min(lengths):,} to {max(lengths):,}"


def _setting(name: str, value: object) -> str:
    defaults: dict[tuple[str, Hashable], str] = {
        ("random_state", None): "none: another run gives other draws",
        ("alpha", None): "learnt, with a Gamma(1, 1) prior",
        ("max_features", None): "no bound",
    }
    if value is None or isinstance(value, bool):
        return defaults.get((name, value), "yes" if value else "no")
    return clipped(value)


def versions() -> list[tuple[str, str]]:
    """Return the versions of glfm and of what it computes with."""
    own = [("glfm", __version__), ("Python", platform.python_version())]
    return own + [(name, version(name)) for name in ("numpy", "numba", "scipy", "pandas")]


def _table(fit: Fit) -> str:
    rows = f"{fit.problem.n_rows:,} rows"
    if fit.whole is None:
        return f"The table of {rows}"
    return f"A random sample of {rows} of a table of {fit.whole.frame.n_rows:,}"


def methods(summary: Summary, missing: Missingness, curve: Curve, worst: float) -> str:
    """Return the methods section of a paper on this fit; `worst` is the largest R-hat."""
    fit, chosen = summary.fit, summary.fit.settings
    kinds = Counter(kind.name for kind in fit.problem.kinds.values())
    columns = listed([f"{n} {name}" for name, n in kinds.items()])
    gone = f"{percent(missing.share)} of the cells were missing and treated as missing at random"
    stopped = (
        f"; {counted(fit.draws.n_warmup, 'chain was', 'chains were')} stopped in warm-up and represented by "
        "the last state"
        if fit.draws.n_warmup
        else ""
    )
    seed = chosen["random_state"]
    rhat = "" if np.isnan(worst) else f"; the largest R-hat of the monitored quantities was {worst:.2f}"
    scales = sum(axis.is_scale for axis in summary.consensus.axes[: curve.n_reproduced])
    found = (
        "No axis was."
        if not curve.n_reproduced
        else f"{counted(curve.n_reproduced, 'axis was', 'axes were').capitalize()}, which explained "
        f"{percent(curve.reached)} of the variance of that field; {scales} of them "
        f"{'is' if scales == 1 else 'are'} reported as scales, because the positions of rows on them do not "
        "fall into two groups."
    )
    library = ", ".join(f"{name} {number}" for name, number in versions()[1:])
    return (
        f"{_table(fit)} and {missing.n_columns} modelled columns ({columns}) was "
        "described by a general latent feature model, which has an Indian buffet process as the prior of "
        f"binary features and one likelihood per kind of column (glfm {__version__}; {library}). "
        f"{gone if missing.n_holes else 'No cell was missing'}. "
        f"The posterior was sampled by Markov chain Monte Carlo with "
        f"{counted(fit.draws.n_chains, 'chain')} of {chosen['n_warmup']:,} warm-up sweeps and "
        f"{_per_chain(fit.draws)} kept draws each, one every {counted(int(chosen['thin']), 'sweep')}"
        f"{stopped} (concentration {_setting('alpha', chosen['alpha'])}; prior variance of weights "
        f"{_setting('weight_variance', chosen['weight_variance'])}; bound on features: "
        f"{_setting('max_features', chosen['max_features'])}; seed {_setting('random_state', seed)}){rhat}. "
        "The reported features are axes of the field of the posterior mean, its leading principal components "
        "rotated to be least normal, as many as are found again with a correlation of at least "
        f"{REPRODUCED} by both halves of the chains and in resampled rows. {found} "
        "Effects are differences of observed cells between rows with and without a feature, or between the "
        "upper and the lower third of a scale, in standard deviations of the column, with 90 % intervals "
        "over draws and the Bayesian bootstrap of rows."
    )
