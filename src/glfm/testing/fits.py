"""Fits made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.problem import LocalProblem
from glfm.schema import Schema


def make_fit(problem: LocalProblem, draws: Sequence[Draw], seed: np.random.SeedSequence | None = None) -> Fit:
    """Return a fit of a table of encoded cells, with draws that were made by hand."""
    frame = Frame.read(pd.DataFrame(problem.x, columns=list(problem.names)))
    seed = np.random.SeedSequence(0) if seed is None else seed
    return Fit({}, Schema(problem.kinds), frame, problem, (), Draws(draws), seed)
