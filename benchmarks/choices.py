"""What the imputer chooses, against what it might have chosen: errors and log scores of hidden cells.

    GLFM_DATA=... python benchmarks/choices.py [--masks 3] [--percentages 30] [--tables ...] [--rows 1500]

One line of JSON per fit is appended to the output; what is there is not run again. All variants of a mask fill the
same cells. Variants differ in one thing at a time: the features, the mapping of numbers, and all of
it with what becomes of rare levels. All have 4 chains of 100 and 150 sweeps.
"""

from __future__ import annotations

from dataclasses import replace

import imputation
import imputers
from imputation import Method
from imputers import Guess, Holes

import glfm
from glfm.kinds import Kind

PLAIN = {"real": "affine", "positive": "softplus", "count": "softplus"}


class Variant:
    """The imputer with some of its choices made otherwise."""

    def __init__(self, features: str, quantile: bool, pool: bool) -> None:
        self.features, self.quantile, self.pool = features, quantile, pool

    def __call__(self, holes: Holes) -> Guess:
        kinds = {name: self.kind(kind) for name, kind in holes.kinds.items()}
        settings = imputers.QUICK if holes.quick else {}
        imputer = glfm.Imputer(kinds, features=self.features, random_state=holes.seed, n_jobs=1, **settings)
        return imputers.of_model(holes, imputer.fit(holes.frame).model_)

    def kind(self, kind: Kind) -> Kind:
        if kind.is_number and not self.quantile:
            return replace(kind, mapping=PLAIN[kind.name])
        if kind.name == "categorical" and not self.pool:
            return replace(kind, pool=1)  # no level is seen less than once
        return kind


# The choices were made while looking at the first mask of the tables of the comparison with other imputers.
KNOWN, NEW = imputation.MODEL_TUNED_ON, ("adult", "internet_usage")
VARIANTS = {
    "chosen": Variant("weighted", quantile=True, pool=True),
    "binary": Variant("binary", quantile=True, pool=True),
    "plain mapping": Variant("weighted", quantile=False, pool=True),
    "plain binary": Variant("binary", quantile=False, pool=False),
}


if __name__ == "__main__":
    methods = {name: Method(fill, "glfm", "pyglfm") for name, fill in VARIANTS.items()}
    imputation.main(methods=methods, name="choices", tables=KNOWN + NEW)
