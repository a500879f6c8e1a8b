"""The functions of the paper's toolbox, with its dictionaries as input and output, on the exact sampler.

A script that was written for the toolbox runs after ``import glfm.toolbox as GLFM``. Contents of the three
dictionaries:

``data``
    ``X``: rows x columns of numbers; ``C``: one letter per column, g (real), p (positive), n (count),
    c (categorical) or o (ordinal); ``ylabel``: names of the columns and ``cat_labels``: names of the levels
    of each column, both optional.
``hidden``
    ``Z`` (rows x features, the bias first if there is one), ``B`` (columns x features x most levels),
    ``theta`` (columns x most levels), ``mu``, ``w``, ``s2Y``, ``unit``, ``smallest`` (one number per column),
    ``R`` (the levels of each column, None for numbers) and ``time`` (seconds).
``params``
    See `init_default_params`.

With v = mu + w * y, a real value is v, a positive one unit * log(1 + e^v), a count the whole part of the
same; with a transform they are t(v), a count the whole part of it. ``smallest`` is the smallest positive
value of a positive column that holds zeros (NaN: it holds none). The weights of a categorical column's last
level are zero, and thresholds beyond the last are infinite. The other functions only need these
arrays, so they can be stored in a file.
"""

from glfm.toolbox.arguments import init_default_params
from glfm.toolbox.evaluate import (
    compute_log_likelihood,
    compute_map,
    compute_pdf,
    get_feature_patterns_sorted,
)
from glfm.toolbox.infer import complete, infer, infer_draws
from glfm.toolbox.plot import plot_patterns

computeMAP = compute_map  # noqa: N816 - the toolbox's names
computePDF = compute_pdf  # noqa: N816
computeLogLikelihood = compute_log_likelihood  # noqa: N816
plotPatterns = plot_patterns  # noqa: N816

__all__ = [
    "complete",
    "computeLogLikelihood",
    "computeMAP",
    "computePDF",
    "compute_log_likelihood",
    "compute_map",
    "compute_pdf",
    "get_feature_patterns_sorted",
    "infer",
    "infer_draws",
    "init_default_params",
    "plotPatterns",
    "plot_patterns",
]
