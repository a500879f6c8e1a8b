"""The page: nothing comes from elsewhere, text from the table is only ever text, any table has one."""

import base64
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.report import Content, in_time, render
from glfm.report.formatting import clipped
from pages import Page, fitted
from tables import HOSTILE


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


@pytest.mark.parametrize(("seconds", "n_draws"), [(0.1, 4), (30.0, 9), (1000.0, 15)])
def test_in_a_hurry_fewer_draws_say_what_goes_together(
    people_model: glfm.GLFM, monkeypatch: pytest.MonkeyPatch, seconds: float, n_draws: int
) -> None:
    """By a clock on which one draw takes a second; a third of the time is for these."""
    ticks = iter((0.0, 1.0))
    monkeypatch.setattr("glfm.report.page.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    asked = []
    monkeypatch.setattr(
        "glfm.report.page.Dependence",
        lambda fit: asked.append(len(fit.draws)) or SimpleNamespace(information=None),
    )
    summary = SimpleNamespace(fit=people_model.fit_.thinned(15), dependence="of all draws")
    quick = in_time(summary, seconds)
    assert asked == [1, n_draws]
    assert summary.dependence == "of all draws"
    assert quick.dependence is not summary.dependence


@pytest.mark.slow
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
    assert "too few draws (two draws) to judge" in Page(html).words


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
    assert "clear" not in set(model.features()["status"])
    words = Page(model.report(tmp_path / "r.html").read_text(encoding="utf-8")).words
    assert "No feature is clear" in words
    assert "run longer" in words
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
