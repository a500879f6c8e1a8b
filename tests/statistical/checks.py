"""The one check that every statistical test makes, and that every negative control must fail."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: Names a file to which every check adds a line: `make bench-exactness` writes a page from it.
NOTES = "GLFM_SCORES"

# Standard errors. All tests have so many scores that one of a new random stream passes four by chance.
LIMIT = 4.5
# Of short chains, so that the batches of their standard errors are as long as their memory needs: on these
# tables batches of 50 sweeps give errors within a few hundredths of those of batches of 160.
N_BATCHES = 50


def check(scores: "pd.DataFrame") -> None:
    """Assert that every quantity is where it should be, up to Monte Carlo error.

    Seeds are fixed and nothing is retried, but a change of the random stream draws all scores anew,
    and one in 150,000 passes the limit by chance. Ten times the sweeps tell: a score that was chance
    shrinks, one that was a mistake triples.
    """
    worst = scores[~(scores["z"].abs() < LIMIT)]
    if NOTES in os.environ:
        note(Path(os.environ[NOTES]), scores, is_good=worst.empty)
    assert worst.empty, f"{len(worst)} of {len(scores)} quantities are off:\n{worst.to_string()}"


def note(path: Path, scores: "pd.DataFrame", is_good: bool) -> None:
    """Add the check of the present test to a file, in one piece: several processes may do so."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0].rpartition("/")[2]
    line = {
        "test": test,
        "scores": len(scores),
        "z": round(float(scores["z"].abs().max()), 2),
        "good": is_good,
    }
    with path.open("ab", buffering=0) as file:
        file.write((json.dumps(line) + "\n").encode())
