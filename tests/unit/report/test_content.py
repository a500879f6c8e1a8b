"""The content of the report is what the model says."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.summary import Summary, histogram_edges
from glfm.datasets import make_clinic
from glfm.report import Content, collect, render, surprising_cells
from glfm.report.formatting import clipped, pair, percent
from pages import Page, content_of, fitted
from tables import people


def test_features_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    table = model.features()
    assert [one.name for one in content.features] == list(table.index)
    assert list(table["explained"]) == sorted(table["explained"], reverse=True)
    for one in content.features:
        row = table.loc[one.name]
        assert (one.share, one.form, one.explained) == (row["share"], row["form"], row["explained"])
        assert one.status == row["status"]
        assert (one.lower, one.upper, one.rows) == (row["lower"], row["upper"], row["rows"])
        assert len(one.effects) == (row["implications"].count(";") + 1 if row["implications"] else 0)
    assert content.clear
    for one in content.clear:
        assert f"{percent(one.share)} of the rows have it" in page.text
        assert one.sentence in page.text
        assert f"Explains {percent(one.explained)}." in page.words


def test_effects_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    effects = model.effects()
    for one in content.clear:
        for said in one.effects:
            row = _row(effects, one.name, said.column, said.level)
            if said.level is not None:
                assert (said.without, said.having) == (percent(row["without"]), percent(row["with"]))
            elif said.what.startswith("mean of"):
                numbers = pair(model.schema_.kinds[said.column], row["without"], row["with"])
                assert (said.without, said.having) == numbers
            assert said.effect == row["effect"]
            assert said.without in page.text
            assert said.having in page.text


def _row(effects: pd.DataFrame, feature: str, column: str, level: str | None) -> pd.Series:
    rows = effects[(effects["feature"] == feature) & (effects["column"] == column)]
    return rows.iloc[[None if one is None else str(one) for one in rows["level"]].index(level)]


def test_words_say_the_sign_of_the_effect(content: Content, graded_content: Content) -> None:
    for one in (*content.clear, *graded_content.clear):
        for said in one.effects:
            down = said.direction.startswith(("lower", "less often"))
            assert down == (said.effect < 0) or "nearer to" in said.direction
            shown = [text.removesuffix("\xa0%").replace("under ", "").replace("over ", "") for text in
                     (said.without, said.having)]  # fmt: skip
            low, high = (float(text.replace("\u2212", "-").replace(",", "")) for text in shown)
            assert (high > low) == (said.effect > 0)


def test_cards_and_the_glance_agree(content: Content, graded_content: Content) -> None:
    for found in (content, graded_content):
        cells = {
            (feature.name, column): cell
            for column, row in found.map_rows
            for feature, cell in zip(found.map_features, row, strict=True)
        }
        assert len(cells) == len(found.clear) * len(found.map_rows)
        for one in found.clear:
            assert one.effects
            for said in one.effects:
                cell = cells[one.name, said.column]
                assert cell.effect == said.effect
                assert cell.level == ("" if said.level is None else clipped(said.level, 24))
                assert np.sign(cell.step) in (0, np.sign(said.bar))
                assert cell.text in ("0", f"{said.effect:+.1f}".replace("-", "\u2212"))


def test_of_two_levels_the_more_frequent_one_is_named(content: Content, model: glfm.GLFM) -> None:
    two = {name for name, kind in model.schema_.kinds.items() if kind.n_levels == 2}
    assert two
    said = [one for feature in content.features for one in feature.effects if one.column in two]
    assert said
    assert all(one.effect > 0 for one in said)
    assert not any("less often" in one.direction for one in said)
    for column, row in content.map_rows:
        assert column not in two or all(cell.effect >= 0 for cell in row)


def test_scales_are_shown_as_scales(graded_content: Content) -> None:
    (one,) = graded_content.features
    assert one.is_scale
    html = render(graded_content)
    page = Page(html)
    assert "one scale from low to high" in page.words
    assert "From the lowest to the highest third of the rows" in page.words
    assert "m0 rises" in page.words
    assert "sick = " in page.words
    assert "of the rows have it" not in page.words
    assert "unknown" not in one.sentence
    assert 'class="one graded"' in html
    assert not graded_content.patterns
    assert 'id="patterns"' not in html
    assert [group["name"] for group in graded_content.view["patterns"]] == ["F1 low", "F1 high"]
    runs = graded_content.strips[0].runs
    assert [shade for _, _, shade in runs] == sorted((shade for _, _, shade in runs), reverse=True)
    assert len(runs) > 8


def test_thirds_of_a_scale_are_those_of_the_table(graded_content: Content) -> None:
    (one,) = graded_content.features
    column = graded_content.view["columns"][4]
    assert column["name"] == "sick"
    sick = next(said for said in one.effects if said.column == "sick")
    drawn = np.array(column["series"])[:, column["levels"].index(sick.level)]
    assert drawn[1] == pytest.approx(float(sick.without.removesuffix("\xa0%")) / 100, abs=0.12)
    assert drawn[2] == pytest.approx(float(sick.having.removesuffix("\xa0%")) / 100, abs=0.12)


@pytest.mark.parametrize(
    "status",
    ["unstable", pytest.param("rare", marks=pytest.mark.slow), pytest.param("faint", marks=pytest.mark.slow)],
)
def test_what_is_not_clear_is_not_in_the_foreground(model: glfm.GLFM, status: str) -> None:
    table = model.features()
    summary = Summary(model.fit_)
    summary.__dict__["features"] = table.assign(status=np.where(table.index == "F1", status, table["status"]))
    found = collect(summary)
    assert [one.name for one in found.clear] == ["F2", "F3", "F4"]
    assert [strip.feature.name for strip in found.strips] == ["F2", "F3", "F4"]
    assert [feature.name for feature in found.map_features] == ["F2", "F3", "F4"]
    assert not any("F1" in pattern.name for pattern in found.patterns)
    assert not any("F1" in group["name"] for group in found.view["patterns"])
    before, _, apart = render(found).partition("One feature not to build on")
    assert f'<th scope="row">F1</th><td>{status}</td>' in apart
    assert ">F1<" not in before
    assert "three yes-or-no traits" in before


def test_the_curve_is_that_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    table = Summary(model.fit_).explained
    for k, share, _, y, again in content.curve.points:
        assert share == table["explained"][k]
        assert again == table["reproduced"][k]
        assert y == pytest.approx(content.curve.height * (1 - share))
    n = len(model.features())
    assert content.curve.n_reproduced == n
    assert content.curve.reached == table["explained"][n]
    assert f"explain {percent(content.curve.reached)} of what the model knows" in page.words


def test_strips_have_all_rows(model: glfm.GLFM, content: Content) -> None:
    for strip in content.strips:
        dark = sum(length for _, length, shade in strip.runs if shade > 0.5)
        assert dark == pytest.approx(strip.feature.rows, abs=2)
        assert strip.width == 200
        assert all(0 < shade <= 1 for _, _, shade in strip.runs)


def test_numbers_of_features_of_draws(model: glfm.GLFM, content: Content, page: Page) -> None:
    numbers = [draw.n_features for draw in model.draws_]
    assert sum(share for _, share, _ in content.counts.bars) == pytest.approx(1.0)
    assert content.counts.lower <= np.median(numbers) <= content.counts.upper
    assert "not findings" in page.words


def test_patterns_are_those_of_the_model(model: glfm.GLFM, content: Content) -> None:
    table = model.patterns()
    assert [one.name for one in content.patterns] == list(table.index[:12])
    assert [one.rows for one in content.patterns] == list(table["rows"][:12])
    shares = sum(one.share for one in content.patterns) + content.more_share
    assert shares == pytest.approx(1.0)
    assert content.more_patterns == max(len(table) - 12, 0)


def test_patterns_add_up_to_all_rows(model: glfm.GLFM, people_model: glfm.GLFM) -> None:
    """Shares of patterns times distributions under them are the column's own, as the model has it."""
    for fit in (model, people_model):
        table = fit.patterns()
        for name, kind in fit.schema_.kinds.items():
            if kind.n_levels:
                under = fit.density(name, list(table.index))[list(table.index)]
                mixed = under.to_numpy() @ table["share"].to_numpy()
                every = fit.predictive().cells(name, np.arange(len(fit.activations()))).probabilities
                np.testing.assert_allclose(mixed, every.mean(axis=0), atol=0.02)


