"""New data for a fitted model: what the table becomes, what stays, what is refused."""

from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

import glfm
from glfm.errors import DataError, FitWarning, SchemaError
from glfm.frames.frame import Frame
from glfm.sampling.problem import LocalProblem
from glfm.sampling.transfer import carried
from glfm.testing import assert_same_draws
from tables import QUICK, mixed

OLD, NEW = mixed(40), mixed(50, seed=1)[40:]
TABLE = pd.concat([OLD, NEW])


def quick(**settings) -> glfm.GLFM:
    return glfm.GLFM(**{**QUICK, **settings})


def table_of(model):
    return model.fit_.frame.native()


@pytest.fixture
def model(mixed_model):
    return mixed_model


@pytest.fixture
def fitted(mixed_model):
    """A fit of the old rows that a test may change."""
    return deepcopy(mixed_model)


class TestAppend:
    def test_the_table_is_the_whole_table(self, fitted):
        before = OLD.copy(deep=True), NEW.copy(deep=True)
        schema = fitted.schema_
        assert fitted.append(NEW) is fitted
        assert fitted.schema_ is schema
        pd.testing.assert_frame_equal(table_of(fitted), TABLE)
        filled = fitted.impute()
        assert filled.index.equals(TABLE.index)
        assert filled.dtypes.equals(TABLE.dtypes)
        assert not filled.isna().any().any()
        assert len(fitted.draws_) == 20
        assert {draw.Z.shape[0] for draw in fitted.draws_} == {50}
        for given, was in zip((OLD, NEW), before, strict=True):
            pd.testing.assert_frame_equal(given, was)

    def test_everything_else_works_afterwards(self, fitted, tmp_path):
        model = fitted.append(NEW)
        assert model.activations().shape[0] == 50
        assert model.diagnostics().table.notna().any().any()
        assert set(model.uncertainty()["row"]) <= set(TABLE.index)
        assert model.impute(NEW).shape == NEW.shape
        assert model.report(tmp_path / "r.html").exists()
        assert model.features()["rows"].max() <= 50

    def test_same_seed_same_bits_whatever_the_threads(self):
        one = quick(n_jobs=1).fit(OLD).append(NEW)
        assert_same_draws(one.draws_, quick(n_jobs=2).fit(OLD).append(NEW).draws_)
        with pytest.raises(AssertionError):
            assert_same_draws(one.draws_, quick(random_state=1).fit(OLD).append(NEW).draws_)

    def test_a_file_in_between_changes_nothing(self, fitted, tmp_path):
        path = fitted.save(tmp_path / "m.glfm")
        again = glfm.load(path).append(NEW)
        assert_same_draws(again.draws_, fitted.append(NEW).draws_)
        after = glfm.load(fitted.save(tmp_path / "after.glfm"))
        pd.testing.assert_frame_equal(table_of(after), TABLE)
        assert_same_draws(after.continue_fit(3).draws_, fitted.continue_fit(3).draws_)

    def test_continued_is_the_same_as_longer(self, fitted):
        short = deepcopy(fitted).append(NEW, n_draws=4).continue_fit(6)
        assert_same_draws(short.draws_, fitted.append(NEW, n_draws=10).draws_)

    def test_how_long(self):
        model = quick(n_warmup=40, thin=3).fit(OLD)
        schedule = model.append(NEW[:5]).fit_.chains[0].schedule
        assert (schedule.n_warmup, schedule.n_draws, schedule.thin) == (20, 10, 3)
        schedule = model.append(NEW[5:], n_warmup=2, n_draws=7).fit_.chains[0].schedule
        assert (schedule.n_warmup, schedule.n_draws, schedule.thin) == (2, 7, 3)
        assert len(model.draws_) == 14

    def test_inactive(self, fitted):
        model = fitted.append(NEW[:4], inactive=[True, False, True, False])
        assert np.flatnonzero(model.fit_.rows.pinned).tolist() == [40, 42]
        model.append(NEW[4:])
        assert np.flatnonzero(model.fit_.rows.pinned).tolist() == [40, 42]
        assert not any(draw.Z[[40, 42]].any() for draw in model.draws_)
        assert model.remove("p40").fit_.rows.pinned.tolist().index(True) == 41

    def test_columns_in_any_order_and_without_ignored_ones(self):
        ids = OLD.assign(id=[f"x{i}" for i in range(40)])
        model = quick(schema={"id": "ignore"}).fit(ids).append(NEW[NEW.columns[::-1]])
        found = table_of(model)
        pd.testing.assert_frame_equal(found[TABLE.columns], TABLE)
        assert found["id"].isna().tolist() == [False] * 40 + [True] * 10

    def test_counting_labels_go_on(self):
        old, new = OLD.reset_index(drop=True), NEW.reset_index(drop=True)
        model = quick().fit(old).append(new)
        pd.testing.assert_frame_equal(table_of(model), TABLE.reset_index(drop=True))
        assert model.append(pl.from_pandas(new)).fit_.frame.labels.equals(pd.RangeIndex(60))

    @pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
    @pytest.mark.parametrize("of_new", ["the same library", "pandas"])
    def test_other_libraries(self, make, of_new):
        plain = TABLE.reset_index(drop=True)
        whole = make(plain)
        model = quick().fit(whole[:40])
        model.append(plain[40:] if of_new == "pandas" else whole[40:])
        found = table_of(model)
        assert type(found) is type(whole)
        assert found.schema == whole.schema
        assert Frame.read(found).native().equals(whole)
        model.remove(range(40, 45)).edit({(44, "change"): 1.25})
        assert table_of(model)["change"].to_pandas().tolist()[-1] == 1.25
        assert type(model.impute()) is type(whole)

    def test_arrays(self):
        numbers = np.random.default_rng(0).standard_normal((30, 3))
        model = quick().fit(numbers[:20]).append(numbers[20:].tolist())
        assert np.array_equal(table_of(model), numbers)
        model.edit({(29, "x2"): None})
        assert np.isnan(table_of(model)[29, 2])
        assert model.impute().shape == (30, 3)
        text = np.array([["a", "b"], ["b", "a"]] * 6)
        model = quick().fit(text).append(text)
        assert table_of(model).dtype.kind == "U"
        assert pd.isna(table_of(model.edit({(0, "x0"): None}))).sum() == 1


