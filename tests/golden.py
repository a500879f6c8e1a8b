"""Golden draws: what tiny fits of every kind and sampler give on one platform, to the last bit.

`make golden` rewrites the file and says which line the CHANGELOG needs; with --print this script shows the
numbers of its own process, compiled or not, of all cases or of those that are named, with --short those of
shorter chains. It uses nothing of glfm but public names, so that two commits can be compared: see
compare_draws.py.
"""

import copy
import hashlib
import json
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_info

import glfm

FILE = Path(__file__).parent / "data" / "golden.json"
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
SEED = 1
SCHEDULE = {"n_chains": 2, "n_warmup": 15, "n_draws": 3, "thin": 2, "progress": False}
SHORT = {"n_chains": 1, "n_warmup": 4}  # for plain Python, which is slow

# The examples of kind_examples.py, without the classes of glfm in which those are.
KINDS: dict[str, list[Any]] = {
    "categorical": ["b", "a", None, "c", "a", "b"],
    "count": [0.0, 3.0, np.nan, 1.0, 12.0, 4.0],
    "ordinal": ["low", "high", None, "top", "middle", "low"],
    "positive": [0.0, 0.5, np.nan, 2.25, 7.0, 0.25],
    "real": [-1.5, 0.0, np.nan, 2.25, 7.0, -3.0],
}
GRADES = ("low", "middle", "high", "top")
MODELS = (*KINDS, "mixed")


def here() -> dict[str, str]:
    """Return everything on which the last bit of a draw may depend."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        # What code is made for, which `make test` sets to what all processors have in common.
        "processor": os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
        "NumPy's code": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),
        "linear algebra": " ".join(
            sorted({library.get("architecture", "") for library in threadpool_info()})
        ),
        "C library": " ".join(platform.libc_ver()),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
        "kernels": "plain Python" if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else "compiled",
    }


def differences(made_with: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return in words what is not as it was when the golden draws were made."""
    names = made_with | now
    return [
        f"{name}: {now.get(name, 'nothing')}, not {made_with.get(name, 'nothing')}"
        for name in names
        if now.get(name) != made_with.get(name)
    ]


# ---- tables


def column(name: str, turn: int) -> pd.Series:
    """Return the example of a kind, twice, from another row on."""
    values = np.array(KINDS[name], dtype=object if isinstance(KINDS[name][0], str) else np.float64)
    values = np.roll(np.concatenate([values, values[::-1]]), turn)
    if name == "ordinal":
        return pd.Series(pd.Categorical(values, categories=GRADES, ordered=True))
    return pd.Series(values)


