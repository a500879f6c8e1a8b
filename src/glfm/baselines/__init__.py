"""The baselines of the paper's section 4.1, which model every column as Gaussian.

`SIBP` is the linear-Gaussian Indian buffet process, `BPMF` Bayesian probabilistic matrix factorisation. They
take the schema of `glfm.GLFM` and score held-out cells in the same units, so that scores can be compared.
"""

from glfm.baselines.base import GaussianBaseline
from glfm.baselines.bpmf import BPMF
from glfm.baselines.sibp import SIBP

__all__ = ["BPMF", "SIBP", "GaussianBaseline"]