class TestEdit:
    def test_cells_and_holes(self, fitted):
        cells = {
            ("p3", "change"): 1.5,
            ("p4", "ward"): None,
            ("p5", "pain"): "mild",
            ("p6", "visits"): np.int64(7),
            ("p7", "visits"): float("nan"),
        }
        expected = OLD.copy()
        for (row, column), value in cells.items():
            expected.loc[row, column] = value
        model = fitted.edit(cells)
        pd.testing.assert_frame_equal(table_of(model), expected)
        filled = model.impute()
        assert filled.loc["p3", "change"] == 1.5
        assert filled.loc["p4", "ward"] in {"north", "south", "east"}

    def test_a_type_without_holes_makes_room_for_them(self):
        whole = pd.DataFrame({"n": np.arange(20) % 7, "yes": np.arange(20) % 2 == 0})
        model = quick().fit(whole).edit({(3, "n"): None, (4, "yes"): None})
        assert table_of(model)["n"].isna().tolist().index(True) == 3
        assert table_of(model)["yes"].isna().tolist().index(True) == 4
        assert set(model.impute()["yes"]) == {True, False}

    def test_rows_named_by_several_labels(self):
        index = pd.MultiIndex.from_product([["north", "south"], range(20)])
        model = quick().fit(OLD.set_axis(index)).edit({(("south", 3), "change"): 2.0}).remove(("north", 0))
        assert table_of(model).loc[("south", 3), "change"] == 2.0
        assert len(table_of(model)) == 39


