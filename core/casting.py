"""Columns as a schema wants them: of any width, but none taken for another kind."""

from __future__ import annotations

import pyarrow as pa

from core.errors import SchemaMismatch


def cast_column(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    """Return a column in the type of a field; numbers, texts and dates may be of any width.

    Args:
        column: any number of rows.
        field: of the schema.
        where: what to call the table in the message, such as a file's name.

    Raises:
        SchemaMismatch: it is of another kind, or a value does not fit: names the first such row.
    """
    if column.null_count == len(column):  # pandas makes such a column one of doubles
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    expected = f"column {field.name!r} is {column.type}, expected {field.type}"
    try:
        cast = column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row = _first_uncastable(column, field.type)
        raise SchemaMismatch(f"{where}: row {row}: {expected}: {error}") from error
    if not _is_akin(column.type, field.type):
        raise SchemaMismatch(f"{where}: row 0: {expected}")
    return cast


def _is_akin(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast keeps the meaning: Arrow also reads texts as numbers, and numbers as days."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    if _is_number(wanted):
        return _is_number(found)
    if _is_text(wanted):
        return _is_text(found) or pa.types.is_binary(found) or pa.types.is_large_binary(found)
    if pa.types.is_date(wanted):
        return pa.types.is_date(found) or pa.types.is_timestamp(found) or _is_text(found)
    return True


def _is_number(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(is_kind(type_) for is_kind in kinds)


def _is_text(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(type_) for is_kind in kinds)


def _first_uncastable(column: pa.ChunkedArray, type_: pa.DataType) -> int:
    """Bisect for the first row that does not cast (casts are vectorised, rows are many)."""

    def casts(part: pa.ChunkedArray) -> bool:
        try:
            part.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False
        return True

    low, high = 0, len(column)  # rows before low cast; some row before high does not
    while high - low > 1:
        middle = (low + high) // 2
        if casts(column.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low
