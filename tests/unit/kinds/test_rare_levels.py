"""Rare levels of a categorical column that stand together as one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import glfm
from glfm.errors import SchemaError
from glfm.frames.column import Column
from glfm.kinds.categorical import Categorical
from glfm.schema import Schema

CITIES = ["Bern"] * 40 + ["Ulm"] * 30 + ["Rom", "Rom", "Lyon", "Graz"]


def learnt(pool: int = 5, **more: object) -> Categorical:
    column = Column("city", np.array(CITIES, dtype=object), "string")
    return Categorical(pool=pool, **more).learn(column)  # type: ignore[arg-type]


def test_rare_levels_share_one_pseudo_observation_by_how_often_they_are_seen() -> None:
    kind = learnt()
    assert kind.levels == ("Bern", "Graz", "Lyon", "Rom", "Ulm")
    assert kind.shares == pytest.approx((0.0, 1.5 / 5.5, 1.5 / 5.5, 2.5 / 5.5, 0.0))
    assert (kind.n_pseudo, kind.n_free) == (3, 2)
    assert kind.largest(np.array([0.0, 1.0, 2.0, np.nan, 3.0, 4.0])).tolist()[:3] == [0.0, 2.0, 2.0]
    assert kind.evidence(np.array([0.0, 1.0, np.nan, 4.0]))[0].tolist() == [0, 2, -1, 1]


def test_a_level_that_is_known_but_never_seen_keeps_a_probability() -> None:
    kind = learnt(levels=("Bern", "Graz", "Lyon", "Paris", "Rom", "Ulm"))
    p = kind.probabilities(np.zeros((1, kind.n_free)), 1.0, np.empty(0))[0]
    assert p[3] == pytest.approx(0.5 / 6.0 / 3.0)


@pytest.mark.parametrize("pool", [1, 2])
def test_nothing_is_pooled_where_fewer_than_two_levels_are_rare(pool: int) -> None:
    column = Column("city", np.array(["a"] * 3 + ["b"] * 3 + ["c"], dtype=object), "string")
    kind = Categorical(pool=pool).learn(column)
    assert kind.shares is None
    assert kind.n_pseudo == 3


def test_of_many_levels_the_rare_ones_are_pooled_unless_each_is_asked_for() -> None:
    often = [f"often {i:02d}" for i in range(25)]
    rare = [f"rare {i:02d}" for i in range(8)]
    column = Column("place", np.array(often * 12 + rare * 3, dtype=object), "string")
    kind = Categorical().learn(column)
    assert kind.shares is not None
    assert [level for level, share in zip(kind.levels or (), kind.shares, strict=True) if share] == rare
    assert kind.n_pseudo == 26
    assert kind.details == "33 levels, 8 pooled"
    alone = Categorical(pool=1).learn(column)
    assert (alone.shares, alone.details) == (None, "33 levels")


def test_the_twenty_most_common_levels_stand_alone_however_rare_they_are() -> None:
    values = [f"place {i:02d}" for i in range(30)] + [f"place {i:02d}" for i in range(10, 30)]
    kind = Categorical().learn(Column("place", np.array(values, dtype=object), "string"))
    assert np.flatnonzero(kind.shares or ()).tolist() == list(range(10))
    few = Column("place", np.array(values[:20], dtype=object), "string")
    assert Categorical().learn(few).shares is None


def test_probabilities_log_densities_and_draws_agree() -> None:
    kind, rng = learnt(), np.random.default_rng(1)
    location = rng.normal(size=(1, kind.n_free))
    p = kind.probabilities(location, 1.0, np.empty(0))[0]
    assert p.sum() == pytest.approx(1.0)
    each = np.arange(5.0)
    scores = kind.log_density(each, np.repeat(location, 5, axis=0), 1.0, np.empty(0))
    assert np.exp(scores) == pytest.approx(p)
    drawn = kind.sample(rng, np.repeat(location, 20_000, axis=0), 1.0, np.empty(0))
    counts = np.bincount(drawn.astype(int), minlength=5)
    assert stats.chisquare(counts, 20_000 * p).pvalue > 1e-3
    alone = Categorical(levels=kind.levels).probabilities(np.zeros((1, 4)), 1.0, np.empty(0))[0]
    assert stats.chisquare(counts, 20_000 * alone).pvalue < 1e-6


def test_pooled_levels_survive_json_and_a_model_file(tmp_path: object) -> None:
    schema = Schema.from_json(Schema.infer(pd.DataFrame({"city": CITIES}), {"city": learnt()}).to_json())
    assert schema["city"] == learnt()
    frame = pd.DataFrame({"city": CITIES, "age": np.arange(74) / 3.0})
    frame.loc[::7, "city"] = None
    model = glfm.GLFM(
        {"city": Categorical(pool=5)},
        n_chains=1,
        n_warmup=5,
        n_draws=4,
        thin=1,
        random_state=1,
        progress=False,
    ).fit(frame)
    assert model.schema_["city"].n_pseudo == 3
    model.save(f"{tmp_path}/model.glfm")
    pd.testing.assert_frame_equal(glfm.load(f"{tmp_path}/model.glfm").impute(), model.impute())
    new = model.predictive(pd.DataFrame({"city": [None, "Rom", "Graz"], "age": [3.0, 70.0, np.nan]}))
    p = new.proba("city").to_numpy()
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert new.mean()["age"].notna().all()


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.0, 0.0, 0.0), (-1.0, 1.0, 1.0), (np.nan, 0.5, 0.5)])
def test_shares_that_are_none_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(SchemaError, match="shares are one number per level"):
        Categorical(levels=("a", "b", "c"), shares=shares)


def test_a_pool_that_is_no_number_is_refused() -> None:
    with pytest.raises(SchemaError, match="pool must be a positive number"):
        Categorical(pool=0)
