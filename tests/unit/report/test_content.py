"""The content of the report is what the model says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.summary import Summary, histogram_edges
from glfm.datasets import make_clinic
from glfm.report import Content, collect, render
from glfm.report.formatting import number, percent
from pages import Page, content_of, fitted


def test_features_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    table = model.features()
    assert [one.name for one in content.features] == list(table.index)
    for one in content.features:
        row = table.loc[one.name]
        assert (one.share, one.stability) == (row["share"], row["stability"])
        assert one.status == row["status"]
        assert (one.lower, one.upper, one.rows) == (row["lower"], row["upper"], row["rows"])
        assert len(one.effects) == (row["implications"].count(";") + 1 if row["implications"] else 0)
    assert content.clear
    for one in content.clear:
        assert f"{percent(one.share)} of rows" in page.text
        assert f"found in {percent(one.stability)} of draws" in page.words


def test_effects_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    effects = model.effects()
    for one in content.clear:
        for said in one.effects:
            rows = effects[(effects["feature"] == one.name) & (effects["column"] == said.column)]
            at = [None if level is None else str(level) for level in rows["level"]].index(said.level)
            row = rows.iloc[at]
            write = number if said.level is None else percent
            assert (said.without, said.having) == (write(row["without"]), write(row["with"]))
            assert said.effect == row["effect"]
            assert ("higher" in said.direction or "more" in said.direction) == (row["with"] >= row["without"])
            assert said.without in page.text


def test_unstable_features_stand_apart(model: glfm.GLFM, content: Content) -> None:
    first = replace(content.features[0], status="unstable", stability=0.3)
    changed = replace(content, features=[first, *content.features[1:]], others={"unstable": 1})
    html = render(changed)
    cards, _, apart = html.partition("Features not to build on")
    assert apart
    assert f'<span class="feature">{first.name}</span> {first.meaning}</h3>' not in cards
    assert f'<th scope="row">{first.name}</th><td>unstable</td>' in apart
    assert "one unstable feature" in apart


def test_a_feature_of_all_rows_tells_none_apart(model: glfm.GLFM) -> None:
    table = model.features()
    first = table.index == "F1"
    changed = table.assign(
        share=np.where(first, 0.98, table["share"]), status=np.where(first, "everywhere", table["status"])
    )
    summary = Summary(model.fit_)
    summary.__dict__["features"] = changed
    found = collect(summary)
    assert not any("F1" in pattern.name for pattern in found.patterns)
    assert "one feature everywhere" in Page(render(found)).words


def test_chains_that_find_a_feature(model: glfm.GLFM, content: Content) -> None:
    found = Summary(model.fit_).aligned.found
    chain = np.array([draw.chain for draw in model.draws_])
    for k, one in enumerate(content.features):
        assert one.chains == sum(found[chain == c, k].mean() >= 0.5 for c in (0, 1))
        assert one.is_disputed == (one.chains < 2)


def test_patterns_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    table = model.patterns(features=[one.name for one in content.clear])
    assert [one.name for one in content.patterns] == list(table.index[:12])
    assert [one.rows for one in content.patterns] == list(table["rows"][:12])
    shares = sum(one.share for one in content.patterns) + content.more_share
    assert shares == pytest.approx(1.0)
    assert content.more_patterns == max(len(table) - 12, 0)
    none = table["share"].get("none", 0.0)
    assert f"{percent(1 - none)} of the rows have" in page.words


def test_missingness_is_that_of_the_table(content: Content, page: Page) -> None:
    frame = make_clinic(200).frame
    assert content.missing.n_holes == int(frame.isna().sum().sum())
    assert content.missing.complete_rows == int(frame.notna().all(axis=1).sum())
    for column in content.columns:
        assert column.missing == pytest.approx(frame[column.name].isna().mean())
    assert f"{content.missing.n_holes:,} of {frame.size:,} cells are missing" in page.words


def test_kinds_and_reasons(model: glfm.GLFM, content: Content, page: Page) -> None:
    for column in content.columns:
        assert column.kind == model.schema_[column.name].name
        assert column.reason == model.schema_.reasons[column.name]
        assert column.reason in page.text
        assert column.summary in page.text


def test_convergence_is_that_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    found = model.diagnostics()
    assert content.convergence.state == ("yes" if found.converged else "no")
    assert found.verdict in page.words
    for row, (name, values) in zip(content.convergence.table, found.table.iterrows(), strict=True):
        assert (row["name"], row["rhat"]) == (name, f"{values['rhat']:.3f}")
    assert [len(trace.lines) for trace in content.convergence.traces] == [2, 2]


def test_settings_seed_and_versions(content: Content, page: Page) -> None:
    assert dict(content.settings)["seed"] == "0"
    assert dict(content.settings)["draws kept"] == "30 (15 per chain)"
    assert dict(content.versions)["glfm"] == glfm.__version__
    for name in ("numpy", "numba", "Python"):
        assert dict(content.versions)[name] in page.text


def test_view_is_that_of_the_model(model: glfm.GLFM, content: Content) -> None:
    names = [pattern["name"] for pattern in content.view["patterns"]]
    assert "none" in names
    for column in content.view["columns"]:
        table = model.density(column["name"], names)
        if column["type"] == "levels":
            assert column["levels"] == [str(level) for level in table.index]
        if column["type"] in ("levels", "counts"):
            for drawn, series in zip(column["series"], table.columns, strict=True):
                np.testing.assert_allclose(drawn, table[series], rtol=1e-3, atol=1e-4 * table[series].max())
        else:
            at = np.array(column["at"]) if column["log"] else None
            grid = column["first"] + column["step"] * np.arange(column["n"]) if at is None else 10**at
            wanted = model.density(column["name"], names, grid)
            for drawn, series in zip(column["series"][1:], wanted.columns[1:], strict=True):
                heights = wanted[series].to_numpy() * (grid * np.log(10) if column["log"] else 1.0)
                np.testing.assert_allclose(drawn, heights, rtol=1e-2, atol=2e-4 * heights.max())


def test_bars_hold_the_share_of_their_cells() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "even": rng.normal(size=60),
            "wide": np.exp(2.5 * rng.normal(size=60)),
            "zeros": np.where(rng.random(60) < 0.3, 0.0, rng.gamma(3.0, size=60)),
            "both": np.where(rng.random(60) < 0.3, 0.0, np.exp(2.5 * rng.normal(size=60))),
            "counts": (1000 * np.exp(2.0 * rng.normal(size=60))).astype(int),
        }
    )
    drawn = content_of(fitted(frame, n_chains=1, n_warmup=5, n_draws=3)).view["columns"]
    assert [(column["log"], not column["atoms"]) for column in drawn] == [
        (False, True),
        (True, True),
        (False, False),
        (True, False),
        (True, False),
    ]
    for column in drawn:
        seen = frame[column["name"]].dropna().to_numpy(dtype=float)
        inside = seen[seen != 0.0] if column["atoms"] or column["log"] else seen
        inside = np.log10(inside) if column["log"] else inside
        edges = histogram_edges(inside)
        first = int(np.argmin(np.abs(edges - column["edges"][0])))
        count, _ = np.histogram(inside, edges)
        area = np.array(column["bins"]) * np.diff(column["edges"])
        np.testing.assert_allclose(area, count[first : first + area.size] / seen.size, rtol=2e-3, atol=1e-6)


def test_no_density_where_only_zero_has_a_probability() -> None:
    rng = np.random.default_rng(4)
    values = np.where(rng.random(80) < 0.4, 0.0, 1.0 + rng.gamma(2.0, size=80))
    model = fitted(pd.DataFrame({"a": values, "b": rng.normal(size=80)}), n_chains=1, n_warmup=5)
    table = model.density("a", ["none"])
    assert table.index[0] == 0.0
    assert table.index[1] >= values[values > 0].min()
    column = content_of(model).view["columns"][0]
    (zero,) = column["atoms"]
    assert zero["value"] == 0.0
    assert zero["shares"][0] == pytest.approx((values == 0).mean(), rel=1e-3)
    assert zero["shares"][1] == pytest.approx(table["none"].iloc[0], rel=1e-3)


@pytest.mark.parametrize("name", ["bp_change", "crp", "visits", "ward", "pain"])
def test_chances_are_those_of_the_predictive(model: glfm.GLFM, name: str) -> None:
    from glfm.posterior.surprisal import log_chance

    frame, cells = make_clinic(200).frame, model.predictive()
    rows = np.flatnonzero(frame[name].notna())
    x = model.fit_.rows.x[rows, model.fit_.place(name)]
    log_p = log_chance(cells.cells(name, rows), x)
    at = np.exp(cells.logpdf(frame)[name].to_numpy()[rows])
    if name == "ward":
        wanted = at
    else:
        below = cells.cdf(frame)[name].to_numpy()[rows]
        is_point = name == "bp_change" or (name == "crp" and not model.schema_.kinds[name].atoms.size)
        has_mass = np.zeros(rows.size) if is_point else at
        if name == "crp" and not is_point:
            has_mass = np.where(x == 0.0, at, 0.0)
        wanted = np.minimum(2 * np.minimum(below, 1 - below + has_mass), 1.0)
    np.testing.assert_allclose(np.exp(log_p), wanted, rtol=1e-6, atol=1e-9)


def test_a_planted_error_is_found() -> None:
    from glfm.posterior.surprisal import log_chance

    frame = make_clinic(200).frame.copy()
    label = frame.index[frame["bp_change"].notna()][17]
    frame.loc[label, "bp_change"] = 120.0
    model = fitted(frame, n_warmup=100)
    first = content_of(model).surprise.cells[0]
    assert (first.row, first.column, first.value) == (label, "bp_change", "120")
    assert first.chance == "less than 1 in a million"
    # The negative control: features that were drawn given the cell explain it away.
    row = np.array([list(frame.index).index(label)])
    careless = log_chance(model.predictive().cells("bp_change", row), np.array([120.0]))
    assert careless[0] > first.log_p + 10.0


def test_surprises_are_in_order_and_bounded(content: Content, page: Page) -> None:
    chances = [cell.log_p for cell in content.surprise.cells]
    assert chances == sorted(chances)
    assert len(chances) <= 20
    assert all(cell.chance in page.text for cell in content.surprise.cells)
    assert content.surprise.n_cells == int(make_clinic(200).frame.notna().sum().sum())
