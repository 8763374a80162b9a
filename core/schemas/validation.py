"""Validation of tables against the schemas of ``core.schemas.tables``."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import SchemaMismatch
from core.periods import HalfMonth, Week
from core.schemas.tables import (
    ANSWERS,
    DOCUMENTS,
    DUPLICATES,
    LOSSES,
    MEDIA,
    PUZZLE_ANSWERS,
    PUZZLE_LIKELIHOODS,
    QUESTIONS,
)
from core.settings import MAX_NAME_BYTES


@dataclass(frozen=True)
class Rule:
    """A condition on rows; ``broken`` returns a boolean array, True for rows that violate it."""

    says: str
    broken: Callable[[pa.Table], pa.ChunkedArray]


def _each(says: str, broken: Callable[..., pa.ChunkedArray], *columns: str) -> list[Rule]:
    """Return one rule per column; ``broken`` gets the column and returns True for bad rows."""

    def rule(name: str) -> Rule:
        return Rule(f"{name} must {says}", lambda t: broken(t[name]))

    return list(map(rule, columns))


_empty = partial(_each, "not be empty", lambda column: pc.equal(column, ""))
_negative = partial(_each, "be >= 0", lambda column: pc.less(column, 0))


def _too_long(*columns: str) -> list[Rule]:
    says = f"have at most {MAX_NAME_BYTES} bytes"
    return _each(says, lambda c: pc.greater(pc.binary_length(c), MAX_NAME_BYTES), *columns)


def _other_than(values: str, *columns: str) -> list[Rule]:
    known = pa.array(values.split(", "))
    return _each(f"be one of {values}", lambda c: pc.invert(pc.is_in(c, known)), *columns)


def _too_large(limit: int, *columns: str) -> list[Rule]:
    return _each(f"be below {limit}", lambda column: pc.greater_equal(column, limit), *columns)


def _has_controls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.match_substring_regex(column, r"[\x00-\x1F\x7F]")


def _no_calendar_year(month: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.or_(pc.less(pc.year(month), 1), pc.greater(pc.year(month), 9999))


def _length(column: str, says: str, of: str, count: Callable[..., pa.ChunkedArray]) -> Rule:
    return Rule(f"{column} must be the {says}", lambda t: pc.not_equal(t[column], count(t[of])))


def _odd_codec(table: pa.Table) -> pa.ChunkedArray:
    formats = pc.binary_join_element_wise(table["media_kind"], table["codec"], " ")
    return pc.invert(pc.is_in(formats, pa.array(["image grey8", "audio pcm_s16le"])))


def _not_one_byte_a_pixel(table: pa.Table) -> pa.ChunkedArray:
    width, height = (table[name].cast(pa.int64()) for name in ("width", "height"))
    return pc.not_equal(table["num_bytes"], pc.multiply(width, height))


def _half_a_sample(table: pa.Table) -> pa.ChunkedArray:
    is_odd = pc.equal(pc.bit_wise_and(table["num_bytes"], 1), 1)
    return pc.and_(pc.equal(table["media_kind"], "audio"), is_odd)


def _differs_in_errors(table: pa.Table) -> pa.ChunkedArray:
    """Return True for rows in which some but not all verdicts are ``error``."""
    is_error = pc.equal(table["status"], "error")
    other = [pc.equal(table[name], "error") for name in ("lenient_status", "paper_status")]
    return pc.or_(pc.xor(is_error, other[0]), pc.xor(is_error, other[1]))


def _odd_nats(table: pa.Table) -> pa.ChunkedArray:
    """Return True for rows whose list is empty, or has a negative or non-finite number."""
    lists = table["token_nats"].combine_chunks()
    values = pc.list_flatten(lists)
    is_odd = pc.or_(pc.less(values, 0), pc.invert(pc.is_finite(values)))
    odd_rows = pc.list_parent_indices(lists).filter(is_odd)
    row_numbers = pa.array(range(len(lists)), odd_rows.type)
    return pc.or_(pc.is_in(row_numbers, odd_rows), pc.equal(pc.list_value_length(lists), 0))


def _odd_resolution(table: pa.Table) -> pa.ChunkedArray:
    is_resolved = pc.equal(table["status"], "resolved")
    answer = pc.is_valid(table["answer_index"])
    lacks_time = pc.and_(is_resolved, pc.is_null(table["resolved_at"]))
    return pc.or_(pc.xor(is_resolved, answer), lacks_time)


def _no_first_day(table: pa.Table) -> pa.ChunkedArray:
    """Return True for rows whose month does not begin a period of the source's kind."""
    source = table["source"]
    month = table["month"]
    no_month = pc.not_equal(pc.day(month), 1)
    no_half_month = pc.and_(no_month, pc.not_equal(pc.day(month), 16))
    no_week = pc.not_equal(pc.day_of_week(month), 0)  # 0: Monday
    by_half = pc.if_else(pc.ends_with(source, f":{HalfMonth.kind}"), no_half_month, no_month)
    return pc.if_else(pc.ends_with(source, f":{Week.kind}"), no_week, by_half)


