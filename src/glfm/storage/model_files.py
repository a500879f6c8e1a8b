"""A fitted model as one file: what is in it, and how it is read back; see docs/runs-and-files.md."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm import __version__
from glfm.analysis.consensus import Axis, FoundAxes
from glfm.analysis.effects import measured
from glfm.analysis.field import metrics_of
from glfm.analysis.summary import Findings
from glfm.errors import DataError, FileError, GLFMError
from glfm.frames.column import FloatArray
from glfm.frames.edits import taken
from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit, Whole
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import ColumnFacts, LocalProblem, Problem, RowlessProblem
from glfm.sampling.state import State
from glfm.schema import Schema
from glfm.schema.encoding import encode
from glfm.storage.archive import Reader, Writer, whole
from glfm.storage.refinement_files import read_refinement, write_refinement
from glfm.storage.tables import pack, unpack

# 1: without what is known of features; 2: without learners; 3: with one round of them.
_FORMAT, _VERSION = "glfm-model", 4
_SMALLEST, _LARGEST = 1e-151, 1e151  # of the numbers of a fit: their squares are numbers too


@dataclass(frozen=True)
class Stage:
    """How far a fit that keeps a checkpoint has come."""

    until: str | None = None  # as `fit` takes it
    round: int = 0  # how often it has gone on for longer
    finished: bool = False


# ---- writing


def write(
    fit: Fit,
    path: str | PathLike[str],
    data: bool = True,
    stage: Stage | None = None,
    findings: Findings | None = None,
) -> None:
    """Write a fit to one file, with or without its training rows; a checkpoint also has its `stage`.

    `findings` on the features of the fit are written beside it, so that readers need not look for them.
    """
    if data and fit.frame is None:
        raise DataError("The model has not got its training rows here: save it with data=False.")
    writer = Writer()
    given = fit.settings["schema"]
    head: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION if fit.refinement is not None else 1 if findings is None else 2,
        "glfm": __version__,
        "parameters": {
            **{name: _plain(value) for name, value in fit.settings.items()},
            "schema": None
            if given is None
            else _schema(given if isinstance(given, Schema) else Schema(given)),
        },
        "schema": _schema(fit.schema),
        "priors": {name: _plain(value) for name, value in asdict(fit.problem.priors).items()},
        "n_rows": fit.problem.n_rows,
        "n_draws": len(fit.draws),
        "warmup": [t for t, draw in enumerate(fit.draws) if draw.is_warmup],
        "seed": {"entropy": fit.seed.entropy, "spawn_key": list(fit.seed.spawn_key)},
        "table": None,
        "inactive": False,
        "chains": [],
    }
    if stage is not None:
        head["checkpoint"] = asdict(stage)
    _write_draws(writer, fit.problem, fit.draws)
    if data:
        head["table"] = pack(fit.table if fit.whole is None else fit.whole.frame, writer)
        head["chains"] = [_write_chain(writer, i, chain) for i, chain in enumerate(fit.chains)]
        pinned = fit.rows.pinned
        head["inactive"] = pinned is not None
        if pinned is not None:
            writer.array("inactive", pinned)
        if fit.whole is not None:
            head["n_all"] = fit.whole.frame.n_rows
            writer.array("sample", fit.whole.rows.astype(np.int64))
    else:
        writer.array("columns/spread", np.array(fit.problem.facts.spreads))
        for d, counts in enumerate(fit.problem.facts.level_counts):
            writer.array(f"columns/{d}/counts", counts)
        writer.array("draws/log_likelihood", np.array([draw.log_likelihood for draw in fit.draws]))
    if findings is not None:
        head["features"] = _write_findings(writer, findings)
    if fit.refinement is not None:
        head["refinement"] = write_refinement(writer, fit.refinement)
    writer.json("model", head)
    # Most of a checkpoint does not compress, and nobody should wait for it.
    writer.write(Path(path), compress=stage is None)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON knows it."""
    value = value.item() if isinstance(value, np.generic) else value
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _schema(schema: Schema) -> Any:
    """Return a schema as JSON, if it comes back from there as it is."""
    text = schema.to_json()
    levels = [level for kind in schema.kinds.values() for level in kind.levels or ()]
    if not all(isinstance(level, str | int | float) for level in levels) or Schema.from_json(text) != schema:
        raise FileError(
            "The levels of some column are neither text, numbers nor yes or no, which a model file cannot "
            "hold: turn them into text before the fit."
        )
    return json.loads(text)