class TestRemove:
    def test_rows_leave(self, fitted):
        model = fitted.remove(["p39", "p0"]).remove("p1")
        pd.testing.assert_frame_equal(table_of(model), OLD[2:39])
        assert {draw.Z.shape[0] for draw in model.draws_} == {37}
        assert all(draw.Z.any(axis=0).all() for draw in model.draws_)

    def test_labels_of_an_index_or_a_mask(self, fitted):
        gone = OLD.index[OLD["visits"].fillna(0) > 5]
        assert table_of(fitted.remove(gone)).index.equals(OLD.index.difference(gone, sort=False))

    def test_append_and_remove_give_the_table_back(self, fitted):
        model = fitted.append(NEW).remove(NEW.index)
        pd.testing.assert_frame_equal(table_of(model), OLD)


class TestState:
    def agrees(self, state, problem):
        for d, kind in enumerate(problem.kinds.values()):
            ends = kind.interval(problem.x[:, d], state.theta[d])
            if ends is not None and ends[2] == 0.0:
                y = state.Y[:, problem.slices[d]][:, 0]
                seen = ~np.isnan(problem.x[:, d])
                assert ((ends[0] <= y) & (y <= ends[1]))[seen].all()

    def test_features_without_rows_are_gone(self, model):
        chain = model.fit_.chains[0]
        bias = 1
        first = chain.state.Z[:, bias] == 1
        kept = np.flatnonzero(~first)
        old = model.fit_.problem
        smaller = LocalProblem(old.kinds, old.x[kept], old.priors)
        before = chain.state.Y.copy(), chain.state.rng.copy()
        state = carried(chain.state, smaller, kept)
        assert state.width < chain.state.width
        assert state.Z[:, : state.width].any(axis=0).all()
        assert state.B.shape[0] == state.width
        assert state.sweep == 0
        self.agrees(state, smaller)
        assert np.array_equal(before[0], chain.state.Y)
        assert np.array_equal(before[1], chain.state.rng)

    def test_pseudo_observations_agree_with_other_cells(self, model):
        old = model.fit_.problem
        turned = LocalProblem(old.kinds, old.x[::-1].copy(), old.priors)
        state = carried(model.fit_.chains[0].state, turned, np.arange(40))
        self.agrees(state, turned)
        with pytest.raises(AssertionError):
            self.agrees(model.fit_.chains[0].state, turned)

    def test_new_rows_start_with_the_features_that_suit_them(self):
        rng = np.random.default_rng(1)
        on = np.arange(120) % 2 == 0
        clear = pd.DataFrame(rng.standard_normal((120, 6)) + 6.0 * on[:, None], columns=list("abcdef"))
        model = quick(n_warmup=100).fit(clear[:100]).append(clear[100:], n_warmup=0, n_draws=1)
        Z = model.draws_[0].Z
        differences = (Z[100:, None] != Z[None, :100]).sum(axis=2)
        alike = on[100:, None] == on[None, :100]
        assert differences[alike].mean() < 0.1
        assert differences[~alike].mean() > 0.9


