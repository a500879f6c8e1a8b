"""What refinement by trees is worth to the imputer, beside a chain of trees alone.

    GLFM_DATA=... python benchmarks/refinement.py --rows 500 --percentages 30 --masks 2 --jobs 1

As benchmarks/imputation.py, whose cells are hidden and measured alike. German credit, titanic and wine quality, first
mask, are those on which the refinement was developed; the other tables and masks were not looked at.
"""

from __future__ import annotations

import imputation
import imputers
from imputation import METHODS, Method

DEVELOPED_ON = ("german_credit", "titanic", "wine_quality")
TABLES = (*DEVELOPED_ON, "prostate", "heart_cleveland", "abalone", "qsar_biodegradation")

if __name__ == "__main__":
    methods = {
        "trees chain": METHODS["trees chain"],
        "glfm unrefined": Method(imputers.fill_unrefined, "glfm", "pyglfm"),
        "glfm": METHODS["glfm"],
    }
    imputation.main(methods=methods, name="refinement", tables=TABLES)