def _write_draws(writer: Writer, problem: Problem, draws: Draws) -> None:
    for name in ("chain", "index", "alpha", "n_features"):
        dtype = np.float64 if name == "alpha" else np.int64
        writer.array(f"draws/{name}", np.array([getattr(draw, name) for draw in draws], dtype=dtype))
    T, D, n_theta = len(draws), len(problem.names), _n_theta(problem)
    writer.array("draws/weights", np.empty((0, problem.n_pseudo)), *(draw.weights for draw in draws))
    writer.array("draws/variance", np.array([draw.variances for draw in draws]).reshape(T, D))
    writer.array("draws/theta", np.array([_joined(draw.thetas) for draw in draws]).reshape(T, n_theta))
    # A byte per row at least, so that the size of the file bounds the number of rows.
    parts = [draw.packed if draw.n_features else np.zeros((problem.n_rows, 1), np.uint8) for draw in draws]
    writer.array("draws/Z", np.empty(0, np.uint8), *(part.ravel() for part in parts))
    if problem.priors.weighted:
        present = (draw.scores[draw.Z] for draw in draws if draw.scores is not None)
        writer.array("draws/scores", np.empty(0, np.float32), *present)


def _write_findings(writer: Writer, findings: Findings) -> dict[str, Any]:
    found = findings.axes
    thresholds = [np.nan if axis.threshold is None else axis.threshold for axis in found.axes]
    more = [(axis.explained, axis.reproducibility, axis.stability) for axis in found.axes]
    axes = np.column_stack([thresholds, np.array(more, dtype=np.float64).reshape(-1, 3)])
    writer.array("features/scale", found.scales)
    writer.array("features/center", found.center)
    writer.array("features/direction", np.ascontiguousarray(found.directions))
    writer.array("features/axis", axes)
    if findings.effects is not None and findings.shares is not None:
        writer.array("features/effect", findings.effects)
        writer.array("features/share", findings.shares)
    seen = findings.effects is not None
    return {"axes": len(axes), "reported": found.n_reported, "effects": seen}


def _write_chain(writer: Writer, i: int, chain: Chain) -> dict[str, Any]:
    state = chain.state
    arrays: dict[str, NDArray[Any]] = {"rng": state.rng, "Z": np.packbits(state.Z != 0, axis=1)}
    if chain.problem.priors.weighted:
        arrays["scores"] = state.Z[state.Z != 0]
    arrays |= {"Y": state.Y, "B": state.B, "variance": state.variance}
    arrays |= {"theta": _joined(state.theta), "step": _joined(state.step)}
    for name, values in arrays.items():
        writer.array(f"chains/{i}/{name}", values)
    return {
        "index": chain.index,
        "schedule": asdict(chain.schedule),
        "sweep": state.sweep,
        "alpha": float(state.alpha),
        "width": state.width,
        "room": state.Z.shape[1],
        "holds_warmup": chain.holds_warmup,
        "n_shards": chain.n_shards,
    }


def _joined(parts: Collection[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0), *parts])


# ---- reading


def read(path: str | PathLike[str], known: Collection[str]) -> tuple[Fit, Stage | None]:
    """Read a fit, and its stage if it is a checkpoint; `known` are the parameters of an estimator."""
    return _read_all(path, known)[:2]


def read_model(path: str | PathLike[str], known: Collection[str]) -> tuple[Fit, Findings | None]:
    """Read a fit, and what the file says of its features, if it does."""
    fit, _, findings = _read_all(path, known)
    return fit, findings


def _read_all(path: str | PathLike[str], known: Collection[str]) -> tuple[Fit, Stage | None, Findings | None]:
    with Reader(Path(path)) as reader:
        head = _head(reader, path)
        try:
            fit, stage = _read(head, reader, known)
            findings = _read_findings(head, reader, fit.problem)
        except FileError:
            raise
        except GLFMError as error:
            raise reader.error(f"{str(error)[:1].lower()}{str(error)[1:].rstrip('.')}") from error
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise reader.error("what it says of the fit makes no sense") from error
        reader.finish()
        return fit, stage, findings


def read_stage(path: str | PathLike[str]) -> Stage | None:
    """Return the stage of a checkpoint without reading the rest of it; None: a model that was saved."""
    with Reader(Path(path)) as reader:
        return _stage(_head(reader, path), reader)


