"""Errors planted in real tables: how well surprisal and novelty find them, beside each column alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import glfm

pytestmark = pytest.mark.slow


def plant(frame: pd.DataFrame, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Replace a share of each column's cells by values of other rows; return the table, and which changed."""
    rng = np.random.default_rng(seed)
    dirty = frame.copy()
    changed = pd.DataFrame(False, index=frame.index, columns=frame.columns)
    for name in frame:
        seen = np.flatnonzero(frame[name].notna())
        bad = rng.choice(seen, max(1, round(share * seen.size)), replace=False)
        column = frame[name].copy()
        column.iloc[bad] = frame[name].iloc[rng.choice(seen, bad.size)].to_numpy()
        dirty[name] = column
        changed[name] = (column.astype(object) != frame[name].astype(object)) & frame[name].notna()
    return dirty, changed


def rarity(model: glfm.GLFM, frame: pd.DataFrame) -> pd.DataFrame:
    """Return what each column alone says of its cells: minus the log of a frequency or a normal density."""
    out = {}
    for name, kind in model.schema_.kinds.items():
        if kind.name in ("real", "positive"):
            x = frame[name].to_numpy(dtype=float)
            w = np.where(np.isnan(x), np.nan, kind.pseudo(np.nan_to_num(x, nan=1.0)))
            out[name] = 0.5 * ((w - np.nanmean(w)) / np.nanstd(w)) ** 2
        else:
            share = frame[name].value_counts(normalize=True)
            out[name] = -np.log(frame[name].map(share).to_numpy(dtype=float, na_value=np.nan))
    return pd.DataFrame(out, index=frame.index)


def auc(changed: pd.DataFrame, score: pd.DataFrame) -> float:
    a, b = changed[score.columns].to_numpy().ravel(), score.to_numpy().ravel()
    return float(roc_auc_score(a[~np.isnan(b)], b[~np.isnan(b)]))


def within(changed: pd.DataFrame, score: pd.DataFrame) -> float:
    """Return the mean of the areas of the columns, each by itself."""
    return float(np.mean([auc(changed, score[[name]]) for name in score if changed[name].any()]))


def scores(name: str, n_rows: int) -> pd.DataFrame:
    frame, schema = getattr(glfm.datasets, f"load_{name}")()[:2]
    frame = frame.sample(n_rows, random_state=0).reset_index(drop=True)
    dirty, changed = plant(frame, 0.01, seed=0)
    model = glfm.GLFM(schema, n_chains=2, n_warmup=150, n_draws=40, random_state=0, progress=False)
    model.fit(dirty)
    surprisal, alone = model.surprisal(), rarity(model, dirty)
    bad_rows = changed[list(surprisal)].any(axis=1)
    return pd.DataFrame(
        {
            "cells": {"model": auc(changed, surprisal), "column alone": auc(changed, alone)},
            "cells within columns": {
                "model": within(changed, surprisal),
                "column alone": within(changed, alone),
            },
            "rows": {
                "model": float(roc_auc_score(bad_rows, model.novelty())),
                "column alone": float(roc_auc_score(bad_rows, alone.mean(axis=1))),
            },
        }
    ).T


@pytest.mark.filterwarnings("ignore::glfm.FitWarning")
@pytest.mark.parametrize(("name", "n_rows"), [("german_credit", 1000), ("adult", 5000)])
def test_planted_errors_are_found(data_dir, name, n_rows, tell):
    found = scores(name, n_rows)
    each = (f"{what} {row['model']:.3f} ({row['column alone']:.3f})" for what, row in found.iterrows())
    tell(f"{name}: area under the curve, and that of columns alone: {', '.join(each)}")
    assert (found["model"] > found["column alone"] + 0.02).all()
