"""Arguments and options that several commands share: tables, models and the settings of a fit."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glfm.cli.app import BEGIN
from glfm.errors import DataError

if TYPE_CHECKING:
    from glfm.estimators.glfm import GLFM
    from glfm.sampling.pace import Budget
    from glfm.schema import Schema


class How(StrEnum):
    """How a missing cell is filled."""

    auto = "auto"
    mode = "mode"
    mean = "mean"
    median = "median"
    sample = "sample"


class Unseen(StrEnum):
    """What to do with a level that the fit did not see."""

    error = "error"
    missing = "missing"


TableFile = Annotated[Path, typer.Argument(help="A table: csv, csv.gz, parquet or json, by extension.")]
OptionalTable = Annotated[
    Path | None,
    typer.Argument(help="A table: csv, csv.gz, parquet or json, by extension; optional with --model."),
]
ModelFile = Annotated[
    Path | None, typer.Option("--model", help="A model of the command fit, in place of a new fit.")
]
FittedModel = Annotated[Path, typer.Argument(help="A model of the command fit.")]
ResultFile = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where the result goes; default: stdout, as csv.")
]
PictureFile = Annotated[Path | None, typer.Option("--plot", help="Where a picture goes (png, pdf or svg).")]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="Kinds of columns, as JSON; see the command schema.")
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        "--na", help="Text of a missing cell in csv, in place of NA, null and the like; repeatable."
    ),
]
Clean = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Read n/a and - as missing, Yes and ' yes' as one level, $1,200 and 5 % as numbers.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
NChains = Annotated[int, typer.Option("--chains", help="Number of chains.")]
NDraws = Annotated[int, typer.Option("--draws", help="Draws kept per chain.")]
NJobs = Annotated[int | None, typer.Option("--jobs", help="Threads; default: one per chain and core.")]
_LARGE_FILE = 2**23  # bytes
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def read_seconds(text: str | None) -> float | None:
    """Return the seconds of a time such as 90, 90s, 2m or 1h30m."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        return float(text)
    parts = re.findall(r"(\d+\.?\d*)([hms])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise DataError(f"--time-budget: {text!r} is not a time: give seconds, or such as 90s, 2m or 1h30m.")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


TimeBudget = Annotated[
    str | None,
    typer.Option(
        "--time-budget",
        metavar="TIME",
        help="For the whole command: seconds, or such as 90s, 2m, 1h30m.",
    ),
]
MaxFeatures = Annotated[
    int | None, typer.Option("--max-features", min=0, help="Largest number of features of a draw.")
]
SampleOfRows = Annotated[
    int | None,
    typer.Option("--sample", min=1, help="Fit so many rows, chosen at random, of a large table."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No estimate of the cost and no progress on stderr.")]


@dataclass(frozen=True)
class Fitting:
    """The options that every fitting command takes."""

    schema: SchemaFile = None
    seed: Seed = 0
    chains: NChains = 4
    draws: NDraws = 100
    time_budget: float | None = None
    max_features: MaxFeatures = None
    jobs: NJobs = None
    na: Na = None
    clean: Clean = False
    quiet: Quiet = False
    sample: SampleOfRows = None

    @cached_property
    def budget(self) -> Budget:
        """The time of the whole command, from when it began to its last file."""
        from glfm.sampling.pace import Budget

        return Budget(self.time_budget, BEGIN)

    def read_schema(self) -> Schema | None:
        """Return the schema in the file of --schema, if given."""
        if self.schema is None:
            return None
        from glfm.schema import Schema

        return Schema.from_json(self.schema)

    def model(self) -> GLFM:
        """Return the model to fit."""
        from glfm.estimators.glfm import GLFM
        from glfm.sampling.settings import check_budget

        check_budget(self.budget.seconds)
        return GLFM(
            self.read_schema(),
            n_chains=self.chains,
            n_draws=self.draws,
            max_features=self.max_features,
            n_jobs=self.jobs,
            random_state=self.seed,
            progress=not self.quiet,
        )

    def predictor(self, data: Path) -> GLFM:
        """Return a model of the table in a file, fitted with the choices of `Imputer`."""
        from glfm.estimators.imputer import FOR_FILLING, N_WARMUP, predicting
        from glfm.files import read_table

        plain = self.model()
        self._say_that_it_reads(data)
        frame = read_table(data, na=self.na, schema=plain.schema, clean=self.clean)
        settings = {**plain.get_params(deep=False), "n_warmup": N_WARMUP, "thin": 1}
        settings |= {"weighted": "auto", "refine": "auto"}
        model = predicting(frame, time_budget=self.time_budget, **settings)
        self.announce(model, frame)
        with self.followed_by(FOR_FILLING):
            return model.fit(frame, time_budget=self.budget.part(1.0 - FOR_FILLING).left, sample=self.sample)

    def fit(
        self,
        data: Path,
        checkpoint: Path | None = None,
        checkpoint_every: float = 60.0,
        for_answer: float = 0.1,
        needed: Callable[[int, int], float] | None = None,
    ) -> GLFM:
        """Return a model of the table in a file; go on from the checkpoint if there is one.

        `for_answer` is the share of a time budget that is left for what comes after the fit, or less, if that
        needs so many seconds of processor for the numbers of rows and columns.
        """
        model = self.model()
        frame = self.read(data, model)
        resume = checkpoint if checkpoint is not None and checkpoint.exists() else None
        if resume is not None:
            typer.echo(f"glfm: going on from the checkpoint {resume}.", err=True)
        with self.followed_by(for_answer):
            return model.fit(
                frame,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                resume=resume,
                time_budget=self._time_to_fit(for_answer, needed and needed(*frame.shape)),
                sample=self.sample,
            )

    def followed_by(self, for_answer: float = 0.0) -> AbstractContextManager[None]:
        """Say the time to the end of the command, of which a share comes after what is done inside."""
        from glfm.sampling.progress import followed_by

        until = None if self.time_budget is None else BEGIN + self.time_budget
        return followed_by(for_answer / (1.0 - for_answer), until)

    def _time_to_fit(self, for_answer: float, needed: float | None) -> float | None:
        """Return the seconds that a fit may take; so many of processor are kept, a share of all at most."""
        left = self.budget.left
        if left is None:
            return None
        busy = max((time.monotonic() - BEGIN) / max(time.process_time(), 1e-3), 1.0)
        answer = for_answer * left
        return left - (answer if needed is None else min(answer, busy * needed))

    def read(self, data: Path, model: GLFM) -> Any:
        """Return the table in a file, after printing the estimated cost of fitting it."""
        from glfm.files import read_table

        self._say_that_it_reads(data)
        frame = read_table(data, na=self.na, schema=model.schema, clean=self.clean)
        self.announce(model, frame)
        return frame

    def _say_that_it_reads(self, data: Path) -> None:
        """Print what is being read, if that will take seconds."""
        if not self.quiet and data.is_file() and data.stat().st_size > _LARGE_FILE:
            left = self.budget.left
            rest = "" if left is None else f"; about {left:.0f} s left"
            typer.echo(f"glfm: reading {data.name}, {data.stat().st_size / 2**20:.0f} MiB{rest}.", err=True)

    def announce(self, model: GLFM, frame: Any) -> None:
        """Print the estimated cost of fitting a table on stderr, unless --quiet is given."""
        from glfm.cli.cost import announce

        if not self.quiet:
            with_cost = self.time_budget is None and self.sample is None
            announce(model, frame, lambda text: typer.echo(f"glfm: {text}", err=True), with_cost)


def fitting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Fitting` to a command, which receives them as its argument `options`."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    shared = dict(inspect.signature(Fitting, eval_str=True).parameters)
    shared["time_budget"] = shared["time_budget"].replace(annotation=TimeBudget)  # text, such as 2m

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        values["time_budget"] = read_seconds(values["time_budget"])
        options = Fitting(**{name: values.pop(name) for name in shared})
        command(**values, options=options)

    parameters = [*(one for one in own if one.name != "options"), *shared.values()]
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    )
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    del wrapped.__wrapped__  # typer would read the annotations from it
    return wrapped


def read_model(path: Path, options: Fitting, data: Path | None = None) -> tuple[GLFM, Any]:
    """Return the model in a file, and the table in another if there is one; --schema would contradict it."""
    from glfm.estimators.glfm import load
    from glfm.files import read_table

    if options.schema is not None:
        raise DataError("A model has the schema that it was fitted with: leave out --schema or --model.")
    model = load(path)
    if data is None:
        return model, None
    return model, read_table(data, na=options.na, schema=model.schema_, clean=options.clean)


def fitted_model(
    data: Path | None,
    model: Path | None,
    options: Fitting,
    for_answer: float,
    needed: Callable[[int, int], float] | None = None,
) -> tuple[GLFM, Path]:
    """Return a model, fitted to a table or read from a file, and the path of the table or the file.

    `for_answer` and `needed` are what is left of a time budget for what comes after the fit: `Fitting.fit`.
    """
    if data is not None and model is None:
        return options.fit(data, for_answer=for_answer, needed=needed), data
    if model is not None and data is None:
        return read_model(model, options)[0], model
    raise DataError("One source is needed: name either a table, or a model with --model.")