def _head(reader: Reader, path: str | PathLike[str]) -> dict[str, Any]:
    head = reader.json("model")
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise reader.error("it is a zip file of something else")
    if whole(reader, head.get("version"), least=1) > _VERSION:
        raise FileError(
            f"The file {str(path)!r} has format {head['version']}, which a later glfm has written: "
            "upgrade glfm to read it."
        )
    return head


def _stage(head: dict[str, Any], reader: Reader) -> Stage | None:
    match head.get("checkpoint"):
        case None:
            return None
        case {"until": None | "converged" as until, "round": int(number), "finished": bool(finished)}:
            return Stage(until, whole(reader, number, most=1000), finished)
        case _:
            raise reader.error("what it says of its checkpoint makes no sense")


def _read(head: dict[str, Any], reader: Reader, known: Collection[str]) -> tuple[Fit, Stage | None]:
    schema = Schema.from_json(json.dumps(head["schema"]))
    priors = _priors(head["priors"])
    rowless = head["table"] is None
    if rowless:
        n_rows = whole(reader, head["n_rows"], least=1)
        problem: Problem = RowlessProblem(schema.kinds, priors, n_rows, _facts(reader, schema, n_rows))
        frame: Frame | None = None
        whole_table: Whole | None = None
    else:
        frame, whole_table = _read_table(reader, head)
        if frame.names != list(schema) or frame.n_rows != head["n_rows"]:
            raise reader.error("its table has other columns or rows than its fit")
        pinned = reader.array("inactive", np.bool_, (frame.n_rows,)) if head["inactive"] else None
        problem = LocalProblem(schema.kinds, encode(frame, schema.kinds), priors, pinned)
    stage = _stage(head, reader)
    n_draws = whole(reader, head["n_draws"], least=0 if stage is not None and not rowless else 1)
    warmup = {whole(reader, t, most=n_draws - 1) for t in head.get("warmup", ())}
    draws = [
        replace(draw, is_warmup=t in warmup)
        for t, draw in enumerate(_read_draws(reader, problem, n_draws, rowless))
    ]
    chains = []
    if isinstance(problem, LocalProblem):
        chains = [_read_chain(reader, problem, i, one, draws) for i, one in enumerate(head["chains"])]
    if not rowless and sum(len(chain.draws) for chain in chains) != len(draws):
        raise reader.error("its draws belong to other chains")
    key = tuple(whole(reader, part) for part in head["seed"]["spawn_key"])
    seed = np.random.SeedSequence(whole(reader, head["seed"]["entropy"], most=2**4096), spawn_key=key)
    parameters = _parameters(head["parameters"], reader, known)
    fit = Fit(parameters, schema, frame, problem, tuple(chains), Draws(draws), seed, whole=whole_table)
    refinement = read_refinement(reader, head.get("refinement"), problem, head["version"])
    return replace(fit, refinement=refinement), stage


def _facts(reader: Reader, schema: Schema, n_rows: int) -> ColumnFacts:
    """Read what a fit without its rows knows of their cells."""
    spreads = _finite(reader, "columns/spread", (len(schema.kinds),))
    counts = [
        reader.array(f"columns/{d}/counts", np.int64, (kind.n_levels,))
        for d, kind in enumerate(schema.kinds.values())
    ]
    # As floats, so that a sum of enormous counts does not become a small one.
    if (spreads < 0.0).any() or any((n < 0).any() or n.sum(dtype=np.float64) > n_rows for n in counts):
        raise reader.error("what it says of the cells of its columns cannot be")
    return ColumnFacts(tuple(spreads.tolist()), tuple(counts))


def _read_table(reader: Reader, head: dict[str, Any]) -> tuple[Frame, Whole | None]:
    """Read the table of the fit, and the one of which it is a sample, if it is."""
    frame = unpack(head["table"], reader)
    if "n_all" not in head:
        return frame, None
    rows = reader.array("sample", np.int64, (whole(reader, head["n_rows"], least=1, most=frame.n_rows),))
    if head["n_all"] != frame.n_rows or rows[0] < 0 or rows[-1] >= frame.n_rows or (np.diff(rows) <= 0).any():
        raise reader.error("its fit is of other rows than its table has")
    return taken(frame, rows.astype(np.intp)), Whole(frame, rows.astype(np.intp))


