"""One sweep over the rows of a shard with their pseudo-observations integrated out, given the weights.

A pseudo-observation that was drawn with the present features of its row argues for them: given many of them
a row hardly ever changes. Here the features of a row are drawn given the probabilities of its cells, which
are those of `kernels.row_cells`; holes have none and drop out.

Singletons, the features that only one row of the table has, are redrawn by the guest shard. Their weights are
integrated out: j of them make the variance of every pseudo-column 1 + j s2_B. They stay in the likelihood
while the other features are flipped; then their number moves, then the row's pseudo-observations are drawn,
then their weights given these. In other shards singletons stay as they are, with their weights.

Pseudo-observations are left as they were but for cells with more than two levels: the caller draws them.
"""

import math

import numpy as np

from glfm.kernels.arrays import CellBounds, FeaturePrior, FeaturesInUse, ObservedCells, Rows, RowScratch
from glfm.kernels.gaussian import truncated_normal
from glfm.kernels.jit import Bits, Codes, Floats, Ints, Rng, kernel
from glfm.kernels.random import integer_below, uniform
from glfm.kernels.row_bound import SLACK, lay_bound, most_gain, tangent_rises
from glfm.kernels.row_cells import (
    draw_choices,
    draw_others,
    list_cells,
    log_likelihood,
    row_scratch,
    sum_weights,
)
from glfm.kernels.singletons import MOST_NEW, draw_new_weights, place_new_features

_PARALLEL = 0.25  # the square of the cosine from which on weights are nearly parallel


@kernel
def keep_excess(
    rng: Rng, cells: ObservedCells, y: Floats, inv_sd: Floats, mean: Floats, variance: float, excess: Floats
) -> None:
    """Compute the excess of the largest pseudo-observation over its mean where a cell has several levels.

    That of the last level is not kept between sweeps: it is drawn given the others, which lie below it.
    """
    sd = math.sqrt(variance)
    for i in range(cells.n[3]):
        first, last, w = cells.choices[i, 0], cells.choices[i, 1], cells.choices[i, 2]
        if w < last:
            excess[first] = (y[w] * inv_sd[w] - mean[w]) / sd
        else:
            rival = -np.inf
            for s in range(first, last):
                rival = max(rival, y[s] * inv_sd[s])
            excess[first] = truncated_normal(rng, rival, np.inf)


@kernel
def pair_up(
    z: Bits, width: int, bias: int, counts: Ints, in_use: FeaturesInUse, by_rows: bool, pair: Ints
) -> None:
    """Find the feature whose weights are most nearly parallel to those of each, turned round or not.

    `by_rows`: only features count that another row has. So pairs are a function of what the update of the row
    leaves alone, and know nothing of the age of a feature. -1: there is none that is parallel enough, or the
    pair is that of the other one, whose weights are larger.
    """
    G, elsewhere = in_use.gram, in_use.elsewhere
    for k in range(bias, width):
        pair[k] = -1
        best = _PARALLEL * G[k, k]
        for j in range(bias, width):
            is_there = (
                not by_rows or min(counts[j] - z[j] + elsewhere[j], counts[k] - z[k] + elsewhere[k]) > 0
            )
            if j != k and is_there and G[k, j] * G[k, j] > best * G[j, j]:
                best = G[k, j] * G[k, j] / G[j, j]
                pair[k] = j
    for k in range(bias, width):
        j = pair[k]
        if j >= 0 and pair[j] == k and G[j, j] > G[k, k]:
            pair[k] = -1


@kernel
def find_triples(
    z: Bits, width: int, bias: int, counts: Ints, in_use: FeaturesInUse, by_rows: bool, triple: Ints
) -> None:
    """Find two features which together nearly make up for each, such as "k" for "j and the other".

    The first is the one whose weights are most nearly parallel, the second the one most nearly parallel to
    what is left if the first is added to the weights of k, or subtracted from them. The third column says
    which of them is subtracted: 1 the first, 2 the second, 3 both. -1: there are none, or too much is left.
    Which features count is said in `pair_up`.
    """
    G, elsewhere = in_use.gram, in_use.elsewhere
    for k in range(bias, width):
        triple[k, 0] = -1
        if by_rows and counts[k] - z[k] + elsewhere[k] < 1:
            continue
        best, first = 0.0, -1
        for j in range(bias, width):
            is_there = not by_rows or counts[j] - z[j] + elsewhere[j] > 0
            if j != k and is_there and G[k, j] * G[k, j] > best * G[j, j]:
                best, first = G[k, j] * G[k, j] / G[j, j], j
        if first < 0:
            continue
        sign = -1.0 if G[k, first] > 0.0 else 1.0
        left = G[k, k] + G[first, first] + 2.0 * sign * G[k, first]
        best, second, along = _PARALLEL * left, -1, 0.0
        for j in range(bias, width):
            is_there = not by_rows or counts[j] - z[j] + elsewhere[j] > 0
            product = G[k, j] + sign * G[first, j]
            if j != k and j != first and is_there and product * product > best * G[j, j]:
                best, second, along = product * product / G[j, j], j, product
        if second >= 0:
            triple[k, 0], triple[k, 1] = first, second
            triple[k, 2] = int(sign < 0.0) + 2 * int(along > 0.0)


