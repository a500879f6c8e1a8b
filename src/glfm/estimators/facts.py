"""What notebooks show of an estimator: its table, its kinds, its draws, and whether the chains agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from glfm.analysis.diagnostics import diagnose, in_warmup
from glfm.notebook import counted
from glfm.posterior.fit import Fit
from glfm.sampling.problem import LocalProblem
from glfm.schema import Schema

_AT_ONCE = 5_000_000  # cells of all draws up to which chains are judged without being asked


def facts_of(
    schema: Mapping[str, Any] | Schema | None, fit: Fit | None = None, verdict: str | None = None
) -> list[tuple[str, str]]:
    """Return names and text of what to show of a model with a schema, fitted or not.

    `verdict` is that of its diagnostics, if they have been asked for.
    """
    if fit is None:
        given = (
            "of every column inferred" if not schema else f"of {len(schema):,} columns given, others inferred"
        )
        return [("fit", "none yet: call fit(table)"), ("kinds", given)]
    problem, draws = fit.problem, fit.draws
    n_columns = len(fit.names)
    rows = [("fit", f"{problem.n_rows:,} rows x {n_columns:,} columns")]
    if isinstance(problem, LocalProblem) and problem.x.size:
        holes, share = int(np.isnan(problem.x).sum()), float(np.isnan(problem.x).mean())
        rows.append(("missing", f"{holes:,} of {problem.x.size:,} cells ({share:.1%})"))
    kinds = Counter("ignored" if kind is None else kind.name for kind in fit.schema.values())
    rows.append(("kinds", counted(dict(kinds))))
    after = len(draws) - draws.n_warmup
    chains = "1 chain" if draws.n_chains == 1 else f"{draws.n_chains} chains"
    form = "weighted features" if problem.priors.weighted else "yes/no features"
    rows.append(("draws", f"{after:,} of {chains}, {form}"))
    if fit.refinement is not None:
        n_refined = len(fit.refinement.in_use)
        rows.append(
            ("refined", f"predictions of {n_refined:,} of {len(problem.names):,} columns, by learners")
        )
    return [*rows, ("verdict", verdict or _verdict(fit))]


def _verdict(fit: Fit) -> str:
    """Return whether the chains agree, or how to find out if that would take long."""
    known = in_warmup(fit.draws)
    if known is not None:
        return known
    n_cells = fit.problem.n_rows * len(fit.problem.names) * len(fit.draws)
    if n_cells > _AT_ONCE:
        return "diagnostics() says whether the chains agree"
    return diagnose(fit).verdict