def table(model: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return twelve rows with holes and their schema: three columns of one kind, or one of each."""
    kinds = {name: name for name in KINDS} if model == "mixed" else dict.fromkeys("abc", model)
    columns = {name: column(kind, 5 * d) for d, (name, kind) in enumerate(kinds.items())}
    return pd.DataFrame(columns), kinds


WIDE = {
    "height": "real",
    "income": "positive",
    "visits": "count",
    "smoker": "categorical",
    "ward": "categorical",
    "grade": "ordinal",
}
N_WIDE, N_NEW = 36, 4


def wide() -> pd.DataFrame:
    """Return 40 rows that two features explain: holes, zeros of a positive column, one of twelve wards."""
    rng, n = np.random.default_rng(5), N_WIDE + N_NEW
    one, two = rng.random(n) < 0.5, rng.random(n) < 0.4
    grade = np.clip(one.astype(int) + 2 * two + rng.integers(-1, 2, n), 0, len(GRADES) - 1)
    income = np.where(rng.random(n) < 0.3, 0.0, np.round(20.0 + 60.0 * two + 10.0 * rng.random(n), 1))
    frame = pd.DataFrame(
        {
            "height": np.round(165.0 + 15.0 * one - 9.0 * two + 4.0 * rng.standard_normal(n), 1),
            "income": income,
            "visits": rng.poisson(1.0 + 7.0 * one).astype(np.float64),
            "smoker": np.where(two ^ (rng.random(n) < 0.1), "yes", "no").astype(object),
            "ward": np.array([f"w{i:02}" for i in np.arange(n) % 6 + 6 * one], dtype=object),
            "grade": pd.Categorical.from_codes(grade, GRADES, ordered=True),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.12)


# ---- what is kept of a fit and of an answer


def parts(value: Any) -> Iterator[np.ndarray | list[str]]:
    """Give an answer of any shape in pieces: arrays of numbers (one NaN like another) and lists of words."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield [str(name)]
            yield from parts(part)
    elif isinstance(value, pd.DataFrame):
        yield from parts({str(name): value[name] for name in value})
    elif isinstance(value, list | tuple):
        for part in value:
            yield from parts(part)
    elif isinstance(value, pd.Series) and not pd.api.types.is_numeric_dtype(value.dtype):
        yield from parts(list(value))
    elif value is None or isinstance(value, str):
        yield [str(value)]
    else:
        numbers = np.array(value, dtype=np.float64)
        numbers[np.isnan(numbers)] = np.nan
        yield numbers


def bits(value: Any) -> str:
    """Return a short name of an answer, another one if it is another in a single bit."""
    found = hashlib.sha256()
    for part in parts(value):
        text = isinstance(part, list)
        found.update(json.dumps(part if text else part.shape).encode())
        found.update(b"" if text else part.tobytes())
    return found.hexdigest()[:16]


def size(value: Any) -> float:
    """Return the sum of all numbers of an answer without their signs."""
    numbers = [part[np.isfinite(part)] for part in parts(value) if not isinstance(part, list)]
    return float(sum(np.abs(part).sum() for part in numbers))


def fit(frame: pd.DataFrame, schema: dict[str, str], seed: int = SEED, **settings: Any) -> glfm.GLFM:
    """Return a short fit; `inactive` is for the fit, all else for the model."""
    inactive = settings.pop("inactive", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)  # that the bound on features is reached
        return glfm.GLFM(schema, random_state=seed, **SCHEDULE, **settings).fit(frame, inactive=inactive)


def of_draws(fitted: glfm.GLFM) -> dict[str, Any]:
    """Return what a fit has drawn, and names of its bits."""
    draws = list(fitted.draws_)
    weights = [np.concatenate(list(draw.B.values()), axis=1) for draw in draws]
    exact = {name: [getattr(draw, name) for draw in draws] for name in ("alpha", "Z", "B", "noise_variance")}
    exact |= {name: [getattr(draw, name) for draw in draws] for name in ("theta", "V", "log_likelihood")}
    return {
        "K": [draw.Z.shape[1] for draw in draws],
        "Z": [np.packbits(draw.Z, axis=1).tobytes().hex() for draw in draws],
        "alpha": [draw.alpha for draw in draws],
        "weights": [float(np.abs(B).sum()) for B in weights],
        "noise": [float(np.log(list(draw.noise_variance.values())).sum()) for draw in draws],
        "thresholds": [float(sum(theta.sum() for theta in draw.theta.values())) for draw in draws],
        "log-likelihood": [draw.log_likelihood for draw in draws],
        "bits": {name: bits(value) for name, value in exact.items()},
    }


def of_answers(answers: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the sizes of answers, and names of their bits."""
    given = {name: answer() for name, answer in answers.items()}
    return {
        **{name: [size(value)] for name, value in given.items()},
        "bits": {name: bits(value) for name, value in given.items()},
    }


# ---- cases


def numbers(model: str, seed: int = SEED) -> dict[str, Any]:
    """Return what a fit draws, fills in, and says of rows it has never seen."""
    frame, schema = table(model)
    fitted = fit(frame[:-2], schema, seed)
    new = frame[-2:]
    sampled, holes = fitted.impute(how="sample"), frame[:-2].isna().to_numpy()
    filled = [sampled.iloc[n, d] for n, d in np.argwhere(holes)]
    scores = fitted.log_likelihood(new.ffill(axis=0).bfill(axis=0), new)
    return {
        **of_draws(fitted),
        "filled": [value if isinstance(value, str) else float(value) for value in filled],
        "new rows": [float(value) for value in scores.to_numpy().ravel() if not np.isnan(value)],
    }


def sampled(columns: Sequence[str] = tuple(WIDE), **settings: Any) -> dict[str, Any]:
    """Return what a fit of the wide table, or of some of its columns, draws."""
    return of_draws(fit(wide()[list(columns)][:N_WIDE], {name: WIDE[name] for name in columns}, **settings))


def pinned() -> np.ndarray:
    """Return which rows have no feature: one in each of three shards, and two more."""
    return np.isin(np.arange(N_WIDE), [0, 1, 2, 15, 30])


def shards(n: int) -> dict[str, Any]:
    """Return the settings of the parallel sampler."""
    return {"sampler": "hybrid", "engine": glfm.LocalEngine(n_shards=n)}


def answered(
    of: Callable[[glfm.GLFM, pd.DataFrame], Mapping[str, Callable[[], Any]]], **settings: Any
) -> Any:
    """Return what a fit of the wide table answers."""
    frame = wide()
    return of_answers(of(fit(frame[:N_WIDE], dict(WIDE), **settings), frame[N_WIDE:]))


def cells(model: glfm.GLFM, new: pd.DataFrame | None) -> dict[str, Callable[[], Any]]:
    """Return questions about every cell of rows never seen, or of those of the fit."""
    predictive = model.predictive(new)
    values = (wide()[:N_WIDE] if new is None else new).ffill().bfill()
    return {
        "mean": predictive.mean,
        "median": predictive.median,
        "mode": predictive.mode,
        "interval": predictive.interval,
        "sd": predictive.sd,
        "entropy": predictive.entropy,
        "probabilities": lambda: [predictive.proba(name) for name in ("smoker", "ward", "grade")],
        "log density": lambda: predictive.logpdf(values),
        "cdf": lambda: predictive.cdf(values),
        "samples": lambda: predictive.sample(2),
        "uncertainty": lambda: model.uncertainty(new),
        **{
            f"impute {how}": partial(model.impute, new, how=how) for how in ("auto", "mode", "mean", "sample")
        },
        "imputations": lambda: model.impute(new, n=3),
    }


def of_new_rows(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions about the cells of rows never seen, one of them with a level never seen."""
    odd, lenient = new.assign(ward="elsewhere"), copy.copy(model).set_params(unseen="missing")
    return {**cells(model, new), "unseen level": lambda: lenient.predictive(odd).mean()}


def of_fitted_rows(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions about the cells of the rows of the fit."""
    return cells(model, None)


def of_activations(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions about features, those of rows never seen among them."""
    return {
        "activations": lambda: model.activations(),
        "new rows": lambda: model.transform(new),
        "effects": model.effects,
        "similarity": lambda: model.similarity(new, wrt="height"),
        "dependence": model.dependence,
    }


def of_oddness(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions in which a cell, or a row of the fit, is left out and judged by the rest."""
    return {
        "surprisal": model.surprisal,
        "surprisal of new rows": lambda: model.surprisal(new),
        "odd cells": lambda: model.odd_cells(top=5).drop(columns="value"),
        "novelty": model.novelty,
        "novelty of new rows": lambda: model.novelty(new),
    }


def of_explanations(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions about why a cell of a row of the fit, or of one never seen, is what it is."""

    def explained(row: Any, column: str) -> list[pd.DataFrame]:
        found = model.explain(row, column, top=3)
        return [found.features, found.columns, found.rows]

    return {
        "row of the fit": lambda: [explained(5, name) for name in ("height", "ward")],
        "new row": lambda: explained(new.iloc[:1], "grade"),
    }


GIVEN = {"height": 181.0, "ward": "w07", "income": 0.0}


def of_questions(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return questions about any columns given any others."""
    return {
        **{f"ask {name}": partial(ask, model, name) for name in WIDE},
        "ask of rows": lambda: [model.ask(name, new) for name in ("height", "smoker", "grade")],
        **of_simulation(model, new),
    }


def of_few_questions(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return fewer of them, for a fit that takes longer to answer."""
    return {"ask ward": partial(ask, model, "ward"), **of_simulation(model, new)}


def of_simulation(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return requests for new rows."""
    return {
        "simulate": lambda: model.simulate(5, random_state=3),
        "simulate given": lambda: model.simulate(3, given=GIVEN),
        "simulate rows": lambda: model.simulate(given=new),
    }


def ask(model: glfm.GLFM, target: str) -> dict[str, Any]:
    """Return all of the answer to a question about one column."""
    given = {name: value for name, value in GIVEN.items() if name != target}
    return model.ask(target, given).to_dict()


def of_densities(model: glfm.GLFM, new: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return joint densities."""
    known = ["ward", "income"]
    return {
        "of a cell": lambda: model.logp({"visits": 3}),
        "given": lambda: model.logp({"visits": 3, "smoker": "yes", "grade": "high"}, given=GIVEN),
        "of rows": lambda: model.logp(new),
        "of rows given": lambda: model.logp(new.drop(columns=known), given=new[known]),
    }


SAMPLED: dict[str, Callable[[], dict[str, Any]]] = {
    "collapsed": partial(sampled, sampler="collapsed"),
    "collapsed, pinned rows": lambda: sampled(sampler="collapsed", inactive=pinned()),
    "collapsed, no bias, bounded": partial(
        sampled, sampler="collapsed", bias=False, max_features=3, alpha=2.0
    ),
    "one shard": lambda: sampled(**shards(1)),
    "three shards": lambda: sampled(**shards(3)),
    "three shards, pinned rows": lambda: sampled(**shards(3), inactive=pinned()),
    "three shards, no bias, bounded": lambda: sampled(**shards(3), bias=False, max_features=3, alpha=2.0),
    "weighted, one shard": lambda: sampled(weighted=True, **shards(1)),
    "weighted, three shards": lambda: sampled(weighted=True, **shards(3)),
    "weighted, pinned rows": lambda: sampled(weighted=True, **shards(3), inactive=pinned()),
    **{f"{name}, collapsed": partial(sampled, [name, "height"]) for name in ("income", "ward")},
    **{
        f"{name}, {what}": lambda name=name, more=more: sampled([name], **shards(2), **more())
        for name in WIDE
        for what, more in (("two shards", lambda: {"alpha": 3.0}), ("weighted", lambda: {"weighted": True}))
    },
}
ANSWERED: dict[str, Callable[[], dict[str, Any]]] = {
    "cells of new rows": partial(answered, of_new_rows),
    "cells of fitted rows": partial(answered, of_fitted_rows),
    "features of rows": partial(answered, of_activations),
    "left out": partial(answered, of_oddness),
    "left out, pinned rows": lambda: answered(of_oddness, inactive=pinned()),
    "left out, no bias, bounded": partial(answered, of_oddness, bias=False, max_features=3, alpha=2.0),
    "explanations": partial(answered, of_explanations),
    "questions": partial(answered, of_questions),
    "densities": partial(answered, of_densities),
    "weighted, cells of new rows": lambda: answered(of_new_rows, weighted=True),
    "weighted, cells of fitted rows": lambda: answered(of_fitted_rows, weighted=True),
    "weighted, questions": lambda: answered(of_few_questions, weighted=True),
    "weighted, left out": lambda: answered(of_oddness, weighted=True),
}
CASES = {**{model: partial(numbers, model) for model in MODELS}, **SAMPLED, **ANSWERED}


# ---- the file


def digest(draws: dict[str, Any]) -> str:
    """Return a short name of golden draws."""
    return hashlib.sha256(json.dumps(draws, sort_keys=True).encode()).hexdigest()[:8]


def changelog_line(draws: dict[str, Any]) -> str:
    """Return what the CHANGELOG must say of them."""
    return f"Random stream: golden draws {digest(draws)}"


def main(arguments: Sequence[str]) -> None:
    """Write the golden draws of this platform, or show them."""
    named = [name for name in arguments if not name.startswith("--")]
    if "--short" in arguments:
        SCHEDULE.update(SHORT)
    draws = {name: CASES[name]() for name in named or CASES}
    if "--print" in arguments:
        print(json.dumps(draws, indent=1))
        return
    FILE.write_text(json.dumps({"made with": here(), "draws": draws}, indent=1) + "\n")
    said = changelog_line(draws) in CHANGELOG.read_text()
    print(changelog_line(draws), "- in the CHANGELOG" if said else "- put this line into the CHANGELOG")


if __name__ == "__main__":
    main(sys.argv[1:])
