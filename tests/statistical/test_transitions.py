"""Every transition of the sampler on its own leaves the joint distribution alone; wrong ones do not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from glfm.kinds import KINDS, Kind
from glfm.sampling.collapsed import CollapsedSampler, Gathered
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.state import State
from glfm.testing import TRANSITIONS, transition_scores

from .checks import check
from .tables import plain_kind

pytestmark = pytest.mark.statistical

N_ROWS = 4
TWO_LEVELS = plain_kind("categorical", levels=("no", "yes"))
MODELS: dict[str, dict[str, Kind]] = {
    **{name: {"a": plain_kind(name), "b": plain_kind(name)} for name in sorted(KINDS)},
    "two levels": {"a": TWO_LEVELS, "b": TWO_LEVELS},
    "mixed": {**{name: plain_kind(name) for name in sorted(KINDS)}, "two levels": TWO_LEVELS},
}


def cases(models: list[str]) -> list[tuple[str, str]]:
    """Return every transition of every model in which it has something to move."""
    return [
        (transition, model)
        for model in models
        for transition in TRANSITIONS
        if any(_moves(transition, kind) for kind in MODELS[model].values())
    ]


def _moves(transition: str, kind: Kind) -> bool:
    """Whether a transition moves anything of a column of this kind: scales have steps, levels fixed noise."""
    if transition == "move_weights":
        return not kind.samples_noise
    return transition != "move_scales" or kind.n_steps > 0


def scores(transition: str, model: str, n_prior: int, **arguments: object) -> pd.DataFrame:
    """Run the test on a table with a hole in one row and most of another hidden."""
    missing = np.zeros((N_ROWS, len(MODELS[model])), dtype=np.bool_)
    missing[1, 0] = True
    missing[2, 1:] = True
    settings = {"missing": missing, "n_prior": n_prior, "seed": 1, **arguments}
    return transition_scores(transition, MODELS[model], N_ROWS, Priors(), **settings)  # type: ignore[arg-type]


class Overconfident(CollapsedSampler):
    """Takes the noise for half of what it is."""

    def gather(self, state: State) -> Gathered:
        return super().gather(replace(state, variance=0.25 * state.variance))


def with_priors(**wrong: object) -> object:
    def make_sampler(problem: Problem) -> CollapsedSampler:
        priors = replace(problem.priors, **wrong)  # type: ignore[arg-type]
        return CollapsedSampler(LocalProblem(problem.kinds, problem.x, priors, problem.pinned))

    return make_sampler


def with_rows_mixed_up(problem: Problem) -> CollapsedSampler:
    return CollapsedSampler(
        LocalProblem(problem.kinds, problem.x[::-1].copy(), problem.priors, problem.pinned)
    )


WRONG = {
    "draw_features": with_priors(weight_variance=3.0),
    "add_or_drop": with_priors(weight_variance=3.0),
    "recode": Overconfident,
    "draw_alpha": with_priors(alpha_prior=(1.5, 1.0)),
    "draw_weights": with_priors(weight_variance=2.0),
    "move_scales": with_priors(weight_variance=2.0),
    "move_weights": with_priors(weight_variance=3.0),
    "flip_cells_out": with_priors(weight_variance=3.0),
    "births": with_priors(weight_variance=3.0),
    "draw_pseudo": with_rows_mixed_up,
}


@pytest.mark.parametrize(("transition", "model"), cases(["mixed"]))
def test_leaves_the_joint_distribution_alone(transition: str, model: str) -> None:
    check(scores(transition, model, 300))


@pytest.mark.parametrize(("transition", "model"), cases(["mixed"]))
def test_a_wrong_one_is_found_out(transition: str, model: str) -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(transition, model, 300, make_sampler=WRONG[transition]))


@pytest.mark.slow
@pytest.mark.parametrize(("transition", "model"), cases(list(MODELS)))
def test_every_kind_leaves_the_joint_distribution_alone(transition: str, model: str) -> None:
    check(scores(transition, model, 4_000))


@pytest.mark.slow
@pytest.mark.parametrize(("transition", "model"), cases(list(MODELS)))
def test_a_wrong_one_is_found_out_in_every_kind(transition: str, model: str) -> None:
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(transition, model, 2_000, make_sampler=WRONG[transition]))


@pytest.mark.slow
@pytest.mark.parametrize("transition", TRANSITIONS)
def test_a_pinned_row_and_a_bound(transition: str) -> None:
    """The bound must be known to moves that add features, the pinned row to all that flip them."""
    kinds = MODELS["mixed"]
    pinned = np.arange(N_ROWS) == 3
    priors = Priors(max_features=3)
    check(transition_scores(transition, kinds, N_ROWS, priors, pinned=pinned, n_prior=2_000, seed=2))


@pytest.mark.slow
def test_a_wrong_threshold_prior_is_found_out() -> None:
    wrong = plain_kind("ordinal", threshold_variance=2.0)

    def make_sampler(problem: Problem) -> CollapsedSampler:
        return CollapsedSampler(LocalProblem({"a": wrong, "b": wrong}, problem.x, problem.priors))

    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores("move_scales", "ordinal", 2_000, make_sampler=make_sampler))
