"""Refined predictions: inputs that do not leak, columns that gain, files, new rows, every kind."""

import json
import zipfile
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import FileError, FitWarning, SchemaError
from glfm.kinds import KINDS
from glfm.kinds.cells import Guess, Move
from glfm.kinds.real import Real
from glfm.posterior import refinement
from glfm.posterior.learner_inputs import filled_inputs, input_slices
from glfm.posterior.refinement import refined
from glfm.posterior.rows import NewRows
from glfm.sampling.problem import LocalProblem

QUICK = {
    "n_chains": 2,
    "n_warmup": 20,
    "n_draws": 8,
    "thin": 1,
    "random_state": 0,
    "progress": False,
    "n_jobs": 1,
}
KINDS_OF = {"x": "real", "bend": "real", "wave": "positive", "visits": "count", "ward": "categorical"}
SCHEMA = {**KINDS_OF, "pain": glfm.Ordinal(levels=[0, 1, 2])}


def bent(n_rows: int = 220, seed: int = 0) -> pd.DataFrame:
    """Return a table whose columns all bend with the first."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n_rows)
    noise = 0.1 * rng.standard_normal((3, n_rows))
    return pd.DataFrame(
        {
            "x": x,
            "bend": np.abs(x) + noise[0],
            "wave": np.exp(np.cos(2.0 * x) + noise[1]),
            "visits": np.floor(3.0 * x**2 + np.abs(noise[2])),
            "ward": np.where(np.abs(x) < 0.7, "inner", np.where(x > 0.0, "east", "west")),
            "pain": np.digitize(np.abs(x), [0.6, 1.3]),
        }
    )


def holed(frame: pd.DataFrame, share: float = 0.15, seed: int = 1) -> pd.DataFrame:
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    return bent()


@pytest.fixture(scope="module")
def model(whole) -> glfm.GLFM:
    return glfm.GLFM(SCHEMA, weighted=True, refine=True, **QUICK).fit(holed(whole))


@pytest.fixture(scope="module")
def plain(model) -> glfm.GLFM:
    """The same fit with its own predictions."""
    return with_fit(model, model.fit_.unrefined)


def with_fit(model: glfm.GLFM, fit) -> glfm.GLFM:
    other = copy(model)
    other.fit_ = fit
    return other


@pytest.fixture(scope="module")
def straight() -> glfm.GLFM:
    """A fit whose columns are refined by linear learners: sums of more than two features can follow."""
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((220, 3))
    frame = pd.DataFrame(parts, columns=list("xyz")).assign(
        a=parts @ [1.0, 1.0, 0.5],
        b=parts @ [1.0, -1.0, 0.5],
        ward=np.array(["east", "inner", "west"])[parts.argmax(axis=1)],
    )
    with pytest.warns(FitWarning, match="max_features = 2"):
        return glfm.GLFM(weighted=True, refine=True, max_features=2, **QUICK).fit(holed(frame, 0.05))


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("files") / "model.glfm")


def gains(model: glfm.GLFM, plain: glfm.GLFM, whole: pd.DataFrame) -> np.ndarray:
    """Return what the hidden cells of the table of the fit gain in log density."""
    hidden = whole.where(model.fit_.table.to_pandas().isna())
    scores = [one.log_likelihood(hidden).to_numpy() for one in (model, plain)]
    difference = scores[0] - scores[1]
    return difference[~np.isnan(difference)]


def _in_use(model: glfm.GLFM) -> dict:
    return model.fit_.refinement.in_use


def _shuffled(learnt: refinement.Learnt) -> refinement.Learnt:
    rng = np.random.default_rng(0)
    forest, linear = learnt.forest, learnt.linear
    if forest is not None:
        order = rng.permutation(len(forest.values))
        forest = replace(forest, values=forest.values[order], seen=forest.seen[order])
    return refinement.Learnt(
        forest, linear and replace(linear, weights=rng.permutation(linear.weights)), learnt.of_forest
    )


def _with_shuffled_learners(one: refinement.Learner) -> refinement.Learner:
    return replace(one, learnt=_shuffled(one.learnt))


def _shuffled_guess(guess: Guess) -> Guess:
    order = np.random.default_rng(0).permutation(len(guess.center))
    return Guess(guess.center[order], guess.seen[order])


def _last_round(model: glfm.GLFM, learners: dict) -> glfm.GLFM:
    """Return the model with other learners in the last round."""
    rounds = (*model.fit_.refinement.rounds[:-1], learners)
    return with_fit(model, replace(model.fit_, refinement=refinement.Refinement(rounds)))


def _covered(model: glfm.GLFM, whole: pd.DataFrame) -> float:
    """Return how many hidden numbers with a density lie in their 90 % intervals."""
    lower, upper = model.predictive().interval(0.9)
    inside = (lower <= whole[list(lower)]) & (whole[list(lower)] <= upper)
    return float(inside[["bend", "wave"]].where(model.fit_.table.to_pandas().isna()).stack().mean())


class TestLeaks:
    def test_inputs_do_not_know_the_cell_that_is_predicted(self, model):
        """Of another cell, under the same draws, a learner reads the same; what leaked would differ."""
        fit = replace(model.fit_.thinned(refinement._DRAWS), refinement=None)
        d = 1
        row = int(np.flatnonzero(~np.isnan(fit.rows.x[:, d]) & np.isnan(fit.rows.x).any(axis=1))[0])
        x = fit.rows.x.copy()
        x[row, d] += 3.0
        other = replace(fit, problem=LocalProblem(fit.problem.kinds, x, fit.problem.priors))
        read, leaking = [], []
        for one in (fit, other):
            table = refinement.HiddenInTurn(one, 1)
            hidden = np.concatenate([np.flatnonzero(table.part[:, d] == i) for i in range(refinement._FOLDS)])
            assert table.place(None)
            read.append(table.cells(d)[1][hidden == row])
            inputs = filled_inputs(NewRows(one.rows.x[[row]], one, 1), one.problem, one.draws)
            leaking.append(np.delete(inputs, d, axis=1))
        np.testing.assert_array_equal(*read)
        assert not np.array_equal(*leaking)

    def test_a_hidden_cell_is_filled_in_by_learners_that_do_not_know_it(self, model):
        """Between rounds, and whatever stands in it; trees that were trained on it would give it away."""
        fit = replace(model.fit_.thinned(refinement._DRAWS), refinement=None)
        d, x = 1, fit.rows.x.copy()
        row = int(np.flatnonzero(~np.isnan(x[:, d]))[0])
        x[row, d] += 3.0
        other = replace(fit, problem=LocalProblem(fit.problem.kinds, x, fit.problem.priors))
        read, leaking = [], []
        for one in (fit, other):
            table = refinement.HiddenInTurn(one, 1)
            assert table.place(None)
            inputs = table.inputs[table.part[row, d]]
            before = inputs[row].copy()
            cells, known, _, predicted = table.cells(d)
            forest, guess = refinement.trained_forest(predicted.kind, 10, cells, known, table.seeds[d])
            learner = refinement.Learner(cells.size, Move(0.5), 1.0, 0.0, refinement.Learnt(forest))
            table.refill({d: (learner, guess)})
            assert not np.array_equal(before, inputs[row])
            read.append(inputs[row])
            others = np.delete(before, table.slices[d])[None, :]
            leaking.append(learner.learnt.guess(others).center)
        np.testing.assert_array_equal(*read)
        assert not np.array_equal(*leaking)

    def test_columns_of_nothing_but_noise_are_left_alone(self):
        rng = np.random.default_rng(0)
        frame = holed(pd.DataFrame(rng.standard_normal((150, 3)), columns=list("abc")), 0.2)
        noise = glfm.GLFM(weighted=True, refine=True, **QUICK).fit(frame)
        table = noise.refinement()
        assert (table["learner"] == "none").all()
        assert (table["weight"] == 0.0).all()
        same = with_fit(noise, noise.fit_.unrefined)
        pd.testing.assert_frame_equal(noise.impute(), same.impute())
        pd.testing.assert_frame_equal(noise.impute(n=2)[1], same.impute(n=2)[1])


class TestAnswers:
    def test_hidden_cells_gain(self, model, plain, whole):
        table = model.refinement()
        assert list(table.index) == list(SCHEMA)
        used = table[table["learner"] != "none"]
        assert len(used) >= 4
        assert (used["gain"] > used["error"]).all()
        assert used[["weight", "share"]].max(axis=1).between(0.05, 1.0).all()
        difference = gains(model, plain, whole)
        z = difference.mean() / (difference.std() / np.sqrt(difference.size))
        assert z > 4.0

    def test_a_learner_of_something_else_loses(self, model, plain, whole):
        """The negative control of the test above: leaves and weights are shuffled."""
        learners = {d: replace(one, learnt=_shuffled(one.learnt)) for d, one in _in_use(model).items()}
        assert gains(_last_round(model, learners), plain, whole).mean() < 0.0

    def test_intervals_cover(self, model, whole):
        """Of 90 cells; with a third of the spread, the negative control, they do not."""
        sure = {d: replace(one, move=Move(one.move.weight, 0.3)) for d, one in _in_use(model).items()}
        narrow = _last_round(model, sure)
        assert _covered(model, whole) > 0.82
        assert _covered(narrow, whole) < 0.75

    @pytest.mark.parametrize("new", [False, True])
    def test_samples_are_those_of_the_predictive(self, model, plain, new):
        """Means over tables, in standard errors; the model's own predictions are the negative control."""
        X = holed(bent(60, seed=5), 0.3, seed=6) if new else None
        samples = [s.drop(columns="ward").to_numpy(float) for s in model.predictive(X).sample(64)]
        worst = []
        for one in (model, plain):
            predictive, codes = one.predictive(X), np.arange(3.0)
            p = predictive.proba("pain").to_numpy()
            means = predictive.mean().assign(pain=p @ codes).to_numpy(float)
            sds = predictive.sd().assign(pain=np.sqrt(p @ codes**2 - (p @ codes) ** 2)).to_numpy(float)
            z = (np.mean(samples, axis=0) - means) / (sds / 8.0 + 1e-9)
            worst.append(float(np.sqrt(np.mean(z**2))))
        assert worst[0] < 1.3
        assert worst[1] > 2.0

    def test_every_answer_stays_in_the_support(self, model, whole):
        for table in [model.impute(), model.impute(how="mean"), *model.impute(n=5)]:
            assert table.notna().all(axis=None)
            assert (table["wave"] > 0).all()
            assert (table["visits"] == np.floor(table["visits"])).all()
            assert set(table["ward"]) <= {"inner", "east", "west"}
            assert set(table["pain"]) <= {0, 1, 2}
        np.testing.assert_allclose(model.predictive().proba("ward").sum(axis=1), 1.0)
        assert np.isfinite(model.log_likelihood(whole).to_numpy()).all()

    def test_a_new_row_does_not_depend_on_the_rows_beside_it(self, model):
        X = holed(bent(30, seed=7), 0.4, seed=8)
        pd.testing.assert_frame_equal(model.impute(X).iloc[[4]], model.impute(X.iloc[[4]]))

    def test_a_shift_of_nothing_is_the_imputation(self, model):
        shifted = model.sensitivity("bend", [0.0, 1.0], n=4).table
        tables = model.impute(n=4)
        assert shifted["estimate"].iloc[0] == pytest.approx(np.mean([t["bend"].mean() for t in tables]))
        assert shifted["estimate"].iloc[1] > shifted["estimate"].iloc[0]