def _read_findings(head: dict[str, Any], reader: Reader, problem: Problem) -> Findings | None:
    stored = head.get("features")
    if stored is None:
        return None
    n = whole(reader, stored["axes"], most=1000)
    reported = whole(reader, stored["reported"], most=n)
    width = sum(matrix.shape[1] for matrix, _ in metrics_of(problem))
    scales = _finite(reader, "features/scale", (len(problem.names),), above=0.0)
    center = _finite(reader, "features/center", (width,))
    directions = _finite(reader, "features/direction", (width, n))
    numbers = reader.array("features/axis", np.float64, (n, 4))
    if np.isinf(numbers).any():
        raise reader.error("its features are not those of a fit")
    axes = [Axis(None if np.isnan(a) else a, b, c, d) for a, b, c, d in numbers.tolist()]
    found = FoundAxes(scales, center, directions, axes, reported)
    if stored["effects"] is not True:
        return Findings(found)
    shape = (5, reported, len(measured(problem.kinds)[0]) if reported else 0)
    effects = reader.array("features/effect", np.float64, shape)
    return Findings(found, effects, _finite(reader, "features/share", (reported,)))


def _parameters(stored: dict[str, Any], reader: Reader, known: Collection[str]) -> dict[str, Any]:
    unknown = sorted(set(stored) - set(known))
    if unknown:
        raise reader.error(f"its model has a parameter {unknown[0]!r}, which this version of glfm has not")
    stored = {"unseen": "error", "weighted": False, **stored}  # which earlier files need not say
    if "features" in stored:  # the name of `weighted` in earlier files
        stored["weighted"] = stored.pop("features") == "weighted"
    parameters = _with_tuples(stored)
    if parameters.get("schema") is not None:
        parameters["schema"] = Schema.from_json(json.dumps(parameters["schema"]))
    return parameters


def _with_tuples(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in stored.items()}


def _priors(stored: dict[str, Any]) -> Priors:
    priors = Priors(**_with_tuples(stored))
    types = type(priors.bias), type(priors.weighted), type(priors.max_features)
    if types[:2] != (bool, bool) or types[2] not in (int, type(None)):
        raise ValueError("bias and weighted are bools and max_features a whole number")
    return priors


def _finite(
    reader: Reader,
    name: str,
    shape: tuple[int, ...],
    above: float = -_LARGEST,
    dtype: type[np.float32] | type[np.float64] = np.float64,
) -> NDArray[Any]:
    """Read numbers above `above` whose squares are finite: compiled loops trust them."""
    values = reader.array(name, dtype, shape)
    wide = values.astype(np.float64)
    if not ((wide > above) & (wide < _LARGEST)).all():
        raise reader.error(f"its member '{name}.npy' holds numbers that no fit has")
    return values


def _thetas(reader: Reader, problem: Problem, joined: FloatArray) -> list[FloatArray]:
    """Cut thresholds apart by column; those of a column grow."""
    kinds = list(problem.kinds.values())
    parts = np.split(joined, np.cumsum([kind.initial_theta().size for kind in kinds])[:-1])
    if not all((np.diff(part) > 0).all() for part in parts):
        raise reader.error("it has thresholds that do not grow")
    return [part.copy() for part in parts]


def _n_theta(problem: Problem) -> int:
    return sum(kind.initial_theta().size for kind in problem.kinds.values())


