"""A table of a run: its columns by the names that are asked for, and refusals that say where a cell stands."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Never, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fedsim.arrays import BoolArray, FloatArray, IntArray
from fedsim.errors import DataError, suggest
from fedsim.inputs.arrow import Column, as_texts, numbers_of, texts_of
from fedsim.inputs.tables.content import as_numbers, read_content
from fedsim.inputs.tables.header import NUMBER, UNITS, Name, Unit, meant
from fedsim.inputs.tables.reading import counted, note
from fedsim.units import Bound

_DECIMAL_COMMA: Final = r"^[+-]?\d+,\d+(?:[eE][+-]?\d+)?$"
_THOUSANDS: Final = r"^\s*[+-]?\d{1,3},\d{3}\s*$"
_PERCENT: Final = UNITS["%"]
_SHARES: Final = Unit("shares")
_NO_UNIT: Final = re.compile(r"_per_|/s(ec(ond)?)?[\])]?$|[_ (][kmg](b|ibps)\)?$", re.IGNORECASE)
"""Ends of names that look like a unit: a quotient, and mb or MB/S, which may be bits or bytes."""
_GREATEST: Final = 2.0**53
Missing = Literal["refused", "nan"]


class Table:
    """A table that a field of a scenario names; rows are counted from 1 in messages, without the header."""

    def __init__(self, columns: Mapping[str, Column], where: str, *, decimal_comma: bool = False) -> None:
        self.columns, self.where, self._decimal_comma = dict(columns), where, decimal_comma
        self._read: dict[str, NDArray[Any] | pa.StringArray] = {}

    @classmethod
    def read(cls, path: str | Path, field: str = "", contact_with: str | None = None) -> Self:
        where = f"{field}: {path}" if field else str(path)
        columns, decimal_comma = read_content(path, where, contact_with)
        return cls(columns, where, decimal_comma=decimal_comma)

    @property
    def rows(self) -> int:
        values = self.columns.values()
        return max((len(np.atleast_1d(one) if isinstance(one, np.ndarray) else one) for one in values), default=0)

    def refuse(self, why: str) -> Never:
        raise DataError(f"{self.where}: {why}")

    def refuse_cell(self, name: str, row: int, allowed: str) -> Never:
        self.refuse(f"{self.called(name)}, row {row + 1}: {self.cell(name, row)} is not allowed; allowed: {allowed}")

    def refuse_first(self, name: str, wrong: BoolArray, allowed: str, rows: IntArray | None = None) -> None:
        """Refuse the first cell of a column for which a mask is true, if any, or of some of its rows."""
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            self.refuse_cell(name, first if rows is None else int(rows[first]), allowed)

    def note(self, count: int, what: str) -> None:
        counted(self.where, count, what)

    def note_of(self, name: str, what: str) -> None:
        note(self.where, f"{self.called(name)} {what}")

    def find(self, *names: str) -> str | None:
        """Return the first of some columns that the table has; refuse a name that two columns may mean."""
        for name in names:
            found = meant(name, self.columns)
            if len(found) > 1:
                self.refuse(f"{' and '.join(map(repr, found))} may both be {name!r}; allowed: one of them")
            if found:
                return found[0]
        return None

    def called(self, name: str, *others: str) -> str:
        """Return the name of a column as it stands in the table, or of the first of some others."""
        if (found := self.find(name, *others)) is None:
            names = ", ".join(self.columns) or "none"
            self.refuse(f"there is no column {name!r}{suggest(name, self.columns)}; its columns: {names}")
        return found

    def unit(self, name: str) -> Unit | None:
        return Name.of(self.called(name)).unit

    def values(self, name: str) -> NDArray[Any] | pa.StringArray:
        found = self.called(name)
        if found not in self._read:
            try:
                self._read[found] = as_numbers(self.columns[found], decimal_comma=self._decimal_comma)
            # Of texts in another encoding, and of Arrow's types that are no numbers, dates or texts.
            except (DataError, ValueError, TypeError, NotImplementedError, KeyError) as error:
                self.refuse(f"{found}: it holds neither numbers nor dates nor texts: {error}")
            if self._decimal_comma and self.is_numeric(found):
                self._note_commas(found)
            if len(self._read[found]) != self.rows and "offset" not in self.columns:
                self.refuse(f"{found}: it has {len(self._read[found])} rows and the table {self.rows}")
        return self._read[found]

    def _note_commas(self, found: str) -> None:
        """Note commas that may part thousands: each stands before three digits; refuse dots beside commas."""
        import pyarrow.compute as pc

        column: Any = self.columns[found]
        with_comma = column.filter(pc.match_substring(column, ","))
        if len(with_comma) and (row := pc.match_substring(column, ".").index(True).as_py()) >= 0:
            self.refuse_cell(found, row, f"commas before decimals, as in {with_comma[0].as_py()}, or dots, not both")
        if len(with_comma) and pc.all(pc.match_substring_regex(with_comma, _THOUSANDS)).as_py():
            note(self.where, f"{found}: a comma stands before decimals, as in {with_comma[0].as_py()}")

    def cell(self, name: str, row: int) -> str:
        value = self.columns[self.called(name)][row]
        value = value.as_py() if hasattr(value, "as_py") else value.item()
        return "nothing" if value is None or str(value) in ("", "nan") else repr(value)

    def numbers(
        self,
        name: str,
        bound: Bound,
        *,
        to: Unit | None = None,
        given: Unit | None = None,
        least: float = -np.inf,
        missing: Missing = "refused",
        rows: IntArray | None = None,
    ) -> FloatArray:
        """Return the numbers of a column in a unit, of some rows, with NaN where there is nothing, if that may be."""
        values = self._floats(name)
        self._check_twins(self.called(name), values)
        asked = Name.of(name).unit
        stated, to = self.unit(name) or given or asked or to, to or asked
        if stated == _PERCENT and to in (None, _PERCENT):
            to = _SHARES
        if to and not (self.unit(name) or given) and _NO_UNIT.search(self.called(name)):
            self.refuse(f"{self.called(name)} is in no unit of {to.of}; allowed: a name with such a unit, or without")
        if stated and given and self.unit(name) and self.unit(name) != given:
            self.refuse(f"{self.called(name)}: its name states another unit than the scenario; allowed: the same")
        if stated and to and stated.of != to.of:
            self.refuse(f"{self.called(name)}: its name states {stated.of}; allowed: a unit of {to.of}, or none")
        if stated and to:
            values = stated.to(to, values)
        taken = np.arange(values.size) if rows is None else rows
        chosen, allowed = values[taken], f"numbers{'' if np.isinf(least) else f' of at least {least:g}'}"
        absent = np.isnan(chosen)
        size = np.abs(chosen)
        outside = (chosen != 0) & ((size < bound.least) | (size > bound.greatest)) & ~absent
        for wrong, words in (
            (absent if missing == "refused" else np.zeros(0, dtype=np.bool_), allowed),
            (~absent & (np.isinf(chosen) | (chosen < least)), allowed),
            (outside, f"{allowed}, {bound.words()}"),
        ):
            self.refuse_first(name, wrong, words, taken)
        return chosen

    def _check_twins(self, found: str, values: FloatArray) -> None:
        """Refuse a column that stands in the table in another unit too, with other values."""
        own = Name.of(found)
        for twin in self.columns:
            other = Name.of(twin)
            if twin == found or other.base != own.base or own.unit is None or other.unit is None:
                continue
            if own.unit.of != other.unit.of:
                continue
            there = other.unit.to(own.unit, self._floats(twin))
            # Feet beside metres, or hours beside seconds, are rounded.
            near = 1e-6 if np.log10(other.unit.to(own.unit, np.ones(1)))[0].is_integer() else 0.02
            same = there.shape == values.shape and np.isclose(there, values, rtol=near, atol=1e-9, equal_nan=True)
            if not np.all(same):
                row = int(np.flatnonzero(~same)[0])
                right = f"what {found} has there, {self.cell(found, row)}, or one of the two columns"
                self.refuse_cell(twin, row, right)

    def whole(self, name: str, least: int = 0, allowed: str = "whole numbers from 0") -> IntArray:
        values = self._floats(name)
        self.refuse_first(name, ~((values >= least) & (values == np.rint(values)) & (values < _GREATEST)), allowed)
        return values.astype(np.int64)

    def labels(self, name: str) -> tuple[IntArray, list[str | None]]:
        """Return the place of each row's text among the different texts of a column, and these by their first rows."""
        import pyarrow.compute as pc

        # The same name may be written with an accent of its own, as files of another system are.
        encoded = pc.utf8_normalize(self.texts(name), "NFC").dictionary_encode(null_encoding="encode")
        return numbers_of(encoded.indices).astype(np.int64), encoded.dictionary.to_pylist()

    def codes(self, name: str, labels: Sequence[str]) -> IntArray:
        """Return the place of each row's text among some labels, and -1 where there is nothing."""
        place, there = self.labels(name)
        known: dict[str | None, int] = {None: -1, **{label: code for code, label in enumerate(labels)}}
        there = [label and label.lower() for label in there]
        self.refuse_first(name, np.array([label not in known for label in there], dtype=bool)[place], ", ".join(labels))
        return np.array([known[label] for label in there], dtype=np.int64)[place]

    def texts(self, name: str) -> pa.StringArray:
        """Return a column as texts, whatever it holds, with null where there is nothing."""
        values = self._names(name)
        if not isinstance(values, np.ndarray):
            return values
        known = ~np.isnan(values)
        whole = values.dtype.kind == "f" and bool(np.all(values[known] == np.rint(values[known])))
        words = np.full(values.size, None, dtype=object)
        words[known] = (values[known].astype(np.int64) if whole else values[known]).astype(str)
        return texts_of(words.tolist())

    def is_numeric(self, name: str) -> bool:
        """Return whether a column holds numbers, none of them so long that it must be a name."""
        values = self._names(name)
        return isinstance(values, np.ndarray) and values.dtype.kind == "f"

    def _names(self, name: str) -> NDArray[Any] | pa.StringArray:
        """Return the values of a column, as texts where whole numbers are longer than numbers of a computer."""
        values = self.values(name)
        is_long = isinstance(values, np.ndarray) and values.dtype.kind == "f" and (np.abs(values) >= _GREATEST).any()
        return as_texts(self.columns[self.called(name)]) if is_long else values

    def _floats(self, name: str) -> FloatArray:
        values = self.values(name)
        if not isinstance(values, np.ndarray):
            import pyarrow.compute as pc

            right = f"{NUMBER}|{_DECIMAL_COMMA}" if self._decimal_comma else NUMBER
            self.refuse_cell(name, pc.match_substring_regex(values, right).index(False).as_py(), "numbers")
        if values.dtype.kind != "f":
            self.refuse_cell(name, 0, "numbers")
        return values
