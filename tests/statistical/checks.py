"""The one check that every statistical test makes, and that every negative control must fail."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 4.0  # standard errors


def check(scores: "pd.DataFrame") -> None:
    """Assert that every quantity is where it should be, up to Monte Carlo error."""
    worst = scores[~(scores["z"].abs() < LIMIT)]
    assert worst.empty, f"{len(worst)} of {len(scores)} quantities are off:\n{worst.to_string()}"