@kernel
def _flip(z: Bits, counts: Ints, k: int) -> None:
    """Give a row a feature, or take it away."""
    counts[k] += 1 - 2 * np.int64(z[k])
    z[k] = 1 - z[k]


@kernel
def flip_shared(
    rng: Rng,
    z: Bits,
    width: int,
    bias: int,
    counts: Ints,
    in_use: FeaturesInUse,
    pair: Ints,
    triple: Ints,
    rises: Floats,
    cells: ObservedCells,
    variance: float,
    excess: Floats,
    scratch: RowScratch,
) -> float:
    """Flip each feature that another row surely keeps during this sweep; return the log-likelihood.

    Then flip pairs of features, each with the one whose weights are nearly parallel: "one but not the other"
    becomes "the other but not the one" where their weights have the same direction, "both" becomes "neither"
    where they have opposite ones. Then each with any other: a row may rest where two features are wrong, and
    each alone is worse than both. Then three at once, one for two others that make up for it: where "A" and
    "B" were found as "A of some rows", "A of others, or B" and "A less B", rows with the last two take the
    first in their place. Flips of fewer features hardly ever lead out of these. Most proposals are refused
    by the bound of `kernels.row_bound`, laid at the first means, or by its tangent alone; `rises` is room for
    how that changes with each feature.
    """
    W, order, elsewhere, log_odds = in_use.weights, in_use.order, in_use.elsewhere, in_use.log_odds
    mean, proposal, bound, n_features = scratch.mean, scratch.proposal, scratch.bound, width - bias
    start = lay_bound(cells, mean, variance, excess, bound)
    here = tangent = start
    tangent_rises(bound, W, width, rises)
    for i in range(4 * n_features):
        k = order[i % n_features]
        third = k
        if i < n_features:
            j = k
        elif i < 2 * n_features:
            j = pair[k]
            if j < 0 or (in_use.gram[j, k] > 0.0) == (z[j] == z[k]):
                continue
        elif i < 3 * n_features:
            j = order[integer_below(rng, n_features)]
            if j == k:
                continue
        else:
            j, third, subtracted = triple[k, 0], triple[k, 1], triple[k, 2]
            if j < 0 or (z[j] == z[k]) == (subtracted % 2 == 1) or (z[third] == z[k]) == (subtracted > 1):
                continue
            if counts[third] - z[third] + elsewhere[third] < 1:
                continue
        if counts[k] - z[k] + elsewhere[k] < 1 or counts[j] - z[j] + elsewhere[j] < 1:
            continue
        sign = 1.0 - 2.0 * z[k]
        sign_too = 1.0 - 2.0 * z[j] if j != k else 0.0
        sign_third = 1.0 - 2.0 * z[third] if third != k else 0.0
        log_prior = sign * log_odds[k] + sign_too * log_odds[j] + sign_third * log_odds[third]
        needed = here - log_prior - math.log(1.0 / uniform(rng) - 1.0)
        if needed >= 0.0:  # more than any features can give
            continue
        change = sign * rises[k] + sign_too * rises[j] + sign_third * rises[third]
        if tangent + change < needed - SLACK:
            continue
        for s in range(mean.size):
            proposal[s] = mean[s] + sign * W[k, s] + sign_too * W[j, s] + sign_third * W[third, s]
        if start + most_gain(cells, bound, proposal) < needed - SLACK:
            continue
        there = log_likelihood(cells, proposal, variance, excess, needed)
        if there > needed:
            here = there
            tangent += change
            for s in range(mean.size):
                mean[s] = proposal[s]
            _flip(z, counts, k)
            if j != k:
                _flip(z, counts, j)
            if third != k:
                _flip(z, counts, third)
    return here


@kernel
def _log_norm(cells: ObservedCells, variance: float) -> float:
    """Return the terms of the log density of points that depend on the variance alone."""
    total = 0.0
    for i in range(cells.n[0]):
        total -= 0.5 * math.log(variance + cells.values[i, 1])
    return total


@kernel
def move_n_singletons(
    rng: Rng,
    cells: ObservedCells,
    mean: Floats,
    excess: Floats,
    here: float,
    own: int,
    most: int,
    prior: FeaturePrior,
) -> int:
    """Propose one singleton more or less, with weights and pseudo-observations integrated out; return j.

    A number j <= `most` has the weight Poisson(j; alpha / N) times the likelihood at variance 1 + j s2_B,
    which is `here` for the present number `own`. Its exact conditional would cost a likelihood for every j.
    """
    step = 1 if uniform(rng) < 0.5 else -1
    there = own + step
    if there < 0 or there > most:
        return own
    log_rate, s2 = math.log(prior.alpha / prior.n_rows), prior.weight_variance
    log_prior = log_rate - math.log(there) if step > 0 else math.log(own) - log_rate
    variance = 1.0 + there * s2
    log_prior += _log_norm(cells, variance) - _log_norm(cells, 1.0 + own * s2)
    needed = here - log_prior + math.log(uniform(rng))
    return there if log_likelihood(cells, mean, variance, excess, needed) > needed else own