def test_patterns_add_up_to_the_table(people_model: glfm.GLFM) -> None:
    table, frame = people_model.patterns(), people()
    for name in ("diet", "mood", "town"):
        under = people_model.density(name, list(table.index))
        mixed = under[list(table.index)].to_numpy() @ table["share"].to_numpy()
        own = frame[name].value_counts(normalize=True)[list(under.index)]
        np.testing.assert_allclose(under["empirical"], own)
        np.testing.assert_allclose(mixed, own, atol=0.03)


def test_links_are_those_of_the_model(model: glfm.GLFM, content: Content, page: Page) -> None:
    table = model.dependence()
    strongest = table.to_numpy()[np.triu_indices(len(table), 1)].max()
    assert content.links.strongest == strongest
    sizes = [link.information for link in content.links.pairs]
    assert sizes == sorted(sizes, reverse=True)
    for link in content.links.pairs:
        assert link.information == table.loc[link.first, link.second]
        assert link.words in page.text


def test_links_say_what_is_in_the_table() -> None:
    rng = np.random.default_rng(0)
    on = rng.random(150) < 0.4
    frame = pd.DataFrame(
        {"sex": np.where(on, "f", "m"), "alive": np.where(rng.random(150) < 0.2 + 0.6 * on, "yes", "no")}
    )
    content = content_of(fitted(frame))
    (link,) = content.links.pairs
    shares = frame.groupby("sex")["alive"].value_counts(normalize=True)
    assert f"alive = yes: {percent(shares['f', 'yes'])} where sex = f" in link.words or (
        f"alive = no: {percent(shares['m', 'no'])} where sex = m" in link.words
    )


