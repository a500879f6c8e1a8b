"""The report: what it says is what the model says, and text from the table is only ever text."""

import base64
import hashlib
import json
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.analysis.summary import Summary, histogram_edges
from glfm.datasets import make_clinic
from glfm.report import Content, collect, render
from glfm.report.formatting import chance, clipped, counted, number, percent
from tables import HOSTILE
from tables import hostile as hostile_table


def fitted(frame: Any, **settings: Any) -> glfm.GLFM:
    chosen = {"n_chains": 2, "n_warmup": 40, "n_draws": 10, "random_state": 0, "progress": False} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        return glfm.GLFM(**chosen).fit(frame)


def content_of(model: glfm.GLFM, title: str | None = None) -> Content:
    return collect(Summary(model.fit_), title)


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "style":
            self.styles.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.cdata_elem == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.cdata_elem == "style":
            self.styles[-1] += data
        else:
            self.text += data

    @property
    def words(self) -> str:
        return re.sub(r"[ \n]+", " ", self.text)  # and no-break spaces stay


@pytest.fixture
def model(clinic_model):
    return clinic_model


@pytest.fixture(scope="module")
def content(clinic_model: glfm.GLFM) -> Content:
    return content_of(clinic_model, "Clinic")


@pytest.fixture(scope="module")
def page(content: Content) -> Page:
    return Page(render(content))


@pytest.fixture(scope="module")
def hostile() -> tuple[Content, str]:
    content = content_of(fitted(hostile_table(), schema={HOSTILE["proto"]: "categorical"}), HOSTILE["script"])
    return content, render(content)


# ---- what it says is true


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


# ---- surprising cells


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


# ---- what it is


def test_nothing_comes_from_elsewhere(page: Page, hostile: tuple[Content, str]) -> None:
    for one in (page, Page(hostile[1])):
        for _, name, value in one.attributes:
            if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
                assert value.startswith(("#", "data:,")), value
            assert not name.startswith("on")
            assert name != "style"
        assert not {"iframe", "object", "embed", "img", "base"} & set(one.tags)
        assert "url(" not in one.styles[0]
        assert "@import" not in one.styles[0]


def test_only_its_own_style_and_script_may_run(page: Page) -> None:
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    code = [text for attributes, text in page.scripts if "type" not in attributes]
    for text, what in [(code[0], "script-src"), (page.styles[0], "style-src")]:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{what} 'sha256-{digest}'" in policy
    assert len(code) == 1


def test_hostile_text_is_only_text(hostile: tuple[Content, str]) -> None:
    content, html = hostile
    page = Page(html)
    assert len(page.scripts) == 2
    data = json.loads(page.scripts[0][1])
    assert [column["name"] for column in data["columns"]] == list(HOSTILE.values())
    assert set(data["columns"][1]["levels"]) == set(HOSTILE.values())
    assert not set("<>&\u2028\u2029") & set(page.scripts[0][1])
    for text in HOSTILE.values():
        assert clipped(text, 100) in page.text
    assert "49" not in [column.name for column in content.columns]
    assert html.count("<script") == 2


