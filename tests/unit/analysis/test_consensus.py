"""Features of the whole posterior: known traits, what is no trait, scales, new rows, two seeds."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import glfm
from conftest import lent
from glfm.analysis.components import match_axes
from glfm.analysis.consensus import Consensus, Tried, choose_axes, two_levels
from glfm.datasets import make_clinic

SHORT = {"n_chains": 2, "n_warmup": 100, "n_draws": 20, "thin": 3, "progress": False, "n_jobs": 1}
CLINIC = make_clinic()


@pytest.fixture(scope="module")
def clinic() -> Iterator[glfm.GLFM]:
    yield from lent(glfm.GLFM(random_state=0, **SHORT).fit(CLINIC.frame))


class TestTwoLevels:
    def test_the_cut_lies_between_the_groups(self):
        rng = np.random.default_rng(0)
        positions = np.where(rng.random(5000) < 0.2, 2.0, -0.5) + 0.3 * rng.standard_normal(5000)
        assert two_levels(positions) == pytest.approx(0.75, abs=0.5)

    @pytest.mark.parametrize("seed", range(3))
    def test_clouds_have_none(self, seed):
        rng = np.random.default_rng(seed)
        assert two_levels(rng.standard_normal(5000)) is None
        assert two_levels(rng.standard_exponential(5000)) is None
        assert two_levels(rng.uniform(-1.7, 1.7, 5000)) is None

    def test_a_handful_of_rows_is_no_group(self):
        rng = np.random.default_rng(0)
        positions = np.where(np.arange(5000) < 50, 8.0, 0.0) + 0.5 * rng.standard_normal(5000)
        assert two_levels(positions) is None

    def test_one_place_is_no_two_groups(self):
        assert two_levels(np.zeros(100)) is None


class TestNumberOfAxes:
    """Which number of axes is chosen, by how alike the axes of 1, 2, ... are in halves of the chains."""

    @pytest.mark.parametrize(
        ("alike", "n_reported"),
        [
            ([[0.99], [0.99, 0.96], [0.99, 0.98, 0.9]], 2),  # all of two
            ([[0.9], [0.96, 0.8], [0.97, 0.97, 0.97]], 3),
            ([[0.99], [0.99, 0.96], [0.99, 0.98, 0.97], [0.99, 0.98, 0.97, 0.94]], 3),
            ([[0.99], [0.9, 0.94], [0.99, 0.98, 0.5]], 2),  # one that is not holds the others back no more
            ([[0.99], [0.9, 0.94]], 2),  # at the lower bar
            ([[0.99], [0.8, 0.94]], 1),
            ([[0.89], [0.8, 0.7]], 0),
        ],
    )
    def test_as_many_as_are_found_again(self, alike, n_reported):
        found = [[], *alike]
        tried = [Tried(np.zeros((3, len(part))), np.array([part, np.ones(len(part))])) for part in found]
        chosen, bar = choose_axes(tried)
        assert chosen.is_again(bar).sum() == n_reported
        if n_reported:
            assert np.sort(chosen.again[0])[-n_reported] >= 0.9


class TestKnownTraits:
    def test_all_are_found_and_nothing_else_is_clear(self, clinic):
        table = clinic.features()
        assert table["status"].tolist() == ["clear"] * 4
        assert table["form"].tolist() == ["yes/no"] * 4
        alike = np.abs(match_axes(CLINIC.Z.astype(float), clinic.activations().to_numpy())[1])
        assert (alike > 0.9).all()

    def test_intervals_hold_the_true_shares(self, clinic):
        table = clinic.features()
        partner, _ = match_axes(CLINIC.Z.astype(float), clinic.activations().to_numpy())
        mine = table.iloc[partner]
        truth = CLINIC.Z.mean(axis=0)
        assert ((mine["lower"] - 0.02 <= truth) & (truth <= mine["upper"] + 0.02)).all()
        assert ((mine["lower"] <= mine["share"]) & (mine["share"] <= mine["upper"])).all()

    def test_another_seed_finds_the_same(self, clinic):
        other = glfm.GLFM(random_state=1, **SHORT).fit(CLINIC.frame)
        ours, theirs = (model.activations().to_numpy() for model in (clinic, other))
        assert ours.shape == theirs.shape
        assert (match_axes(ours, theirs)[1] > 0.9).all()

    def test_new_rows_are_placed_as_the_rows_of_the_fit(self, clinic):
        known, placed = clinic.activations(), clinic.transform(CLINIC.frame)
        assert list(known) == list(placed) == list(clinic.get_feature_names_out())
        assert (np.diag(np.corrcoef(known.T, placed.T)[:4, 4:]) > 0.95).all()

    def test_what_they_explain_adds_up(self, clinic):
        consensus = Consensus(clinic.fit_)
        explained = [axis.explained for axis in consensus.axes]
        assert explained[:4] == sorted(explained[:4], reverse=True)
        assert 0.9 < sum(explained) <= 1.0 + 1e-9

    def test_without_the_cells_effects_are_those_of_expected_ones(self, clinic, tmp_path):
        bare = glfm.load(clinic.save(tmp_path / "m.glfm", data=False))
        ours, theirs = clinic.effects(), bare.effects()
        named = ["feature", "column", "level"]
        pd.testing.assert_frame_equal(ours[named], theirs[named])
        assert np.corrcoef(ours["effect"], theirs["effect"])[0, 1] > 0.9
        numbers = ours["level"].isna()
        assert np.corrcoef(ours["with"][numbers], theirs["with"][numbers])[0, 1] > 0.9
        assert bare.features()["status"].tolist() == ["clear"] * 4


class TestHowMany:
    def test_at_most_top(self, clinic):
        pd.testing.assert_frame_equal(clinic.features(top=2), clinic.features().iloc[:2])
        assert len(clinic.features(top=50)) == len(clinic.features())

    def test_as_many_as_explain_a_share(self, clinic):
        explained = clinic.features()["explained"].cumsum()
        few = clinic.features(explain=float(explained.iloc[1]) - 1e-6)
        assert list(few.index) == ["F1", "F2"]
        all_of_it = clinic.features(explain=1.0)
        assert len(all_of_it) > len(clinic.features())
        assert set(all_of_it["status"].iloc[4:]) == {"unstable"}
        assert list(all_of_it.index[:4]) == list(clinic.features().index)

    @pytest.mark.parametrize("arguments", [{"top": 0}, {"top": 1.5}, {"explain": 0.0}, {"explain": "all"}])
    def test_other_numbers_are_refused(self, clinic, arguments):
        with pytest.raises(glfm.errors.SchemaError, match=r"top is|explain is"):
            clinic.features(**arguments)


def smooth(n_rows: int = 300) -> pd.DataFrame:
    """Return columns that follow two smooth factors and one trait."""
    rng = np.random.default_rng(3)
    on = rng.random(n_rows) < 0.3
    factor = rng.standard_normal(n_rows)
    loads = rng.uniform(0.7, 1.0, 5)
    frame = {f"s{i}": loads[i] * factor + 0.3 * rng.standard_normal(n_rows) for i in range(5)}
    return pd.DataFrame(frame | {f"t{i}": 3.0 * on + 0.5 * rng.standard_normal(n_rows) for i in range(3)})


class TestForms:
    def test_a_smooth_factor_is_a_scale_and_a_trait_is_not(self):
        frame = smooth()
        model = glfm.GLFM(random_state=0, **SHORT).fit(frame)
        table, place = model.features(), model.activations()
        factor = frame[[f"s{i}" for i in range(5)]].mean(axis=1)
        like = place.corrwith(factor, method="spearman").abs()
        assert table["form"][like.idxmax()] == "scale"
        trait = place.corrwith((frame["t0"] > 1.5).astype(float)).abs()
        assert table["form"][trait.idxmax()] == "yes/no"
        assert trait.max() > 0.95
        assert np.isnan(table["share"][like.idxmax()])
        assert place.to_numpy().min() >= 0.0
        assert place.to_numpy().max() <= 1.0

    def test_noise_has_nothing_that_is_clear(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.standard_normal((200, 5)), columns=list("abcde"))
        model = glfm.GLFM(random_state=0, **SHORT).fit(frame)
        assert not (model.features()["status"] == "clear").any()

    def test_nothing_is_clear_of_a_single_draw(self):
        settings = SHORT | {"n_chains": 1, "n_draws": 1}
        table = glfm.GLFM(random_state=0, **settings).fit(CLINIC.frame).features()
        assert len(table)
        assert (table["status"] == "unstable").all()
        assert table["reproducibility"].isna().all()

    def test_scores_have_features_too(self):
        model = glfm.GLFM(weighted=True, random_state=0, **SHORT).fit(CLINIC.frame)
        table = model.features()
        assert len(table) >= 2
        assert list(model.activations()) == list(table.index)
        assert len(model.transform(CLINIC.frame.iloc[:5])) == 5
        assert len(model.effects())
        assert model.patterns()["rows"].sum() == len(CLINIC.frame)

    def test_rows_that_are_pinned_have_no_feature(self):
        inactive = np.arange(len(CLINIC.frame)) < 40
        model = glfm.GLFM(random_state=0, **SHORT).fit(CLINIC.frame, inactive=inactive)
        yes_no = model.features().query("form == 'yes/no'").index
        assert len(yes_no)
        assert (model.activations()[list(yes_no)].to_numpy()[:40] < 0.5).all()


@pytest.fixture(scope="module")
def said() -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and truth, over several tables."""
    pairs = []
    for seed in range(3):
        table = make_clinic(300, seed, 0.35)
        P = glfm.GLFM(random_state=seed, **SHORT).fit(table.frame).activations().to_numpy()
        partner, alike = match_axes(table.Z.astype(float), P)
        pairs += [(P[:, k], table.Z[:, i]) for i, k in enumerate(partner) if alike[i] > 0.7]
    return tuple(np.concatenate(part) for part in zip(*pairs, strict=True))


@pytest.mark.statistical
class TestCalibration:
    """Of the rows that have a trait with probability p, a share p has it."""

    @staticmethod
    def surprise(P: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return z-scores of the number of rows with a trait, and of the squared errors."""
        spread = P * (1.0 - P)
        first = (truth - P).sum() / np.sqrt(spread.sum())
        second = ((truth - P) ** 2 - spread).sum() / np.sqrt((spread * (1.0 - 4.0 * spread)).sum())
        return np.array([first, second])

    def test_probabilities_are_what_they_say(self, said):
        P, truth = said
        unsure = (P > 0.05) & (P < 0.95)
        assert unsure.sum() > 200
        assert (np.abs(self.surprise(P[unsure], truth[unsure])) < 4.0).all()
        assert truth[P <= 0.05].mean() < 0.03
        assert truth[P >= 0.95].mean() > 0.97

    def test_certain_ones_would_be_found_out(self, said):
        P, truth = said
        unsure = (P > 0.05) & (P < 0.95)
        sharp = np.where(P > 0.5, 0.95, 0.05)
        assert np.abs(self.surprise(sharp[unsure], truth[unsure])).max() > 4.0