class TestLearning:
    def test_it_depends_on_nothing_but_the_fit(self, model):
        again = refined(model.fit_, n_jobs=2)
        for d, one in model.fit_.refinement.learners.items():
            assert again.learners[d].move == one.move
            assert again.learners[d].gain == one.gain
        assert again.in_use.keys() == _in_use(model).keys()
        parts = input_slices(model.fit_.problem)
        for d, one in _in_use(model).items():
            shape = 20, parts[-1].stop - (parts[d].stop - parts[d].start)
            rows = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            for mine, theirs in zip(one.learnt.guess(rows), again.in_use[d].learnt.guess(rows), strict=True):
                np.testing.assert_array_equal(mine, theirs)

    def test_no_time_no_learners(self, model):
        assert not refined(model.fit_, 1, seconds=0.0).learners

    def test_learners_of_the_first_round_improve_what_those_of_the_second_read(self, model):
        """Squared errors of what stands in hidden cells; shuffled guesses are the negative control."""
        errors = []
        for change in (None, lambda guess: guess, _shuffled_guess):
            table = refinement.HiddenInTurn(replace(model.fit_, refinement=None), 1)
            assert table.place(None)
            if change is not None:
                learnt = {d: refinement.learnt_column(table, 25, None, d) for d in range(table.x.shape[1])}
                table.refill({d: (known, change(guess)) for d, (known, guess) in learnt.items()})
            errors.append(_errors_in_holes(table, model))
        assert errors[1] < 0.9 * errors[0]
        assert errors[2] > errors[1]

    def test_the_second_round_gains(self, model, plain, whole):
        """Hidden cells are about as probable with both rounds as with the first alone, or more so.

        If the first round's learners are shuffled, the negative control, the second reads nonsense and loses.
        """
        first, last = model.fit_.refinement.rounds
        misled = {d: _with_shuffled_learners(one) for d, one in first.items()}
        rounds = [(first, last), (first,), (misled, last)]
        both, alone, wrong = (
            gains(
                with_fit(model, replace(model.fit_, refinement=refinement.Refinement(some))), plain, whole
            ).mean()
            for some in rounds
        )
        assert both > alone - 0.05
        assert wrong < alone - 0.05

    def test_ctrl_c_leaves_the_draws(self, model, monkeypatch):
        def stopped(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("glfm.estimators.glfm.refined", stopped)
        with pytest.warns(FitWarning, match="refinement was interrupted"):
            other = with_fit(model, model.fit_).continue_fit(1)
        assert other.fit_.refinement is None
        assert len(other.draws_) == len(model.draws_) + 2

    def test_few_rows_constant_columns_and_one_column(self):
        few = glfm.GLFM(weighted=True, refine=True, **QUICK).fit(bent(30))
        assert (few.refinement()["learner"] == "none").all()
        frame = pd.DataFrame({"a": np.r_[np.arange(119.0), np.nan], "b": 1.0, "c": np.nan})
        with pytest.warns(FitWarning, match="No cell is observed in 'c'"):
            odd = glfm.GLFM({"a": "real", "b": "real", "c": "real"}, refine=True, **QUICK).fit(frame)
        assert (odd.refinement()["learner"][["b", "c"]] == "none").all()
        assert odd.impute()[["a", "b"]].notna().all(axis=None)
        alone = glfm.GLFM({"a": "real"}, refine=True, **QUICK).fit(frame[["a"]])
        assert alone.refinement()["learner"].tolist() == ["none"]

    def test_a_kind_that_does_not_know_how_is_not_refined(self):
        class Plain(Real):
            name = "plain"
            learner = None

            def inputs(self, x, counts):
                return np.empty((x.size, 0))

        try:
            frame = bent(130)[["x", "bend", "pain"]]
            schema = {"x": "real", "bend": Plain(), "pain": "ordinal"}
            model = glfm.GLFM(schema, weighted=True, refine=True, **QUICK).fit(holed(frame))
        finally:
            del KINDS["plain"]
        table = model.refinement()
        assert table["learner"]["bend"] == "none"
        assert np.isnan(table["gain"]["bend"])
        assert table["cells"]["pain"] > 0

    def test_more_draws_are_refined_anew(self, model):
        longer = with_fit(model, model.fit_).continue_fit(2)
        assert longer.fit_.refinement is not None
        assert longer.fit_.refinement is not model.fit_.refinement
        assert longer.set_params(refine=False).continue_fit(2).fit_.refinement is None

    def test_what_refine_may_be(self):
        with pytest.raises(SchemaError, match="refine is True or False, not 'yes'"):
            glfm.GLFM(refine="yes", **QUICK).fit(bent(20))
        assert glfm.GLFM(**QUICK).fit(bent(20)).refinement()["gain"].isna().all()


class TestFiles:
    def test_a_file_gives_the_same_answers(self, model, path, tmp_path):
        X = holed(bent(20, seed=3), 0.4)
        loaded = glfm.load(path)
        pd.testing.assert_frame_equal(loaded.refinement(), model.refinement())
        pd.testing.assert_frame_equal(loaded.impute(), model.impute())
        pd.testing.assert_frame_equal(loaded.impute(X, how="mean"), model.impute(X, how="mean"))
        rowless = glfm.load(model.save(tmp_path / "rowless.glfm", data=False))
        pd.testing.assert_frame_equal(rowless.impute(X), model.impute(X))

    def test_a_file_of_linear_learners_gives_the_same_answers(self, straight, tmp_path):
        kinds = straight.refinement()
        assert {"linear"} < set(kinds["learner"]) | {"both"}
        assert kinds["learner"]["ward"] in ("linear", "both")
        loaded = glfm.load(straight.save(tmp_path / "model.glfm"))
        pd.testing.assert_frame_equal(loaded.refinement(), kinds)
        pd.testing.assert_frame_equal(loaded.impute(), straight.impute())

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("weights", lambda a: np.full_like(a, np.inf)),
            ("weights", lambda a: np.full_like(a, 1e308)),
            ("low", lambda a: a + 1e9),
            ("offsets", lambda a: np.r_[a, a]),
        ],
    )
    def test_linear_learners_that_are_none_are_refused(self, straight, tmp_path, name, change):
        path = straight.save(tmp_path / "model.glfm")
        with pytest.raises(FileError, match="refinement"):
            glfm.load(_with_array(path, tmp_path / "bad.glfm", f"linear/{name}", change))

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("left", lambda a: np.zeros_like(a)),  # a walk without an end
            ("right", lambda a: a + 10**6),
            ("inputs", lambda a: np.where(a >= 0, a + 100, a)),
            ("values", lambda a: np.full_like(a, np.nan)),
            ("seen", lambda a: np.full_like(a, np.inf)),
            ("starts", lambda a: a - 1),
        ],
    )
    def test_trees_that_lead_nowhere_are_refused(self, path, tmp_path, name, change):
        with pytest.raises(FileError, match="trees that lead nowhere"):
            glfm.load(_with_array(path, tmp_path / "bad.glfm", name, change))

    def test_a_share_of_what_no_forest_has_seen_is_refused(self, path, tmp_path):
        def without_forest(head: dict) -> dict:
            for one in head["refinement"][-1]:
                one |= {"forest": None, "share": 0.3}
            return head

        with pytest.raises(FileError, match="mixes in what no forest has seen"):
            glfm.load(_with_head(path, tmp_path / "bad.glfm", without_forest))

    @pytest.mark.parametrize("name", ["share", "width", "of_forest"])
    def test_numbers_beyond_their_bounds_are_refused(self, path, tmp_path, name):
        def beyond(head: dict) -> dict:
            head["refinement"][0][0][name] = -0.1
            return head

        with pytest.raises(FileError, match="makes no sense"):
            glfm.load(_with_head(path, tmp_path / "bad.glfm", beyond))

    def test_format_3(self):
        """A file whose learners came in one round, which every later version must read, with its answers."""
        old = glfm.load(Path(__file__).parents[2] / "data" / "format-3.glfm")
        assert old.refinement()["learner"].tolist() == ["linear", "trees", "both"]
        assert (old.refinement()["share"] == 0.0).all()
        filled = old.impute(
            pd.DataFrame({"x": [1.0, -1.5], "bend": [np.nan] * 2, "line": [np.nan] * 2}), how="mean"
        )
        assert filled["bend"].tolist() == [0.786, 1.413]
        assert filled["line"].tolist() == [0.967, -1.349]


