"""Kinds that hidden cells choose: what is doubtful, fair probabilities, decisions and their words."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import glfm
from glfm.analysis.kind_evidence import levels_by_number, log_probability, plausible
from glfm.errors import FitWarning
from glfm.files import read_table
from glfm.frames.column import Column
from glfm.kinds import Kind, find_kind
from glfm.sampling.chain import Chain
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem

NAN = float("nan")


def column_of(values: list[object], type_: str = "integer", levels: tuple[str, ...] | None = None) -> Column:
    numbers = type_ in ("integer", "float")
    return Column("a", np.array(values, dtype=float if numbers else object), type_, levels)


class TestPlausible:
    @pytest.mark.parametrize(
        ("column", "rule", "others"),
        [
            (column_of([0, 1, 2, NAN]), "count", ["ordinal", "categorical"]),
            (column_of(list(range(30))), "count", ["positive", "real"]),
            (column_of([-1, 0, 1]), "real", ["ordinal", "categorical"]),
            (column_of(list(range(-9, 30))), "real", []),
            (column_of([2**60 + 4096 * i for i in range(30)]), "positive", []),
            (column_of([0, 1]), "categorical", []),
            (column_of([0.5, 1, 2], "float"), "positive", []),
            (column_of(["x", "y", "z"], "string"), "categorical", []),
            (column_of(["2nd", "1st", "10th"], "string"), "categorical", ["ordinal"]),
            (column_of(["2nd", "1st", "10th"], "string"), "ordinal", ["categorical"]),
            (column_of([1, 2, 3, 4], "integer"), "ordinal", ["count", "categorical"]),
            (column_of([1, 2, 3, 4], "integer"), "categorical", ["count", "ordinal"]),
            (
                column_of(["low", "mid", "high"], "ordered", ("low", "mid", "high")),
                "ordinal",
                ["categorical"],
            ),
        ],
    )
    def test_what_values_allow(self, column: Column, rule: str, others: list[str]) -> None:
        found = plausible(column, find_kind(rule))
        assert [kind.name for kind in found] == [rule, *others]

    def test_text_in_the_order_of_its_numbers(self) -> None:
        assert levels_by_number(("10th", "1st", "2nd")) == ("1st", "2nd", "10th")
        assert levels_by_number(("> 50", "10 to 50", "Under 10")) == ("Under 10", "10 to 50", "> 50")
        assert levels_by_number(("over 5", "5 or less", "less than 5")) == (
            "less than 5",
            "5 or less",
            "over 5",
        )
        assert levels_by_number(("1st", "second")) is None
        assert levels_by_number(("1 a", "1 b")) is None


class TestProbabilities:
    """Of whole numbers, every kind of number has probabilities that add up to 1: the same yardstick."""

    def fitted(self, kind: Kind, x: np.ndarray) -> Chain:
        learnt = kind.learn(Column("x", x, "integer"))
        chain = Chain(
            LocalProblem({"x": learnt}, x[:, None], Priors()), Schedule(20, 5), np.random.SeedSequence(0)
        )
        for _ in chain:
            pass
        return chain

    @pytest.mark.parametrize("name", ["real", "positive", "count"])
    @pytest.mark.parametrize("lowest", [0, 3])
    def test_add_up(self, name: str, lowest: int) -> None:
        x = np.random.default_rng(0).poisson(2.0, 40) + float(lowest)
        chain = self.fitted(find_kind(name), np.append(x, NAN))
        values = np.arange(0.0, 400.0) - (200.0 if name == "real" else 0.0)
        p = np.exp(log_probability(chain, 0, np.full(400, 40), values))
        total = np.nansum(p)
        if name == "positive" and lowest:  # what rounds to 0 is never written down as 0
            total += np.exp(log_probability(chain, 0, np.array([40]), np.array([0.0])))[0] - p[0]
        assert total == pytest.approx(1.0, abs=1e-6)

    def test_densities_would_not(self) -> None:
        chain = self.fitted(find_kind("real"), np.append(np.repeat([0.0, 1.0, 1.0, 1.0], 10), NAN))
        draw, values = chain.draws[-1], np.arange(-20.0, 20.0)
        kind = chain.problem.kinds["x"]
        mean, sd = draw.activations @ draw.weights, np.sqrt(draw.variances[0] + kind.aux_variance)
        mean = kind.link.forward(mean[-1, 0])
        sd = 0.3 * sd * kind.link.scale * kind.link.unit
        mass = norm.cdf((values + 0.5 - mean) / sd) - norm.cdf((values - 0.5 - mean) / sd)
        assert mass.sum() == pytest.approx(1.0)
        assert abs(norm.pdf(values, mean, sd).sum() - 1.0) > 0.05

    def test_against_the_closed_form(self) -> None:
        x = np.append(np.random.default_rng(1).poisson(4.0, 30).astype(float), NAN)
        chain = self.fitted(find_kind("real"), x)
        kind, values = chain.problem.kinds["x"], np.arange(12.0)
        total = np.zeros(12)
        for draw in chain.draws:
            mean = float((draw.activations @ draw.weights)[-1, 0])
            sd = np.sqrt(draw.variances[0] + kind.aux_variance)
            ends = [kind.link.inverse(values + step) for step in (-0.5, 0.5)]
            total += norm.cdf((ends[1] - mean) / sd) - norm.cdf((ends[0] - mean) / sd)
        found = np.exp(log_probability(chain, 0, np.full(12, 30), values))
        np.testing.assert_allclose(found, total / len(chain.draws), rtol=1e-9)


def survey(n: int = 300) -> pd.DataFrame:
    """Return people of four groups, and codes, two of each group, whose order says nothing."""
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=n)
    return pd.DataFrame(
        {
            "item": np.array([(1, 9), (3, 7), (2, 8), (4, 6)])[group, rng.integers(2, size=n)],
            "events": rng.poisson(np.array([1.0, 12.0, 3.0, 6.0])[group]),
            "noise": rng.poisson(30.0, n),
            "a": rng.normal(np.array([0.0, 0.0, 4.0, 4.0])[group], 1.0),
            "b": rng.normal(np.array([0.0, 4.0, 0.0, 4.0])[group], 1.0),
        }
    )


class TestChoice:
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def schema(cls, request: pytest.FixtureRequest) -> None:
        request.cls.found = glfm.Schema.infer(survey(), evidence=True)

    found: glfm.Schema

    def test_codes_are_categories(self) -> None:
        assert glfm.Schema.infer(survey())["item"].name == "count"
        assert self.found["item"].name == "categorical"
        assert self.found["item"].levels == (1, 2, 3, 4, 6, 7, 8, 9)
        assert self.found.reasons["item"].startswith("predicts 120 hidden cells better than count by ")
        assert self.found.reasons["item"].endswith("the rule said: whole numbers, none negative")

    def test_counts_stay_counts(self) -> None:
        assert self.found["events"].name == "count"
        assert self.found["noise"].name == "count"
        assert "hidden cells do not decide: " in self.found.reasons["noise"]

    def test_what_is_sure_is_not_asked(self) -> None:
        assert self.found.reasons["a"] == "numbers of either sign"
        assert set(self.found.evidence["column"]) == {"item", "events", "noise"}

    def test_the_table(self) -> None:
        table = self.found.evidence
        assert list(table) == [
            "column", "kind", "cells", "log_score", "difference", "error", "chosen"
        ]  # fmt: skip
        assert (table.groupby("column")["chosen"].sum() == 1).all()
        first = table.groupby("column").first()
        assert (first["difference"] == 0.0).all()
        assert (table["log_score"] < 0.0).all()

    def test_the_same_every_time(self) -> None:
        again = glfm.Schema.infer(survey(), evidence=True)
        assert again == self.found
        pd.testing.assert_frame_equal(again.evidence, self.found.evidence)

    def test_it_goes_through_json_and_into_a_fit(self) -> None:
        again = glfm.Schema.from_json(self.found.to_json())
        assert again == self.found
        settings = {"n_chains": 1, "n_warmup": 5, "n_draws": 2, "thin": 1, "progress": False}
        assert glfm.GLFM(self.found, **settings).fit(survey()).schema_["item"].name == "categorical"


class TestNothingToWeigh:
    def test_nobody_asked(self) -> None:
        assert glfm.Schema.infer(survey()).evidence is None

    def test_given_kinds_stay(self) -> None:
        given = dict.fromkeys(["item", "events", "noise"], "count")
        schema = glfm.Schema.infer(survey(60), given, evidence=True)
        assert schema.evidence.empty
        assert schema.reasons["item"] == "given"

    @pytest.mark.parametrize("columns", [{"a": [1, 2, 3]}, {"a": [1, 2, 3], "b": [0.5, 1.5, -2.0]}])
    def test_too_few_cells(self, columns: dict[str, list[float]]) -> None:
        schema = glfm.Schema.infer(pd.DataFrame(columns), evidence=True)
        assert schema["a"].name == "count"
        assert "too few cells to weigh it against ordinal or categorical" in schema.reasons["a"]


@pytest.mark.slow
def test_agreement_with_the_schemas_of_real_tables(data_dir: Path) -> None:
    """The share of columns whose kind agrees with the stated one, by rule and with evidence."""
    n = by_rule = weighed = natural_rule = natural = 0
    for path in sorted(data_dir.glob("*.schema.json")):
        described = json.loads(path.read_text(encoding="utf-8"))
        file = data_dir / described["file"]
        frame = read_table(file if file.exists() else file.with_name(file.name + ".gz"))
        if len(frame) > 5000:
            frame = frame.sample(5000, random_state=0).reset_index(drop=True)
        roles = {"id", "weight", "split", "date", "redundant"}
        ignored = {c["name"]: "ignore" for c in described["columns"] if c.get("role") in roles}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            rule = glfm.Schema.infer(frame, ignored)
            found = glfm.Schema.infer(frame, ignored, evidence=True)
        for column in described["columns"]:
            name = column["name"]
            if name not in ignored:
                n += 1
                usual = column.get("natural_type") or column["type"]
                kinds = [getattr(schema[name], "name", "ignore") for schema in (rule, found)]
                by_rule += kinds[0] == column["type"]
                weighed += kinds[1] == column["type"]
                natural_rule += kinds[0] == usual
                natural += kinds[1] == usual
    print(n, by_rule, weighed, natural_rule, natural)
    assert weighed >= by_rule - 0.02 * n
    assert natural >= natural_rule - 0.02 * n
