"""Diagnostics: chains that differ are found out, and few draws are not judged."""

import dataclasses
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.diagnostics import diagnose
from glfm.analysis.summary import Summary
from glfm.report import collect
from glfm.sampling.draws import Draws
from glfm.sampling.priors import Schedule
from stopped_fits import SETTINGS, fit_one_sweep
from tables import QUICK, mixed, people


@pytest.fixture(scope="module")
def frame():
    return mixed()


@pytest.fixture
def model(mixed_model):
    return mixed_model


class TestDiagnostics:
    def test_table(self, model):
        found = model.diagnostics()
        assert list(found.table) == ["mean", "sd", "rhat", "ess_bulk", "ess_tail"]
        assert {"log-likelihood", "features", "alpha", "co-activation"} <= set(found.table.index)
        assert {"noise variance of change", "threshold 2 of pain"} <= set(found.table.index)
        assert found.verdict in repr(found)

    def test_chains_that_differ_are_found_out(self, model):
        # Draws of one chain, and the same with another alpha, as if they were two chains.
        draws = model.draws_.by_chain()[0]
        moved = [dataclasses.replace(draw, chain=1, alpha=draw.alpha + 100) for draw in draws]
        found = diagnose(model.fit_.with_draws([*draws, *moved]))
        assert not found.converged
        assert "do not agree yet on alpha" in found.verdict

    def test_chains_that_say_other_things_of_the_cells_are_found_out(self, model):
        # Four times the weights: the features, their number and alpha are the same.
        draws = model.draws_.by_chain()[0]
        same = [dataclasses.replace(draw, chain=1) for draw in draws]
        other = [dataclasses.replace(draw, chain=1, weights=4.0 * draw.weights) for draw in draws]
        agreed, apart = (diagnose(model.fit_.with_draws([*draws, *second])).table for second in (same, other))
        assert apart.loc["field", "rhat"] > max(1.2, agreed.loc["field", "rhat"])
        assert apart.loc["features", "rhat"] == agreed.loc["features", "rhat"]

    def test_the_field_is_in_units_of_the_noise(self, model):
        # The bias, which every row has, moves every pseudo-column by one sd, and nothing else does.
        moved = []
        for draw in model.draws_:
            weights = np.zeros_like(draw.weights)
            for part, variance in zip(draw.layout.slices, draw.variances, strict=True):
                weights[0, part] = np.sqrt(variance)
            moved.append(dataclasses.replace(draw, weights=weights))
        field = diagnose(model.fit_.with_draws(moved)).table.loc["field"]
        assert field[["mean", "sd"]].tolist() == pytest.approx([1.0, 0.0])
        assert "field" not in model.diagnostics().traces

    def test_too_few_draws(self, model):
        assert "Too few draws" in diagnose(model.fit_.with_draws(model.draws_[:3])).verdict

    def test_few_draws_are_counted(self, model):
        few = Draws([chain[0] for chain in model.draws_.by_chain()])
        assert "there are 2 draws of 2 chains" in diagnose(model.fit_.with_draws(few)).verdict
        assert "there is 1 draw of one chain" in diagnose(model.fit_.with_draws(few[:1])).verdict

    def test_one_chain_is_compared_with_itself(self, model):
        draws = model.draws_.by_chain()[0]
        assert len(draws) >= 8
        found = diagnose(model.fit_.with_draws(draws))
        assert found.table["rhat"].notna().all()
        assert "The halves of the only chain" in found.verdict
        half = len(draws) // 2
        moved = [dataclasses.replace(draw, alpha=draw.alpha + 100) for draw in draws[half:]]
        assert diagnose(model.fit_.with_draws([*draws[:half], *moved])).table.loc["alpha", "rhat"] > 1.05
        assert "Too few draws" in diagnose(model.fit_.with_draws(draws[:7])).verdict

    def test_a_level_alone_has_no_effect(self):
        frame = pd.DataFrame({"a": np.linspace(-1, 1, 20), "b": ["only"] * 20})
        model = glfm.GLFM(n_chains=1, n_warmup=5, n_draws=2, thin=1, random_state=0, progress=False).fit(
            frame
        )
        effects = model.effects()
        assert (effects.loc[effects["column"] == "b", "effect"] == 0).all()