_FIRST_OF_MONTH = Rule("month must be the first day of a month", _no_first_day)
# These limits keep sums of the views within 64-bit integers, so that one absurd row cannot break
# all queries. Even the loss of a chunk of 1 TiB is below 2^43 nats.
_MAX_COUNT = 2**40
_MAX_NATS = 2**46

_RULES: dict[pa.Schema, list[Rule]] = {
    DOCUMENTS: [
        _FIRST_OF_MONTH,
        *_empty("source", "document_id"),
        *_negative("num_chars", "num_bytes"),
        _length("num_bytes", "UTF-8 length of text", "text", pc.binary_length),
        _length("num_chars", "length of text in code points", "text", pc.utf8_length),
    ],
    MEDIA: [
        _FIRST_OF_MONTH,
        *_empty("source", "document_id"),
        Rule("media_kind and codec must be image and grey8, or audio and pcm_s16le", _odd_codec),
        _length("num_bytes", "length of media", "media", pc.binary_length),
        Rule("num_bytes must be width times height, of an image", _not_one_byte_a_pixel),
        Rule("num_bytes must be even, of audio: a sample has two", _half_a_sample),
    ],
    LOSSES: [
        *_empty("model", "source", "document_id", "protocol"),
        *_too_long("model", "revision", "source", "document_id", "protocol", "reason"),
        *_each("have no control characters", _has_controls, "reason"),
        *_each("lie in the years 1 to 9999", _no_calendar_year, "month"),
        _FIRST_OF_MONTH,
        *_negative("chunk_index", "num_tokens", "num_chars", "num_bytes"),
        *_too_large(_MAX_COUNT, "num_tokens", "num_chars", "num_bytes"),
        *_negative("nll_nats"),
        *_each("be finite", pc.is_inf, "nll_nats"),
        *_too_large(_MAX_NATS, "nll_nats"),
        Rule(
            "nll_nats is missing, so reason must say why",
            lambda t: pc.and_(
                pc.is_null(t["nll_nats"], nan_is_null=True),
                pc.equal(pc.utf8_trim_whitespace(pc.fill_null(t["reason"], "")), ""),
            ),
        ),
    ],
    QUESTIONS: [
        Rule(
            "answer_index must name one of options",
            lambda t: pc.or_(
                pc.less(t["answer_index"], 0),
                pc.greater_equal(t["answer_index"], pc.list_value_length(t["options"])),
            ),
        ),
        Rule(
            "a resolved question must have an answer_index and a resolved_at, another none",
            _odd_resolution,
        ),
        *_empty("source", "question_id"),
    ],
    ANSWERS: [
        Rule(
            "chosen_index is missing, so reason must say why",
            lambda t: pc.and_(pc.is_null(t["chosen_index"]), pc.is_null(t["reason"])),
        )
    ],
    PUZZLE_ANSWERS: [
        *_negative("item", "num_tokens"),
        *_other_than("id, ood, ood_near", "split"),
        *_other_than("correct, wrong, unparsed, truncated, error", "status", "lenient_status"),
        *_other_than("correct, wrong, unparsed, error", "paper_status"),
        Rule("lenient_status and paper_status must be error where status is", _differs_in_errors),
        Rule(
            "status is error, so reason must say why",
            lambda t: pc.and_(pc.equal(t["status"], "error"), pc.is_null(t["reason"])),
        ),
    ],
    PUZZLE_LIKELIHOODS: [
        *_negative("item"),
        *_other_than("id, ood, ood_near", "split"),
        Rule("token_nats must be finite numbers of 0 or more, one a token", _odd_nats),
        Rule(
            "token_nats is missing, so reason must say why, and only then",
            lambda t: pc.equal(pc.is_null(t["token_nats"]), pc.is_null(t["reason"])),
        ),
    ],
    DUPLICATES: [
        _FIRST_OF_MONTH,
        *_empty("source", "document_id"),
        Rule(
            "duplicate_of_month must lie before month",
            lambda t: pc.greater_equal(t["duplicate_of_month"], t["month"]),
        ),
    ],
}


