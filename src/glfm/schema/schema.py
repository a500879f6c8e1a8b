"""The kind of each column of a table, with reasons; printed, and written to and read from JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glfm.errors import SchemaError, check_name
from glfm.frames.frame import Frame
from glfm.kinds import Kind, find_kind
from glfm.notebook import text_table
from glfm.schema.inference import infer_kinds

if TYPE_CHECKING:
    import pandas as pd

_FORMAT, _VERSION = "glfm-schema", 1
_PAIR = re.compile(r"\[\n\s+([-+.\de]+),\n\s+([-+.\de]+)\n\s+\]")  # two numbers over four lines of JSON
_HEAD = ("column", "kind", "details", "reason")


class Schema(Mapping[str, Kind | None]):
    """The kind of every column, in the order of the table, with a reason.

    Parameters
    ----------
    kinds
        {column: kind name, toolbox letter, `Kind` class or instance, or "ignore"}; None also means ignore.
    reasons
        {column: why it is of this kind}; default: "given".
    evidence
        The table of `infer(evidence=True)`; see the property.

    Examples
    --------
    >>> import glfm, pandas as pd
    >>> df = pd.DataFrame({"visits": [0, 2, None, 5], "pain": ["no", "some", "some", None]})
    >>> glfm.Schema.infer(df, {"pain": glfm.Ordinal(levels=["no", "some", "much"])})
    column  kind     details   reason
    visits  count    softplus  whole numbers, none negative
    pain    ordinal  3 levels  given
    """

    def __init__(
        self,
        kinds: Mapping[Any, object],
        reasons: Mapping[str, str] | None = None,
        evidence: pd.DataFrame | None = None,
    ) -> None:
        if not isinstance(kinds, Mapping):
            raise SchemaError(
                f"A schema is a glfm.Schema or a dictionary of column and kind, not a {type(kinds).__name__}."
            )
        self._kinds = {str(name): _find(str(name), kind) for name, kind in kinds.items()}
        self._reasons = {name: (reasons or {}).get(name, "given") for name in self._kinds}
        self._evidence = evidence

    @classmethod
    def infer(
        cls,
        data: Any,
        given: Mapping[Any, object] | None = None,
        *,
        evidence: bool = False,
        predictive: bool = False,
    ) -> Schema:
        """Choose a kind for every column that is not `given`, and learn the open parameters of all kinds.

        Parameters
        ----------
        data
            A table: pandas, polars, pyarrow or a 2-D array.
        given
            A schema, or {column: kind} for some or all columns.
        evidence
            Whether to try columns whose values leave their kind open as each kind that they allow: whole
            numbers as count, ordinal and categorical or, from 21 different ones on, as count, positive and
            real; ordered categories, and text that numbers put into an order, as ordinal and categorical.
            Short fits to at most 1,000 rows then predict hidden cells, and a kind that makes them more
            probable than the one chosen by rule, by more than three standard errors, replaces it; of several,
            the simplest that is not clearly worse than the best. It takes seconds to a minute.
        predictive
            Whether open parameters are chosen to predict missing cells best rather than to be interpreted:
            numbers have the mapping "quantile", and levels observed less than ten times are pooled. `Imputer`
            and the command impute use it.
        """
        table = Frame.read(data)
        known = given if isinstance(given, Schema) else Schema({} if given is None else given)
        kinds, reasons = infer_kinds(table, known, known.reasons, predictive)
        if not evidence:
            return cls(kinds, reasons)
        # Evidence needs fits, which import schemas: an exception to the order of layers.
        from glfm.analysis.kind_evidence import plausible, weigh

        modelled = {name: kind for name, kind in kinds.items() if kind is not None}
        options = {
            name: plausible(table.column(name), kind) for name, kind in modelled.items() if name not in known
        }
        doubtful = {name: some for name, some in options.items() if len(some) > 1}
        found = weigh(table, modelled, reasons, doubtful)
        return cls({**kinds, **found.kinds}, reasons | found.reasons, found.table)

    # ---- mapping

    def __getitem__(self, name: str) -> Kind | None:
        check_name(name, self._kinds, "column", KeyError)
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return list(self.items()) == list(other.items()) and self._reasons == other._reasons

    __hash__ = None  # type: ignore[assignment]

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the modelled columns, in order."""
        return {name: kind for name, kind in self._kinds.items() if kind is not None}

    @property
    def reasons(self) -> dict[str, str]:
        """Why each column is of its kind."""
        return dict(self._reasons)

    @property
    def evidence(self) -> pd.DataFrame | None:
        """How well each plausible kind predicts hidden cells; None without `infer(evidence=True)`.

        One row per column and plausible kind, first the one that was chosen by rule: the number of hidden
        `cells`, their mean log probability (`log_score`, in nats), its `difference` from that of the rule's
        kind with a standard `error`, and which kind was `chosen`. All are probabilities of the value as it
        was recorded: for a density, the mass of the unit interval around a whole number.
        """
        return None if self._evidence is None else self._evidence.copy()

    @property
    def ignored(self) -> list[str]:
        """The columns that are not modelled."""
        return [name for name, kind in self._kinds.items() if kind is None]

    # ---- JSON

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the schema as JSON that can be edited by hand; also write it to `path` if given."""
        columns = {name: self._to_dict(name) for name in self}
        data = {"format": _FORMAT, "version": _VERSION, "columns": columns}
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        text = _PAIR.sub(r"[\1, \2]", text)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _to_dict(self, name: str) -> dict[str, Any]:
        kind = self[name]
        try:
            data = {"kind": "ignore"} if kind is None else kind.to_dict()
            json.dumps(data, allow_nan=False)
        except (SchemaError, TypeError, ValueError) as error:
            raise SchemaError(f"Column {name!r} cannot be written to JSON: {_tail(error)}") from error
        return {"kind": data.pop("kind"), "reason": self._reasons[name], **data}

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Schema:
        """Read a schema from JSON text or from the file at a path."""
        data = _parse(source)
        kinds: dict[str, Kind | None] = {}
        reasons: dict[str, str] = {}
        for name, entry in data["columns"].items():
            if not isinstance(entry, dict) or not isinstance(entry.get("reason", ""), str):
                raise SchemaError(
                    f"Column {name!r} of the JSON schema must be an object such as "
                    f'{{"kind": "count", "reason": "given"}}, not {json.dumps(entry)[:80]}.'
                )
            arguments = dict(entry)
            reasons[name] = arguments.pop("reason", "given")
            if arguments == {"kind": "ignore"}:
                kinds[name] = None
                continue
            try:
                kinds[name] = Kind.from_dict(arguments)
            except (TypeError, ValueError) as error:
                raise SchemaError(f"Column {name!r} of the JSON schema: {_tail(error)}") from error
        return cls(kinds, reasons)

    # ---- print

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                name,
                "ignore" if kind is None else kind.name,
                "" if kind is None else kind.details,
                self._reasons[name],
            )
            for name, kind in self.items()
        ]

    def __repr__(self) -> str:
        rows = [_HEAD, *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        return text_table(_HEAD, self._rows(), most=None)


# ---- reading


def _find(name: str, kind: object) -> Kind | None:
    if kind is None or (isinstance(kind, str) and kind == "ignore"):
        return None
    try:
        return find_kind(kind)
    except SchemaError as error:
        raise SchemaError(f"Column {name!r}: {_tail(error)}") from error


def _tail(error: Exception) -> str:
    """Return the message of an error as the end of a sentence."""
    text = str(error).rstrip(".")
    return f"{text[:1].lower()}{text[1:]}."


def _parse(source: str | PathLike[str]) -> dict[str, Any]:
    """Return the outer object of a JSON schema, checked."""
    text = source
    if not (isinstance(text, str) and text.lstrip().startswith("{")):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise SchemaError(
                f"A schema is JSON text or the path of a file that can be read, not {str(source)[:80]!r}."
            ) from error
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise SchemaError(f"The schema is not valid JSON at line {error.lineno}: {error.msg}.") from error
    except SchemaError:
        raise
    except (ValueError, RecursionError) as error:
        raise SchemaError("The schema has a number or a nesting without end.") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT or data.get("version") != _VERSION:
        raise SchemaError(f'A JSON schema starts with {{"format": "{_FORMAT}", "version": {_VERSION}, ...')
    unknown = sorted(set(data) - {"format", "version", "columns"})
    if unknown:
        raise SchemaError(f"The JSON schema has no key {unknown[0]!r}: use format, version and columns.")
    if not isinstance(data.get("columns"), dict):
        raise SchemaError("The JSON schema needs the key 'columns', an object with one entry per column.")
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError(f"The JSON schema has the key {twice!r} twice in one place: keep one of the two.")
    return data