@pytest.fixture(scope="module")
def stopped():
    """A fit of four chains that each made one sweep of their warm-up."""
    settings = {**SETTINGS, "n_chains": 4, "n_warmup": 1000}
    return fit_one_sweep(people().drop(columns="name"), settings)


class TestStoppedInWarmup:
    """The last states of chains in warm-up are no draws: nothing is claimed of them."""

    def test_the_verdict(self, stopped):
        found = stopped.diagnostics()
        assert len(stopped.draws_) == stopped.draws_.n_warmup == 4
        assert "no draw after warm-up exists, only the last states of its 4 chains" in found.verdict
        assert not found.converged

    def test_no_feature_claims_to_be_reproduced(self, stopped):
        table = stopped.features()
        assert len(table), "the states agree, since their starts do"
        assert table["reproducibility"].isna().all()
        assert (table["status"] == "unstable").all()
        as_draws = [dataclasses.replace(draw, is_warmup=False) for draw in stopped.draws_]
        claimed = Summary(stopped.fit_.with_draws(as_draws)).features
        assert (claimed["reproducibility"] >= 0.9).any(), "which is what must not be said"

    @pytest.mark.parametrize("data", [True, False])
    def test_a_file_remembers_it(self, stopped, tmp_path, data):
        again = glfm.load(stopped.save(tmp_path / "m.glfm", data=data))
        assert again.diagnostics().verdict == stopped.diagnostics().verdict
        assert (again.features()["status"] == "unstable").all()

    def test_the_report(self, stopped):
        content = collect(Summary(stopped.fit_))
        assert not content.clear
        assert "no draw after warm-up exists" in content.convergence.headline
        assert content.curve.n_reproduced == 0
        assert "0 kept draws each" in content.methods
        assert "four chains were stopped in warm-up" in content.methods
        assert ("draws kept", "0 (0 per chain)") in content.settings

    def test_chains_that_have_draws_speak_for_the_features(self, people_model):
        first, second = people_model.draws_.by_chain()
        draws = [*first, dataclasses.replace(second[0], is_warmup=True)]
        mixed = people_model.fit_.with_draws(draws)
        verdict = diagnose(mixed).verdict
        assert "1 of 2 chains were stopped in warm-up" in verdict
        assert f"{len(first)} draws after warm-up" in verdict
        alone = Summary(people_model.fit_.with_draws(first)).features
        pd.testing.assert_frame_equal(Summary(mixed).features, alone)

    def test_going_on_forgets_the_states(self, stopped):
        model = deepcopy(stopped)
        chains = [chain.copy() for chain in model.fit_.chains]
        for chain in chains:
            chain.extend(Schedule(2, 3))
            list(chain)
        assert [[draw.is_warmup for draw in chain.draws] for chain in chains] == [[False] * 3] * 4


def test_the_log_likelihood_of_a_large_table_is_judged_by_some_rows(monkeypatch):
    frame = mixed()
    model = glfm.GLFM(**QUICK).fit(frame)
    whole = model.diagnostics().traces["log-likelihood"]
    np.testing.assert_allclose(whole, [draw.log_likelihood for draw in model.draws_])
    monkeypatch.setattr("glfm.analysis.diagnostics._MOST_ROWS", 10)
    rows = np.linspace(0, len(frame) - 1, 10).astype(int)
    some = [np.nansum(draw.log_densities()[rows]) * len(frame) / 10 for draw in model.draws_]
    np.testing.assert_allclose(model.diagnostics().traces["log-likelihood"], some)
