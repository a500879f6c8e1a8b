"""The one check that every statistical test makes, and that every negative control must fail."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 4.0  # standard errors
# Of short chains, so that the batches of their standard errors are as long as their memory needs: on these
# tables batches of 50 sweeps give errors within a few hundredths of those of batches of 160.
N_BATCHES = 50


def check(scores: "pd.DataFrame") -> None:
    """Assert that every quantity is where it should be, up to Monte Carlo error.

    Seeds are fixed and nothing is retried, but a change of the random stream draws several hundred new
    scores, and one in 10,000 passes the limit by chance. Ten times the sweeps tell: a score that was chance
    shrinks, one that was a mistake triples.
    """
    worst = scores[~(scores["z"].abs() < LIMIT)]
    assert worst.empty, f"{len(worst)} of {len(scores)} quantities are off:\n{worst.to_string()}"