def test_escaping_is_what_protects(hostile: tuple[Content, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: without it, the text of the table becomes elements."""
    import jinja2

    class Careless(jinja2.Environment):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**(settings | {"autoescape": False}))

    monkeypatch.setattr(jinja2, "Environment", Careless)
    assert len(Page(render(hostile[0])).scripts) > 2


def test_same_fit_same_bytes(tmp_path: Path) -> None:
    frame = make_clinic(60).frame
    paths = [
        fitted(frame, n_warmup=5, n_draws=4).report(tmp_path / f"{i}.html", title="Clinic") for i in range(2)
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.html", "1.html"]


def test_small_for_fifty_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 120
    z = rng.random((n, 4)) < 0.4
    columns: dict[str, Any] = {}
    for d in range(50):
        signal = z[:, d % 4] * 2.0
        columns[f"a column with a name of some length {d}"] = (
            rng.normal(signal, 1.0)
            if d % 4 == 0
            else rng.lognormal(signal, 1.0)
            if d % 4 == 1
            else rng.poisson(30 * (1 + signal))
            if d % 4 == 2
            else np.array([f"level {i}" for i in range(51)])[
                (rng.integers(0, 40, n) + 5 * signal).astype(int)
            ]
        )
    schema = {name: "categorical" for name, x in columns.items() if x.dtype.kind == "U"}
    model = fitted(pd.DataFrame(columns), schema=schema, n_chains=1, n_warmup=5, n_draws=4)
    assert model.report(tmp_path / "wide.html").stat().st_size < 5_000_000


# ---- all sorts of tables


def _as(library: str, frame: pd.DataFrame) -> Any:
    if library == "pandas":
        return frame
    return pytest.importorskip("polars").from_pandas(frame) if library == "polars" else _arrow(frame)


def _arrow(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_libraries_and_ignored_columns(library: str, tmp_path: Path) -> None:
    frame = make_clinic(40).frame.reset_index()
    model = fitted(_as(library, frame), n_chains=1, n_warmup=5, n_draws=2)
    html = model.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "of which 1 is left aside" in Page(html).words
    assert "too few draws to judge" in Page(html).words


TABLES = {
    "two columns": pd.DataFrame({"a": np.linspace(-1, 1, 30), "b": ["x", "y"] * 15}),
    "one row": pd.DataFrame({"a": [1.5], "b": ["x"]}),
    "levels": pd.DataFrame({"flag": [True, False] * 10, "code": [0, 1] * 10, "one": ["only"] * 20}),
    "constant": pd.DataFrame({"a": np.ones(20), "n": np.zeros(20, dtype=int), "b": np.arange(20) / 7}),
    "empty column": pd.DataFrame({"a": np.full(20, np.nan), "b": np.arange(20.0) / 3}),
    "zeros": pd.DataFrame({"a": [0.0, 0.0, 1.5, 300.25] * 10, "n": [0, 0, 3, 90_000] * 10}),
    "nearly all zero": pd.DataFrame({"a": [0.0] * 399 + [2.5], "b": np.arange(400) % 7}),
    "labels": pd.DataFrame({"a": np.arange(12) / 5}, index=pd.MultiIndex.from_product([["u"], range(12)])),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("bias", [True, False])
def test_odd_tables(case: str, bias: bool, tmp_path: Path) -> None:
    model = fitted(TABLES[case], n_chains=1, n_warmup=5, n_draws=3, bias=bias)
    html = model.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "NaN" not in html
    assert Page(html).words.count("unknown") < 40


def test_no_features(tmp_path: Path) -> None:
    model = fitted(make_clinic(30).frame, n_warmup=5).set_params(random_state=None)
    model.fit(make_clinic(30).frame, inactive=np.ones(30, dtype=bool))
    assert not len(model.features())
    words = Page(model.report(tmp_path / "r.html").read_text(encoding="utf-8")).words
    assert "No feature is clear" in words
    assert "Run longer" in words
    assert "none: another run gives other draws" in words


@pytest.mark.parametrize(
    ("name", "words"), [("report.pdf", "extension .html"), ("no/report.html", "there is no such directory")]
)
def test_paths_that_are_refused(model: glfm.GLFM, tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(glfm.DataError, match=words):
        model.report(tmp_path / name)


def test_a_directory_in_the_way(model: glfm.GLFM, tmp_path: Path) -> None:
    (tmp_path / "r.html").mkdir()
    with pytest.raises(glfm.DataError, match="cannot be written"):
        model.report(tmp_path / "r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_an_unfitted_model_has_no_report(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        glfm.GLFM().report(tmp_path / "r.html")


# ---- words


def test_words() -> None:
    shares = (0, 1e-5, 0.003, 0.02, 0.391, 0.997, 1)
    said = ["0", "under 0.1", "0.3", "2", "39", "over 99", "100"]
    assert [percent(share).replace("\xa0%", "") for share in shares] == said
    assert [number(value) for value in (0, 1.23456, -12.5, 123.45, 1_234_567, np.nan)] == [
        "0",
        "1.23",
        "\u221212.5",
        "123.5",
        "1,234,567",
        "unknown",
    ]
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["no rows", "one row", "two rows", "1,200 rows"]
    assert [chance(np.log(p)) for p in (0.3, 1 / 2345, 1e-9)] == [
        "1 in 3",
        "1 in 2,300",
        "less than 1 in a million",
    ]
    assert clipped("abcdef", 4) == "abc…"