def _read_draws(reader: Reader, problem: Problem, n_draws: int, rowless: bool) -> list[Draw]:
    chain, index, n_features = (
        reader.array(f"draws/{name}", np.int64, (n_draws,)).tolist()
        for name in ("chain", "index", "n_features")
    )
    for number in (*chain, *index, *n_features):
        whole(reader, number, most=2**31)
    alpha = _finite(reader, "draws/alpha", (n_draws,), above=0.0)
    bias, n_rows = int(problem.priors.bias), problem.n_rows
    width = [bias + k for k in n_features]
    weights = _finite(reader, "draws/weights", (sum(width), problem.n_pseudo))
    variance = _finite(reader, "draws/variance", (n_draws, len(problem.names)), above=_SMALLEST)
    theta = _finite(reader, "draws/theta", (n_draws, _n_theta(problem)))
    size = [n_rows * max(-(-k // 8), 1) for k in n_features]
    packed = np.split(reader.array("draws/Z", np.uint8, (sum(size),)), np.cumsum(size)[:-1])
    each = np.split(weights, np.cumsum(width)[:-1])
    likelihood = _finite(reader, "draws/log_likelihood", (n_draws,)) if rowless else None
    features = [packed[t].reshape(n_rows, -1)[:, : -(-n_features[t] // 8)].copy() for t in range(n_draws)]
    weighted = problem.priors.weighted
    scores = _scores(reader, "draws/scores", features, n_features, np.float32) if weighted else None
    x = problem.x if isinstance(problem, LocalProblem) else None
    draws = [
        Draw(
            layout=problem.layout,
            chain=chain[t],
            index=index[t],
            alpha=float(alpha[t]),
            weights=each[t].copy(),
            variances=variance[t].copy(),
            thetas=tuple(_thetas(reader, problem, theta[t])),
            packed=features[t],
            scores=None if scores is None else scores[t],
            x=x,
            known_log_likelihood=None if likelihood is None else float(likelihood[t]),
        )
        for t in range(n_draws)
    ]
    if not all(draw.Z.any(axis=0).all() for draw in draws):
        raise reader.error("it has a feature that no row has")
    return draws


def _scores(
    reader: Reader,
    name: str,
    packed: Sequence[NDArray[np.uint8]],
    width: Sequence[int],
    dtype: type[np.float32] | type[np.float64],
) -> list[NDArray[Any]]:
    """Read the scores of the features that rows have, some features after the others."""
    present = [np.unpackbits(one, axis=1, count=k) != 0 for one, k in zip(packed, width, strict=True)]
    sizes = [int(one.sum()) for one in present]
    values = _finite(reader, name, (sum(sizes),), dtype=dtype)
    if not values.all():
        raise reader.error(f"its member '{name}.npy' has a score of 0, which no row has")
    found = []
    for one, mine in zip(present, np.split(values, np.cumsum(sizes)[:-1]) if sizes else (), strict=True):
        A = np.zeros(one.shape, dtype=dtype)
        A[one] = mine
        found.append(A)
    return found


def _read_chain(
    reader: Reader, problem: LocalProblem, i: int, head: dict[str, Any], draws: list[Draw]
) -> Chain:
    bias, n_rows = int(problem.priors.bias), problem.n_rows
    width = whole(reader, head["width"], least=bias)
    room = whole(reader, head["room"], least=max(width, 1))
    packed = reader.array(f"chains/{i}/Z", np.uint8, (n_rows, -(-room // 8)))
    Z: NDArray[Any] = np.unpackbits(packed, axis=1, count=room)
    if problem.priors.weighted:
        Z = _scores(reader, f"chains/{i}/scores", [packed], [room], np.float64)[0]
    if not (
        (Z[:, :bias] == 1).all()
        and Z[:, bias:width].any(axis=0).all()
        and not Z[problem.pinned_rows, bias:].any()
    ):
        raise reader.error("its chains have features that no row has")
    n_steps = [kind.n_steps for kind in problem.kinds.values()]
    step = _finite(reader, f"chains/{i}/step", (sum(n_steps),), above=0.0)
    alpha = float(head["alpha"])
    if not 0.0 < alpha < np.inf:
        raise reader.error(f"its alpha is {alpha}")
    state = State(
        rng=reader.array(f"chains/{i}/rng", np.uint64, (4,)),
        Z=Z,
        width=width,
        Y=_finite(reader, f"chains/{i}/Y", (n_rows, problem.n_pseudo)),
        B=_finite(reader, f"chains/{i}/B", (width, problem.n_pseudo)),
        variance=_finite(reader, f"chains/{i}/variance", (len(n_steps),), above=_SMALLEST),
        theta=_thetas(reader, problem, _finite(reader, f"chains/{i}/theta", (_n_theta(problem),))),
        step=[part.copy() for part in np.split(step, np.cumsum(n_steps)[:-1])],
        alpha=alpha,
        sweep=whole(reader, head["sweep"]),
    )
    if not state.rng.any():
        raise reader.error("its random stream is dead")
    schedule = Schedule(**{name: whole(reader, value) for name, value in head["schedule"].items()})
    n_shards = whole(reader, head.get("n_shards", 0), most=problem.n_rows)
    chain = Chain(problem, schedule, state, whole(reader, head["index"]), n_shards)
    chain.draws = [draw for draw in draws if draw.chain == chain.index]
    chain.holds_warmup = head["holds_warmup"] is True
    return chain
