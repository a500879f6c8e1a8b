"""The HTML of objects in notebooks: what it says, and that no text of a user becomes markup."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import glfm
from glfm.analysis.calibration import Calibration
from glfm.datasets import make_clinic
from glfm.notebook import MOST_ROWS, number_table, text_table
from stopped_fits import SETTINGS, fit_one_sweep
from tables import HOSTILE, QUICK, hostile, mixed

ALLOWED = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p", "details", "summary", "code"}


class Parsed(HTMLParser):
    """A piece of HTML: its tags, its attributes, its text, and the rows of its tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.rows, self.words = [], set(), [], [], []
        self.feed(html)
        self.close()
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join(self.words)

    @property
    def facts(self):
        return {row[0]: row[1] for row in self.rows}


def safe(html: str) -> Parsed:
    """Return a piece of HTML that neither runs nor loads anything."""
    page = Parsed(html)
    assert page.tags <= ALLOWED
    assert {name for name, _ in page.attributes} <= {"style"}
    assert not any("url(" in value or "expression" in value for _, value in page.attributes)
    return page


@pytest.fixture(scope="module")
def odd():
    """A fit of a table whose names are markup and code."""
    return glfm.GLFM({HOSTILE["proto"]: "categorical"}, **QUICK).fit(hostile())


class TestModel:
    def test_not_fitted(self):
        page = safe(glfm.GLFM(alpha=2.0)._repr_html_())
        assert page.words[0] == "GLFM"
        assert page.facts == {"fit": "none yet: call fit(table)", "kinds": "of every column inferred"}
        assert "GLFM(alpha=2.0)" in page.text
        given = safe(glfm.GLFM({"a": "real", "b": "count"})._repr_html_())
        assert given.facts["kinds"] == "of 2 columns given, others inferred"

    def test_fitted(self, clinic_model):
        frame, page = make_clinic(200).frame, safe(clinic_model._repr_html_())
        n_holes = int(frame.isna().sum().sum())
        assert page.facts == {
            "fit": "200 rows x 12 columns",
            "missing": f"{n_holes} of 2,400 cells ({n_holes / 2400:.1%})",
            "kinds": "2 real, 2 positive, 2 count, 3 categorical, 3 ordinal",
            "draws": "30 of 2 chains, yes/no features",
            "verdict": clinic_model.diagnostics().verdict,
        }

    def test_ignored_columns(self, people_model):
        assert ", 1 ignored" in safe(people_model._repr_html_()).facts["kinds"]

    def test_scores(self, weighted_model):
        assert safe(weighted_model._repr_html_()).facts["draws"] == "20 of 2 chains, weighted features"

    def test_without_its_rows(self, people_model, tmp_path):
        page = safe(glfm.load(people_model.save(tmp_path / "m.glfm", data=False))._repr_html_())
        assert page.facts["fit"] == "120 rows x 9 columns"
        assert "missing" not in page.facts

    def test_stopped_in_warm_up(self):
        page = safe(fit_one_sweep(mixed(), {**SETTINGS, "n_warmup": 1000})._repr_html_())
        assert page.facts["draws"] == "0 of 2 chains, yes/no features"
        assert "no draw after warm-up exists" in page.facts["verdict"]

    def test_a_verdict_that_takes_long_is_not_computed(self, clinic_model, monkeypatch):
        monkeypatch.setattr("glfm.estimators.facts._AT_ONCE", 100)
        again = clone(clinic_model).set_params(n_draws=10, n_warmup=5).fit(mixed())
        assert "diagnostics() says" in safe(again._repr_html_()).facts["verdict"]
        verdict = again.diagnostics().verdict
        assert safe(again._repr_html_()).facts["verdict"] == verdict, "but what is known is shown"
        again.fit(mixed(50))
        assert "diagnostics() says" in safe(again._repr_html_()).facts["verdict"], (
            "and forgotten with its fit"
        )

    def test_imputer(self):
        imputer = glfm.Imputer(how="mode", **{**QUICK, "n_warmup": 5, "n_draws": 3})
        assert safe(imputer._repr_html_()).facts == {
            "fit": "none yet: call fit(table)",
            "kinds": "of every column inferred",
            "fills cells with": "the most probable value",
        }
        page = safe(imputer.fit(mixed())._repr_html_())
        assert page.words[0] == "Imputer"
        assert page.facts["fit"] == "40 rows x 5 columns"
        assert page.facts["fills cells with"] == "the most probable value"
        assert "6 draws of 2 chains" in page.facts["verdict"]

    @pytest.mark.parametrize("estimator", [glfm.GLFM(), glfm.Imputer()])
    def test_the_display_that_scikit_learn_is_set_to(self, estimator):
        bundle = estimator._repr_mimebundle_()
        assert bundle == {"text/plain": repr(estimator), "text/html": estimator._repr_html_()}
        with config_context(display="text"):
            assert estimator._repr_mimebundle_() == {"text/plain": repr(estimator)}
            assert not hasattr(estimator, "_repr_html_")

    def test_pipelines_have_their_diagram(self, clinic_model):
        assert "GLFM" in estimator_html_repr(clinic_model)
        assert "Imputer" in make_pipeline(glfm.Imputer(), clinic_model)._repr_html_()