class TestStop:
    def test_time(self, fitted):
        with pytest.warns(FitWarning, match="time was out"):
            fitted.append(NEW, n_draws=10**6, time_budget=0.5)
        assert not fitted.impute().isna().any().any()
        assert len(fitted.impute()) == 50

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_what_fails_before_the_first_draw_leaves_the_model_as_it_was(self, fitted, monkeypatch, error):
        model = deepcopy(fitted)
        before, filled = deepcopy(model.draws_), model.impute()

        def fail(*_, **__):
            raise error

        monkeypatch.setattr(glfm.LocalEngine, "run", fail)
        with pytest.raises(error):
            model.append(NEW)
        monkeypatch.undo()
        assert_same_draws(model.draws_, before)
        pd.testing.assert_frame_equal(model.impute(), filled)
        assert_same_draws(model.continue_fit(2).draws_, fitted.continue_fit(2).draws_)


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (
                lambda m: m.append(NEW.assign(ward="west")),
                "holds the level 'west', which is not one of 'east'",
            ),
            (lambda m: m.append(NEW.drop(columns="dose")), "The table has no column 'dose'"),
            (lambda m: m.append(NEW[:0]), "has no rows"),
            (lambda m: m.append(OLD[:3]), "The label 'p0' would stand for two rows"),
            (lambda m: m.append(NEW.reset_index(drop=True).set_index([[1] * 10, [2] * 10])), "need labels"),
            (lambda m: m.append(pl.from_pandas(NEW)), "need labels"),
            (lambda m: m.append(NEW, inactive=[True]), "inactive must be one True or False"),
            (lambda m: m.append(NEW.assign(dose=-1.0)), "'dose'"),
            (lambda m: m.edit({("p99", "dose"): 1.0}), "The table has no row 'p99': its row labels are 'p0'"),
            (lambda m: m.edit({("p1", "size"): 1.0}), "There is no fitted column 'size'"),
            (lambda m: m.edit({("p1", "ward"): "west"}), "holds the level 'west'"),
            (lambda m: m.edit({("p1", "change"): "high"}), "'change'"),
            (lambda m: m.edit({("p1", "visits"): 1.5}), "'visits'"),
            (lambda m: m.edit({}), "The cells are a dictionary such as"),
            (lambda m: m.edit(OLD), "The cells are a dictionary such as"),
            (lambda m: m.edit({"p1": 1.0}), "The cells are a dictionary such as"),
            (lambda m: m.remove("p99"), "The table has no row 'p99'"),
            (lambda m: m.remove(OLD["change"] > 0), "The table has no row (True|False)"),
            (lambda m: m.remove([["p1"]]), "Row labels are like 'p0'"),
            (lambda m: m.remove([]), "No row would be removed"),
            (lambda m: m.remove(OLD.index), "All rows would be removed"),
        ],
    )
    def test_one_sentence_and_nothing_changes(self, model, change, sentence):
        before = deepcopy(model.draws_)
        with pytest.raises(DataError, match=sentence):
            change(model)
        assert_same_draws(model.draws_, before)
        assert model.fit_.frame.n_rows == 40

    def test_a_column_that_the_fit_did_not_have_is_ignored(self, model):
        model = deepcopy(model)
        with pytest.warns(FitWarning, match="A column that the fit did not have is ignored: 'size'"):
            model.append(NEW.assign(size=1.0), n_warmup=1, n_draws=1)
        assert model.fit_.frame.n_rows == 50
        assert "size" not in model.fit_.frame.names

    def test_settings(self, model):
        with pytest.raises(SchemaError, match="time_budget"):
            model.append(NEW, time_budget=-1)
        with pytest.raises(SchemaError, match="n_draws must be a whole number from 1 on"):
            model.append(NEW, n_draws=0)
        with pytest.raises(SchemaError, match="n_warmup must be a whole number from 0 on"):
            model.remove("p1", n_warmup=-1)

    def test_a_label_of_two_rows(self):
        model = quick().fit(OLD.set_axis(["a", "b"] * 20)).append(NEW)
        with pytest.raises(DataError, match="20 rows have the label 'a'"):
            model.remove("a")
        assert len(table_of(model.remove("p45"))) == 49

    def test_a_type_that_cannot_hold_the_values(self):
        old = pa.table({"a": [1.0, 2.0, 2.5], "id": [1, 2, 3]})
        model = quick(schema={"id": "ignore"}).fit(old)
        with pytest.raises(DataError, match="Column 'id' has the type int64"):
            model.append(pa.table({"a": [1.0], "id": ["x"]}))

    def test_without_rows(self, model, tmp_path):
        rowless = glfm.load(model.save(tmp_path / "m.glfm", data=False))
        for change in (
            lambda: rowless.append(NEW),
            lambda: rowless.edit({("p1", "dose"): 1.0}),
            lambda: rowless.remove("p1"),
        ):
            with pytest.raises(DataError, match="saved with data=False"):
                change()

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            quick().append(NEW)
