"""What the report reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm.analysis.diagnostics import Diagnostics
from glfm.analysis.summary import Summary
from glfm.frames.frame import Frame
from glfm.sampling.draws import Draws
from glfm.sampling.problem import Problem
from glfm.schema import Schema

__all__ = ["Fit"]


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, taken apart: the table, its kinds, the draws, and what is read of them."""

    frame: Frame
    schema: Schema
    problem: Problem
    draws: Draws
    summary: Summary
    diagnostics: Diagnostics
    seed: np.random.SeedSequence
    settings: Mapping[str, Any]