@kernel
def _drop_singletons(z: Bits, width: int, bias: int, counts: Ints, elsewhere: Ints) -> tuple[int, int]:
    """Take the singletons from a row; return how many it had, and how many columns of Z are still in use."""
    own, alive = 0, width
    for k in range(bias, width):
        if counts[k] + elsewhere[k] == np.int64(z[k]):
            alive -= 1
            own += int(z[k])
            counts[k] -= z[k]
            z[k] = 0
    return own, alive


@kernel
def _instantiate(
    rng: Rng,
    z: Bits,
    width: int,
    born: int,
    counts: Ints,
    holes: Codes,
    prior: FeaturePrior,
    in_use: FeaturesInUse,
    scratch: RowScratch,
) -> None:
    """Give a row new features, with weights given its pseudo-observations, for later rows to take."""
    y, mean, r, last = scratch.y, scratch.mean, scratch.residual, width + born
    for s in range(r.size):
        r[s] = y[s] - mean[s]
    for j in range(width, last):
        z[j] = 1
    draw_new_weights(
        rng, z[width:last], float(born), holes, r, prior.weight_variance, in_use.weights[width:last]
    )
    place_new_features(rng, width, last, counts, prior, in_use)


@kernel
def write_levels(cells: ObservedCells, y: Floats, inv_sd: Floats, out: Floats) -> None:
    """Write the pseudo-observations of cells with more than two levels, whose next draw depends on them."""
    for i in range(cells.n[3]):
        for s in range(cells.choices[i, 0], cells.choices[i, 1]):
            out[s] = y[s] / inv_sd[s]


@kernel
def sweep_cells_out(
    rng: Rng,
    rows: Rows,
    cells: CellBounds,
    sd: Floats,
    width: int,
    prior: FeaturePrior,
    in_use: FeaturesInUse,
    is_guest: bool,
    start: int,
    first: int,
    stop: int,
) -> tuple[int, int, int]:
    """Update the features of the rows from `first` to before `stop`; `cells` has the rows from `start` on.

    `sd` is the noise standard deviation of each column. Return the next row to update, the width, and the
    width that is needed: if that is more than the arrays have, the row was left as it was and waits for
    larger ones.
    """
    S, capacity = rows.Y.shape[1], rows.Z.shape[1]
    Z, Y, inv_sd, counts, pinned = rows.Z, rows.Y, rows.inv_sd, rows.counts, rows.pinned
    W, elsewhere, low, high = in_use.weights, in_use.elsewhere, cells.low, cells.high
    scratch, excess, rises = row_scratch(cells.form.size, S), np.empty(S), np.empty(capacity)
    mean, s2 = scratch.mean, prior.weight_variance
    rng_before, z_before = np.empty(4, np.uint64), np.empty(capacity, np.uint8)
    pair, triple, is_paired = np.empty(capacity, np.int64), np.empty((capacity, 3), np.int64), False
    for n in range(first, stop):
        if pinned[n]:
            continue
        z = Z[n]
        own, alive = 0, width
        if is_guest:
            for i in range(4):
                rng_before[i] = rng[i]
            for k in range(width):
                z_before[k] = z[k]
            own, alive = _drop_singletons(z, width, prior.bias, counts, elsewhere)
        observed = list_cells(low[n - start], high[n - start], cells, sd, scratch)
        sum_weights(W, z[:width], mean)
        variance = 1.0 + own * s2
        keep_excess(rng, observed, Y[n], inv_sd, mean, variance, excess)
        if own > 0 or not is_paired:
            pair_up(z, width, prior.bias, counts, in_use, is_guest, pair)
            find_triples(z, width, prior.bias, counts, in_use, is_guest, triple)
        here = flip_shared(
            rng,
            z,
            width,
            prior.bias,
            counts,
            in_use,
            pair,
            triple,
            rises,
            observed,
            variance,
            excess,
            scratch,
        )
        born = 0
        if is_guest:
            most = min(max(prior.max_width - alive, 0), MOST_NEW)
            born = move_n_singletons(rng, observed, mean, excess, here, own, most, prior)
            if width + born > capacity:
                for i in range(4):
                    rng[i] = rng_before[i]
                for k in range(width):
                    counts[k] += np.int64(z_before[k]) - np.int64(z[k])
                    z[k] = z_before[k]
                return n, width, width + born
        variance = 1.0 + born * s2
        if born > 0:
            draw_others(rng, observed, mean, variance, scratch.y)
        draw_choices(rng, observed, mean, variance, excess, scratch.y)
        write_levels(observed, scratch.y, inv_sd, Y[n])
        if born > 0:
            holes = rows.hole_columns[rows.hole_starts[n] : rows.hole_starts[n + 1]]
            _instantiate(rng, z, width, born, counts, holes, prior, in_use, scratch)
            width += born
        is_paired = own == 0 and born == 0
    return stop, width, width
