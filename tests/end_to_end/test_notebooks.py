"""The notebooks run, and what they are kept with is what they show."""

import importlib
import os
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
LARGEST = 250_000  # bytes; pictures are small


@pytest.fixture
def make_notebooks(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return importlib.import_module("make_notebooks")


def test_there_is_one_notebook_for_each_task():
    assert [path.stem for path in NOTEBOOKS] == ["ask", "complete", "explore", "scale"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_is_kept_with(make_notebooks, path, tmp_path):
    kept = nbformat.read(path, as_version=4)
    assert make_notebooks.stale(kept) == []
    assert path.stat().st_size < LARGEST
    now = make_notebooks.run(path, tmp_path)
    assert make_notebooks.shown(now) == make_notebooks.shown(kept)
    assert list(tmp_path.iterdir()) == []


def test_an_edited_notebook_is_stale(make_notebooks):
    notebook = nbformat.read(NOTEBOOKS[0], as_version=4)
    make_notebooks.code_cells(notebook)[0].source += "\n1 + 1"
    assert make_notebooks.stale(notebook) == ["The code is not that of `make notebooks`."]


def test_an_error_in_a_notebook_is_an_error(make_notebooks, tmp_path):
    path = tmp_path / "broken.ipynb"
    cells = [nbformat.v4.new_code_cell("print('before')"), nbformat.v4.new_code_cell("1 / 0")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        make_notebooks.run(path, tmp_path)