def test_nothing_to_see_in_noise() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.standard_normal(150),
            "b": rng.standard_normal(150),
            "c": rng.choice(["x", "y"], 150),
            "d": rng.poisson(3, 150),
        }
    )
    content = content_of(fitted(frame, n_warmup=60))
    assert not content.clear
    assert content.links.is_nothing
    assert not content.links.pairs
    page = Page(render(content))
    assert "There is nothing to see" in page.words
    assert "No feature is clear." in page.words


def test_without_a_clear_feature_the_links_lead(model: glfm.GLFM) -> None:
    summary = Summary(model.fit_)
    summary.__dict__["features"] = model.features().assign(status="unstable")
    html = render(collect(summary))
    first, _, _ = html.partition("<nav")
    words = Page(first).words
    assert "which columns depend on each other, the strongest first" in words
    assert 'class="stacked links"' in first
    assert ">F1<" not in first


def test_methods_can_be_pasted(model: glfm.GLFM, content: Content, page: Page) -> None:
    assert content.methods in page.text
    for words in (f"glfm {glfm.__version__}", "seed 0", "two chains", "150 warm-up sweeps", "15 kept draws"):
        assert words in content.methods
    assert f"{len(model.features())}" in content.methods or "Four axes were" in content.methods


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
    on = rng.random(80) < 0.5
    values = np.where(rng.random(80) < 0.2 + 0.5 * on, 0.0, 1.0 + rng.gamma(2.0, size=80))
    others = {f"b{i}": 6.0 * on + rng.normal(size=80) for i in range(3)}
    model = fitted(pd.DataFrame({"a": values} | others))
    table = model.density("a", ["none"])
    assert table.index[0] == 0.0
    assert table.index[1] >= values[values > 0].min()
    content = content_of(model)
    place = [group["name"] for group in content.view["patterns"]].index("none")
    (zero,) = content.view["columns"][0]["atoms"]
    assert zero["value"] == 0.0
    assert zero["shares"][0] == pytest.approx((values == 0).mean(), rel=1e-3)
    assert zero["shares"][1 + place] == pytest.approx(table["none"].iloc[0], rel=1e-3)


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


def test_all_rows_of_a_large_table_are_looked_at(model: glfm.GLFM, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = surprising_cells.surprising_cells(Summary(model.fit_))
    n_columns = len(model.schema_.kinds)
    monkeypatch.setattr(surprising_cells, "_MOST_WORK", 60 * n_columns**2)
    some = surprising_cells.surprising_cells(Summary(model.fit_))
    assert (whole.n_close, some.n_close) == (200, 60)
    assert some.n_rows == 200
    assert some.all_rows
    assert some.n_cells == whole.n_cells
    found = {(cell.row, cell.column) for cell in some.cells[:10]}
    assert len(found & {(cell.row, cell.column) for cell in whole.cells[:10]}) >= 8
    monkeypatch.setattr(surprising_cells, "_MOST_CELLS", 100 * n_columns)
    few = surprising_cells.surprising_cells(Summary(model.fit_))
    assert (few.n_rows, few.all_rows) == (100, False)


def test_fewer_rows_are_examined_if_there_is_little_time(model: glfm.GLFM) -> None:
    hasty, patient = (
        surprising_cells.surprising_cells(Summary(model.fit_), seconds) for seconds in (0.0, 1e6)
    )
    assert (hasty.n_rows, hasty.n_close) == (200, 20)
    assert (patient.n_rows, patient.n_close) == (200, 200)