class TestResults:
    def test_diagnostics(self, mixed_model):
        found = mixed_model.diagnostics()
        page = safe(found._repr_html_())
        assert page.rows[0] == ["quantity", "mean", "sd", "rhat", "ess_bulk", "ess_tail"]
        assert [row[0] for row in page.rows[1:]] == list(found.table.index)
        assert page.rows[1][3] == f"{found.table['rhat'].iloc[0]:.3g}"
        assert found.verdict in page.text

    def test_of_many_quantities_the_worst_are_shown(self, mixed_model):
        found = mixed_model.diagnostics()
        rhat = np.random.default_rng(0).permutation(100) / 100.0
        table = pd.DataFrame({"mean": 0.0, "rhat": rhat}, index=[f"q{i}" for i in range(100)])
        page = safe(type(found)(table, "So.", found.traces)._repr_html_())
        worst = sorted(np.argsort(-rhat)[:MOST_ROWS])
        assert [row[0] for row in page.rows[1:]] == [f"q{i}" for i in worst]
        assert "60 more quantities have smaller R-hats." in page.text

    def test_predictive(self, mixed_model):
        page = safe(mixed_model.predictive()._repr_html_())
        kinds, holes = mixed_model.schema_.kinds, mixed().isna().sum()
        assert page.rows == [
            ["column", "kind", "missing"],
            *([name, kinds[name].name, str(holes[name])] for name in kinds),
        ]
        assert "40 rows from 20 draws" in page.text

    def test_calibration(self):
        numbers = {"hidden": [30, 30], "cover_90": [0.875, 0.9], "error": [0.5, np.nan]}
        table = pd.DataFrame(numbers, index=pd.Index(["real", "all"], name="kind"))
        page = safe(Calibration(table, table, "As they should.")._repr_html_())
        assert page.rows == [
            ["kind", "hidden", "cover_90", "error"],
            ["real", "30", "0.875", "0.5"],
            ["all", "30", "0.9", "-"],
        ]
        assert page.words[-1] == "As they should."

    def test_schema(self, mixed_model):
        page = safe(mixed_model.schema_._repr_html_())
        assert [row[0] for row in page.rows[1:]] == list(mixed())


class TestHostileText:
    @pytest.mark.parametrize(
        "show",
        [
            lambda model: model,
            lambda model: model.diagnostics(),
            lambda model: model.predictive(),
            lambda model: model.schema_,
            lambda model: glfm.GLFM({HOSTILE["script"]: "real"}, engine=HOSTILE["end"]),
            lambda model: glfm.Imputer(how=HOSTILE["script"]),
        ],
        ids=["model", "diagnostics", "predictive", "schema", "unfitted", "imputer"],
    )
    def test_is_text(self, odd, show):
        html = show(odd)._repr_html_()
        safe(html)
        assert "<script" not in html

    def test_names_are_there(self, odd):
        for shown in (odd.predictive(), odd.schema_):
            assert HOSTILE["script"] in [row[0] for row in safe(shown._repr_html_()).rows]
        assert f"noise variance of {HOSTILE['script']}" in safe(odd.diagnostics()._repr_html_()).text

    def test_without_escaping_it_would_be_found(self):
        with pytest.raises(AssertionError):
            safe(f"<table><tr><td>{HOSTILE['script']}</td></tr></table>")
        with pytest.raises(AssertionError):
            safe('<div onclick="x()"></div>')

    def test_long_names_are_cut(self):
        page = safe(text_table(("a",), [("x" * 500,)]))
        assert page.rows[1][0] == "x" * 199 + "…"


class TestTables:
    def test_only_the_first_rows(self):
        page = safe(text_table(("a", "b"), [(f"r{i}", i) for i in range(1000)]))
        assert len(page.rows) == 1 + MOST_ROWS
        assert "and 960 more" in page.text
        assert len(safe(text_table(("a",), [("x",)] * 1000, most=None)).rows) == 1001

    def test_numbers(self):
        page = safe(number_table(pd.DataFrame({"n": [1234, 5], "x": [0.123456, np.nan]}, index=["a", "b"])))
        assert page.rows[1:] == [["a", "1,234", "0.123"], ["b", "5", "-"]]
