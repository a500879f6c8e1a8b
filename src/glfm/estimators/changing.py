"""The verbs `append`, `edit` and `remove`: the chains of a fit go on with other data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from glfm.errors import DataError, check_name
from glfm.estimators.base import Fitted
from glfm.frames.column import FloatArray
from glfm.frames.dtypes import object_array
from glfm.frames.edits import appended, edited, positions, taken
from glfm.frames.frame import Frame
from glfm.posterior.fit import Fit
from glfm.posterior.rows import NewRows
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.engine import check_workers
from glfm.sampling.priors import Schedule
from glfm.sampling.problem import LocalProblem
from glfm.sampling.settings import check_budget, read_pinned
from glfm.sampling.transfer import carried
from glfm.schema import Schema
from glfm.schema.conditions import check_columns
from glfm.schema.encoding import encode


class Changing(Fitted):
    """Give a fitted model other data: its chains go on without a restart."""

    n_warmup: int

    @abstractmethod
    def _go_on(self, fit: Fit, time_budget: float | None) -> Self:
        """Run the chains of a fit that replaces the present one; what fails leaves the model as it was."""

    @abstractmethod
    def _fit_of_all_rows(self) -> Fit:
        """Return the fit; if its chains were run over a sample of rows, with chains that have all of them."""

    def append(
        self,
        rows: Any,
        *,
        inactive: ArrayLike | None = None,
        n_warmup: int | None = None,
        n_draws: int | None = None,
        time_budget: float | None = None,
    ) -> Self:
        """Add rows to the table of the fit, go on with them, and return the model.

        The chains go on from where they are: each new row gets features that suit its cells, then all rows
        are swept. The draws so far were those of another table and are replaced. Kinds, levels and mappings
        stay those of the fit; with them, and enough sweeps, the draws are those of a fit to the whole table.

        Parameters
        ----------
        rows
            A table with the columns of the fit, in any order and of any library; it is never modified. Labels
            of pandas rows are kept, and must be new; where both tables count from 0, the count goes on. A
            level that the fit did not know is refused.
        inactive
            One yes or no per new row: rows that are pinned to have no feature but the bias.
        n_warmup
            Sweeps of each chain before its first draw; None: half of the model's n_warmup.
        n_draws
            Draws of each chain; None: as many as the chains were last to make, equally far apart.
        time_budget
            Seconds after which the chains stop, with a warning if that is before their end.
        """
        schedule = self._next_schedule(n_warmup, n_draws, time_budget)
        fit, new = self._fit_of_all_rows(), Frame.read(rows)
        pinned_now = read_pinned(inactive, new.n_rows)
        x = _encoded(new, fit.schema)
        check_columns(fit.schema, new.names)
        pinned = None
        if pinned_now is not None or fit.rows.pinned is not None:
            none = np.zeros(new.n_rows, dtype=np.bool_)
            pinned = np.concatenate([fit.rows.pinned_rows, none if pinned_now is None else pinned_now])
        source = np.concatenate([np.arange(fit.rows.n_rows), np.full(new.n_rows, -1)])
        states = [Draw.of(fit.rows, chain.state, chain.index, 0) for chain in fit.chains]
        placed = NewRows(x, fit.with_draws(states), self.n_jobs)
        longer = _moved(fit, appended(fit.table, new), pinned, source, schedule, placed)
        return self._go_on(longer, time_budget)

    def edit(
        self,
        cells: Mapping[tuple[Hashable, str], Any],
        *,
        n_warmup: int | None = None,
        n_draws: int | None = None,
        time_budget: float | None = None,
    ) -> Self:
        """Set cells of the table of the fit to other values, or make them holes; go on, and return the model.

        Parameters
        ----------
        cells
            {(row, column): value}, where row is a label of the pandas index (otherwise a position, from 0);
            None or NaN makes the cell a hole. A level that the fit did not know is refused.
        n_warmup, n_draws, time_budget
            As in `append`.

        Examples
        --------
        >>> import glfm, pandas as pd
        >>> df = pd.DataFrame({"height": [1.7, None, 1.6], "smoker": ["no", "yes", None]})
        >>> model = glfm.GLFM(n_chains=2, n_warmup=50, n_draws=20, random_state=0, progress=False).fit(df)
        >>> model = model.edit({(1, "height"): 1.9, (0, "smoker"): None})
        >>> float(model.impute().loc[1, "height"])
        1.9
        """
        schedule = self._next_schedule(n_warmup, n_draws, time_budget)
        keys = list(cells) if isinstance(cells, Mapping) else []
        if not keys or not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
            raise DataError('The cells are a dictionary such as {(row, "column"): value}, with at least one.')
        fit = self._fit_of_all_rows()
        for _, named_column in keys:
            check_name(str(named_column), fit.schema, "fitted column", DataError)
        at = positions(fit.table, [row for row, _ in keys])
        named: dict[str, tuple[NDArray[np.intp], list[Any]]] = {}
        for name in dict.fromkeys(str(column) for _, column in keys):
            here = [i for i, (_, column) in enumerate(keys) if str(column) == name]
            values = [cells[keys[i]] for i in here]
            if name in fit.schema.kinds:
                column = pd.Series(object_array(values), dtype=object)
                _encoded(Frame.read(column.to_frame(name)), fit.schema, [name])
            named[name] = at[here], values
        source = np.arange(fit.rows.n_rows)
        changed = _moved(fit, edited(fit.table, named), fit.rows.pinned, source, schedule)
        return self._go_on(changed, time_budget)

    def remove(
        self,
        rows: Hashable | Iterable[Hashable],
        *,
        n_warmup: int | None = None,
        n_draws: int | None = None,
        time_budget: float | None = None,
    ) -> Self:
        """Take rows out of the table of the fit, go on without them, and return the model.

        Parameters
        ----------
        rows
            Labels of the pandas index (otherwise positions, from 0): one, or several.
        n_warmup, n_draws, time_budget
            As in `append`.
        """
        schedule = self._next_schedule(n_warmup, n_draws, time_budget)
        alone = isinstance(rows, tuple) or not isinstance(rows, Iterable) or isinstance(rows, str | bytes)
        fit = self._fit_of_all_rows()
        gone = positions(fit.table, [rows] if alone else list(rows))  # type: ignore[arg-type]
        kept = np.delete(np.arange(fit.rows.n_rows), gone)
        if not gone.size or not kept.size:
            how_many = "All rows" if gone.size else "No row"
            raise DataError(f"{how_many} would be removed: name some rows of the table, and not all.")
        left = None if fit.rows.pinned is None else fit.rows.pinned[kept]
        return self._go_on(_moved(fit, taken(fit.table, kept), left, kept, schedule), time_budget)

    def _next_schedule(
        self, n_warmup: int | None, n_draws: int | None, time_budget: float | None
    ) -> Schedule:
        """Return the schedule to go on with, once it is clear that there is something to go on from."""
        fit = self._fit
        check_budget(time_budget)
        check_workers(self.n_jobs)
        if not fit.chains:
            raise DataError(fit.absent)
        before = fit.chains[0].schedule
        return Schedule(
            self.n_warmup // 2 if n_warmup is None else n_warmup,
            before.n_draws if n_draws is None else n_draws,
            before.thin,
        )


def _moved(
    fit: Fit,
    frame: Frame,
    pinned: NDArray[np.bool_] | None,
    source: NDArray[np.intp],
    schedule: Schedule,
    placed: NewRows | None = None,
) -> Fit:
    """Return a fit without draws whose chains are carried over to a changed table.

    `source` is where each row was before, -1 for new rows, which are `placed` under the state of each chain.
    """
    old = fit.rows
    problem = LocalProblem(old.kinds, encode(frame, old.kinds), old.priors, pinned)
    chains = []
    for i, chain in enumerate(fit.chains):
        state = carried(chain.state, problem, source, None if placed is None else placed.activations(i))
        chains.append(Chain(problem, schedule, state, chain.index, chain.n_shards))
    return replace(fit, frame=frame, problem=problem, chains=tuple(chains), draws=Draws([]))


def _encoded(frame: Frame, schema: Schema, names: Iterable[str] | None = None) -> FloatArray:
    """Encode cells that are new to the fit; refuse levels that it did not know."""
    kinds = schema.kinds if names is None else {name: schema.kinds[name] for name in names}
    x = encode(frame, kinds, "missing")
    for d, name in enumerate(kinds):
        column = frame.column(name)
        unseen = np.isnan(x[:, d]) & ~column.missing
        if unseen.any():
            level, levels = column.values[unseen].tolist()[0], kinds[name].levels or ()
            known = ", ".join(map(repr, levels[:8])) + (", ..." if len(levels) > 8 else "")
            raise DataError(
                f"Column {name!r} holds the level {level!r}, which is not one of {known}, "
                "the levels of the fit: mend it, make it a hole, or fit anew with a schema that has it."
            )
    return x
