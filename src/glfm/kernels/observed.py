"""Sums over the pseudo-columns that a row has observed."""

from glfm.kernels.arrays import Observed
from glfm.kernels.jit import Codes, Floats, kernel


@kernel
def is_complete(observed: Observed) -> bool:
    """Whether the row has no holes, so that sums over all columns do."""
    return observed.columns.size == 0 and not observed.direct


@kernel
def observed_columns(holes: Codes, S: int, columns: Codes) -> Observed:
    """List the observed columns of a row, or its holes if they are fewer, in `columns`."""
    direct = 2 * holes.size > S
    if not direct:
        for t in range(holes.size):
            columns[t] = holes[t]
        return Observed(S - holes.size, direct, columns[: holes.size])
    t = 0
    n = 0
    for s in range(S):
        if t < holes.size and holes[t] == s:
            t += 1
        else:
            columns[n] = s
            n += 1
    return Observed(S - holes.size, direct, columns[:n])


@kernel
def gram_of(G: Floats, M: Floats, observed: Observed, i: int, k: int) -> float:
    """Return the entry i, k of G = MM' restricted to the columns that the row has observed."""
    columns = observed.columns
    total = 0.0
    for t in range(columns.size):
        total += M[i, columns[t]] * M[k, columns[t]]
    return total if observed.direct else G[i, k] - total