def validate(table: pa.Table, schema: pa.Schema, where: str = "table") -> pa.Table:
    """Return ``table`` cast to ``schema``, with the columns of ``schema`` in order.

    Missing optional columns are filled with NULL, but ``month`` and ``nll_nats`` of losses must be
    present. Columns outside the schema are dropped. Numbers, texts and dates of any width are
    accepted, but not converted into each other. ``where`` names the table in error messages.

    Raises:
        SchemaMismatch: the table does not fit; the message names column, row (from 0) and value.
    """
    table = _cast(table, schema, where)
    for field in schema:
        if not field.nullable:
            _raise_first(table, pc.is_null(table[field.name]), f"{field.name} is required", where)
    for rule in _RULES.get(schema, ()):
        _raise_first(table, rule.broken(table), rule.says, where)
    return table.cast(schema)


def _cast(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """Return the table with the schema's columns and types; absent columns are NULL."""
    # In these two columns NULL has a meaning, so the columns must not be left out.
    stated = {"month", "nll_nats"} if schema is LOSSES else set()
    required = [field.name for field in schema if not field.nullable or field.name in stated]
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise SchemaMismatch(
            f"{where}: column {missing[0]!r} is missing; required columns: {', '.join(required)}"
        )
    for name in schema.names:
        if table.column_names.count(name) > 1:
            raise SchemaMismatch(f"{where}: column {name!r} is there more than once")
    columns = [
        _cast_column(table[field.name], field, where)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _cast_column(column: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    """Return the column with the field's type; raise an error that names the first bad row."""
    if column.null_count == len(column):  # pandas writes columns of only NULL as doubles
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
    """Return True if a cast keeps the kind of data; Arrow would even cast texts to numbers."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    number = {"integer", "floating", "decimal"}
    binary = {"binary", "large_binary"}
    text = {"string", "large_string", "string_view"}
    day = {"date", "timestamp"}
    for kinds, sources in ((number, number), (text, text | binary), ({"date"}, day | text)):
        if _is_of(wanted, kinds):
            return _is_of(found, sources)
    return True


def _is_of(type_: pa.DataType, kinds: set[str]) -> bool:
    return any(getattr(pa.types, f"is_{kind}")(type_) for kind in kinds)


def _first_uncastable(column: pa.ChunkedArray, type_: pa.DataType) -> int:
    """Return the number of the first row that cannot be cast, by bisection."""

    def fails(row: int) -> bool:
        try:
            column.slice(0, row + 1).cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return True
        return False

    return bisect.bisect_left(range(len(column)), True, key=fails)


def _raise_first(table: pa.Table, broken: pa.ChunkedArray, says: str, where: str) -> None:
    """Raise an error with the keys of the first row where ``broken`` is true, if there is one."""
    row = pc.index(pc.fill_null(broken, False), True).as_py()
    if row < 0:
        return
    names = (
        "model", "source", "month", "document_id", "question_id", "chunk_index", "protocol",
        "nll_nats", "num_tokens", "num_chars", "num_bytes", "answer_index", "puzzle", "split",
        "item", "status", "lenient_status", "paper_status", "token_nats",
    )  # fmt: skip
    known = (name for name in names if name in table.column_names)
    shown = ", ".join(f"{name}={_printable(table[name][row])!r}" for name in known)
    raise SchemaMismatch(f"{where}: row {row}: {says} ({shown})")


def _printable(value: pa.Scalar) -> object:
    # Convert dates to text, since Arrow has dates in years that Python's ``date`` does not support.
    return str(value.cast(pa.string())) if pa.types.is_date(value.type) else value.as_py()
