"""A kind from a file that is not part of the package works wherever the five that are part of it do."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.kinds import KINDS, MAPPINGS
from glfm.testing import assert_same_draws
from pictures import check_picture

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SETTINGS = {"n_chains": 2, "n_warmup": 60, "n_draws": 25, "thin": 1, "random_state": 1, "progress": False}
SCHEMA = {"taken": "proportion"}


@pytest.fixture(scope="module")
def proportion() -> Iterator[ModuleType]:
    """The example, in the registry for as long as these tests run: others would find it untested."""
    sys.path.insert(0, str(EXAMPLES))
    import proportion

    yield proportion
    sys.path.remove(str(EXAMPLES))
    del KINDS["proportion"], MAPPINGS["logit"], sys.modules["proportion"]


@pytest.fixture(scope="module")
def table(proportion: ModuleType) -> pd.DataFrame:
    """Proportions that are high where there are many visits, many of them exactly 0 or 1, and a level."""
    frame = proportion.make_table(160, seed=3)
    rng = np.random.default_rng(3)
    often = frame["visits"] > 3
    return frame.assign(ward=np.where(often ^ (rng.random(len(frame)) < 0.1), "north", "south"))


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> glfm.GLFM:
    return glfm.GLFM(SCHEMA, **SETTINGS).fit(table)


@pytest.fixture(scope="module")
def parallel(table: pd.DataFrame) -> glfm.GLFM:
    engine = glfm.LocalEngine(n_shards=2)
    return glfm.GLFM(SCHEMA, **SETTINGS, sampler="hybrid", engine=engine).fit(table)


@pytest.fixture(params=["collapsed", "parallel"])
def fitted(request: pytest.FixtureRequest, model: glfm.GLFM, parallel: glfm.GLFM) -> glfm.GLFM:
    return model if request.param == "collapsed" else parallel


NEW = pd.DataFrame({"taken": np.nan, "visits": [0, 2, 9], "ward": ["south", None, "north"]})


def inside(values: pd.Series) -> bool:
    return bool(values.notna().all() and values.between(0.0, 1.0).all())


def log_density(model: glfm.GLFM, values: np.ndarray, given: dict[str, object]) -> np.ndarray:
    """Return log densities of values of one row that is known otherwise."""
    rows = pd.DataFrame([given] * len(values)).assign(taken=np.nan)
    return model.predictive(rows).logpdf(pd.DataFrame({"taken": values}))["taken"].to_numpy()


# ---- completing a table


def test_imputed_values_are_proportions(fitted: glfm.GLFM, table: pd.DataFrame) -> None:
    for how in ("auto", "mean", "median", "mode", "sample"):
        filled = fitted.impute(how=how)["taken"]
        assert inside(filled)
        pd.testing.assert_series_equal(filled[table["taken"].notna()], table["taken"].dropna())
        assert inside(fitted.impute(NEW, how=how)["taken"])


def test_planted_dependence_is_found(fitted: glfm.GLFM) -> None:
    few, _, many = fitted.predictive(NEW).mean()["taken"]
    assert many - few > 0.3
    low, high = fitted.predictive(NEW).interval(0.8)
    assert (low["taken"] <= fitted.predictive(NEW).median()["taken"]).all()
    assert (fitted.predictive(NEW).median()["taken"] <= high["taken"]).all()


def test_ends_have_probabilities_and_the_rest_a_density_of_mass_one(fitted: glfm.GLFM) -> None:
    kind = fitted.schema_["taken"]
    nodes, weights = np.polynomial.legendre.leggauss(200)
    half = 0.5 * (kind.largest - kind.smallest)
    x = kind.smallest + half * (1.0 + nodes)
    given = {"visits": 2, "ward": None}
    p = np.exp(log_density(fitted, np.concatenate([[0.0, 1.0], x]), given))
    assert (p[:2] > 1e-3).all()
    assert (p[:2] < 0.5).all()
    assert p[0] + p[1] + half * (weights @ p[2:]) == pytest.approx(1.0, abs=1e-4)
    mean = p[1] + half * (weights @ (x * p[2:]))
    rows = pd.DataFrame([given]).assign(taken=np.nan)
    predictive = fitted.predictive(rows)
    assert predictive.mean()["taken"][0] == pytest.approx(mean, abs=1e-4)
    second = p[1] + half * (weights @ (x * x * p[2:]))
    assert predictive.sd()["taken"][0] == pytest.approx(np.sqrt(second - mean**2), abs=1e-3)
    steps = [predictive.cdf(pd.DataFrame({"taken": [at]}))["taken"][0] for at in (0.0, kind.largest, 1.0)]
    assert steps == pytest.approx([p[0], 1.0 - p[1], 1.0], abs=1e-6)


def test_samples_hit_the_ends_as_often_as_they_should(model: glfm.GLFM) -> None:
    rows = pd.DataFrame(
        {"taken": np.nan, "visits": np.repeat(np.arange(10), 2), "ward": ["north", "south"] * 10}
    )
    predictive = model.predictive(rows)
    drawn = np.concatenate([copy["taken"].to_numpy() for copy in predictive.sample(50)])
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()
    for end in (0.0, 1.0):
        shares = np.exp(predictive.logpdf(pd.DataFrame({"taken": [end] * len(rows)}))["taken"])
        assert shares.mean() > 0.02
        assert (drawn == end).mean() == pytest.approx(shares.mean(), abs=0.03)
    inner = drawn[(drawn > 0.0) & (drawn < 1.0)]
    assert np.unique(inner).size > 0.99 * inner.size


def test_uncertainty_and_sensitivity(fitted: glfm.GLFM, table: pd.DataFrame) -> None:
    cells = fitted.uncertainty()
    mine = cells[cells["column"] == "taken"]
    assert len(mine) == table["taken"].isna().sum()
    assert mine["reliability"].between(0.0, 1.0).all()
    assert (mine["lower"] <= mine["upper"]).all()
    shifted = fitted.sensitivity("taken", [-2.0, 0.0, 2.0], n=5)
    assert shifted.table["imputed"].is_monotonic_increasing
    assert shifted.table["imputed"].between(0.0, 1.0).all()


def test_calibration(model: glfm.GLFM) -> None:
    found = model.calibration(fraction=0.1, random_state=0)
    assert np.isfinite(
        found.columns.loc["taken", ["log_score", "log_score_alone", "error"]].astype(float)
    ).all()
    assert found.columns.loc["taken", "kind"] == "proportion"
    assert found.columns.loc["taken", "cover_90"] > 0.6


# ---- exploring and asking


def test_features_and_effects(fitted: glfm.GLFM) -> None:
    effects = fitted.effects()
    mine = effects[effects["column"] == "taken"]
    assert mine["level"].isna().all()
    assert mine[["with", "without"]].stack().between(0.0, 1.0).all()
    assert (mine["with"] - mine["without"]).abs().max() > 0.2
    assert any("taken" in words for words in fitted.features()["implications"])


def test_density_under_patterns(fitted: glfm.GLFM, table: pd.DataFrame) -> None:
    found = fitted.density("taken", ["none"])
    assert found.index[0] == 0.0
    assert found.index[-1] == 1.0
    seen = table["taken"].dropna()
    assert found["empirical"].iloc[[0, -1]].tolist() == pytest.approx(
        [(seen == 0).mean(), (seen == 1).mean()]
    )
    inner = found["none"].iloc[1:-1]
    assert found["none"].iloc[[0, -1]].sum() + np.trapezoid(inner, inner.index) == pytest.approx(
        1.0, abs=0.02
    )


def test_dependence_and_explanation(fitted: glfm.GLFM) -> None:
    information = fitted.dependence()
    assert information.loc["taken", "visits"] > 0.05
    told = fitted.explain({"visits": 9, "ward": "north"}, "taken")
    assert told.columns.loc["visits", "shift"] > 0.0
    assert "taken" in str(told)


def test_asking(fitted: glfm.GLFM) -> None:
    answer = fitted.ask("taken", {"visits": 9})
    assert 0.0 <= answer.interval()[0] <= answer.median <= answer.interval()[1] <= 1.0
    assert answer.mean > fitted.ask("taken", {"visits": 0}).mean
    assert json.dumps(answer.to_dict())
    logp = [float(fitted.logp({"taken": x}, {"visits": 9})) for x in (0.0, 1.0)]
    assert logp[1] > logp[0]
    rows = fitted.simulate(400, given={"ward": "north"})
    assert inside(rows["taken"])
    assert (rows["taken"] == 1.0).any()


def test_odd_cells(model: glfm.GLFM, table: pd.DataFrame) -> None:
    odd = table.copy()
    odd.loc[0, ["taken", "visits", "ward"]] = [0.0, 12, "north"]
    surprisal = model.surprisal(odd)
    assert surprisal.loc[0, "taken"] > surprisal["taken"].median()
    assert np.isfinite(surprisal["taken"].dropna()).all()
    cells = model.odd_cells(odd, top=40)
    assert (cells[cells["column"] == "taken"]["row"] == 0).any()
    assert np.isfinite(model.novelty(odd).to_numpy()).all()


# ---- pictures and pages


def test_every_picture(fitted: glfm.GLFM) -> None:
    plt.close("all")  # figures of other tests
    plot = fitted.plot
    for name in ("patterns", "effects", "dependence", "shares", "features", "trace", "missing", "imputed"):
        check_picture(getattr(plot, name)())
    check_picture(plot.pseudo("taken"))
    artists = plot.patterns("taken")
    check_picture(artists)
    assert artists.data.loc["taken"].index[[0, -1]].tolist() == [0.0, 1.0]
    labels = [ax.get_ylabel() for ax in artists.figure.axes]
    assert "probability of 0 or 1" in labels


def test_report(fitted: glfm.GLFM, tmp_path: Path) -> None:
    page = fitted.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "proportion" in page
    atoms = re.findall(r'"atoms": ?\[\{"value": ?0.*?\{"value": ?1,', page)
    assert atoms


# ---- files, other fits, clusters


def test_saved_and_loaded(fitted: glfm.GLFM, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "model.glfm")
    again = glfm.load(path)
    assert again.schema_ == fitted.schema_
    assert_same_draws(again.draws_, fitted.draws_)
    pd.testing.assert_frame_equal(again.impute(NEW), fitted.impute(NEW))


def test_a_file_is_refused_with_a_sentence_where_the_kind_is_unknown(
    model: glfm.GLFM, tmp_path: Path
) -> None:
    path = model.save(tmp_path / "model.glfm")
    code = f"import glfm; glfm.load({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode != 0
    assert "nknown kind 'proportion': import the file that defines it" in done.stderr


def test_more_rows(model: glfm.GLFM, table: pd.DataFrame, proportion: ModuleType) -> None:
    longer = glfm.GLFM(SCHEMA, **SETTINGS).fit(table.iloc[:100]).append(table.iloc[100:])
    assert inside(longer.impute()["taken"])


def test_weighted_features_and_quantiles(table: pd.DataFrame, proportion: ModuleType) -> None:
    schema = {"taken": proportion.Proportion(mapping="quantile")}
    weighted = glfm.GLFM(schema, **SETTINGS, weighted=True).fit(table)
    assert inside(weighted.impute()["taken"])
    few, _, many = weighted.predictive(NEW).mean()["taken"]
    assert many > few


def test_a_partitioned_table(table: pd.DataFrame) -> None:
    distributed = pytest.importorskip("distributed")
    dd = pytest.importorskip("dask.dataframe")
    quiet = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1, "silence_logs": 50}
    settings = {**SETTINGS, "n_warmup": 3, "n_draws": 2, "thin": 1, "sampler": "hybrid"}
    near = glfm.GLFM(SCHEMA, **settings, engine=glfm.LocalEngine(n_shards=2)).fit(table)
    with (
        distributed.LocalCluster(n_workers=1, processes=True, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.upload_file(str(EXAMPLES / "proportion.py"))
        engine = glfm.DaskEngine(client, n_shards=2)
        far = glfm.GLFM(near.schema_, **settings, engine=engine)
        far.fit(dd.from_pandas(table, npartitions=3))
        filled = far.impute().compute()
        assert_same_draws(far.draws_, near.draws_)
    assert inside(filled["taken"])


# ---- the tests that every kind has


def run_tests(*paths: str, more: tuple[str, ...] = ()) -> None:
    """Run the tests of every kind with this one registered, in a process of its own, and check they pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "sixth_kind", "-k", "proportion", *more]
    done = subprocess.run(
        [*command, *(str(ROOT / "tests" / path) for path in paths)],
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
        cwd=ROOT / "tests",
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) >= len(paths)


@pytest.mark.slow
def test_the_tests_of_every_kind_pass() -> None:
    run_tests(
        "unit/kinds",
        "property/test_kinds_properties.py",
        "unit/posterior/test_uncertainty.py",
        "unit/analysis/test_calibration.py",
        "unit/analysis/test_dependence.py",
        "unit/sampling/test_extremes.py",
        "unit/storage/test_model_files.py",
    )


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["enumeration", "geweke", "hybrid"])
def test_chains_have_the_exact_posterior(name: str) -> None:
    run_tests(f"statistical/test_{name}.py")