def _errors_in_holes(table: refinement.HiddenInTurn, model: glfm.GLFM) -> float:
    """Return how far what stands in hidden cells is from the values, in squares, over all columns."""
    total = 0.0
    counts = model.fit_.problem.facts.level_counts
    for d, kind in enumerate(model.fit_.problem.kinds.values()):
        for i, known in enumerate(table.inputs):
            hidden = table.part[:, d] == i
            truth = kind.inputs(table.x[hidden, d], counts[d])
            total += float(np.square(known[hidden, table.slices[d]] - truth).sum())
    return total


def _with_head(path: Path, bad: Path, change: Callable[[dict], dict]) -> Path:
    """Copy a model file, and change its head."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bad, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "model.json":
                content = json.dumps(change(json.loads(content))).encode()
            new.writestr(info.filename, content)
    return bad


def _with_array(path: Path, bad: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Path:
    """Copy a model file, and change one array of the first learner that has it."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(bad, "w") as new:
        changed = min(info.filename for info in old.infolist() if info.filename.endswith(f"/{name}.npy"))
        for info in old.infolist():
            content = old.read(info)
            if info.filename == changed:
                content = _npy(change(np.load(old.open(info))))
            new.writestr(info.filename, content)
    return bad


def _npy(values: np.ndarray) -> bytes:
    from io import BytesIO

    out = BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(values), version=(1, 0))
    return out.getvalue()
