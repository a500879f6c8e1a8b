"""Where cells are missing with another column, and columns that are nearly names of their rows."""

import numpy as np
import pandas as pd

import glfm
from glfm.analysis.summary import Summary
from glfm.report.links import strongest_links
from tables import QUICK


def links_of(boat: np.ndarray, name: np.ndarray):
    rng = np.random.default_rng(0)
    lived = np.where(np.arange(200) < 100, "yes", "no")
    frame = pd.DataFrame({"lived": lived, "boat": boat, "fare": rng.standard_normal(200), "name": name})
    model = glfm.GLFM({"name": "categorical", "boat": "categorical"}, **QUICK).fit(frame)
    return strongest_links(Summary(model.fit_))


def test_missing_cells_that_go_with_a_column_are_named():
    rng = np.random.default_rng(1)
    boat = np.where(np.arange(200) < 95, rng.choice(["A", "B"], 200), None)
    names = np.array([f"n{i // 5}" for i in range(200)], dtype=object)
    found = links_of(boat, names)
    (column, words), *more = found.gaps
    assert column == "boat"
    assert words.replace("\xa0", " ") == "in 100 % of the rows where lived = no, in 5 % where lived = yes"
    assert not more
    assert found.left_out == ["name"]  # forty levels of five rows each


def test_holes_at_random_are_not():
    rng = np.random.default_rng(2)
    boat = np.where(rng.random(200) < 0.5, rng.choice(["A", "B"], 200), None)
    assert links_of(boat, rng.choice([f"n{i}" for i in range(15)], 200)).gaps == []


def test_many_levels_with_rows_enough_stay():
    rng = np.random.default_rng(3)
    found = links_of(rng.choice(["A", "B"], 200), np.array([f"n{i % 15}" for i in range(200)], dtype=object))
    assert found.left_out == []
