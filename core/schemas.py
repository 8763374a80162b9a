"""The record types as Arrow schemas, and the check that a table is of its schema.

``month`` is the month's first day (date32); NULL means an undated corpus. Units are in the names:
``_nats``, ``_tokens``, ``_chars`` (Unicode code points), ``_bytes`` (UTF-8), ``_at`` (UTC).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from core.casting import cast_column
from core.errors import SchemaMismatch

_TIME = pa.timestamp("us", tz="UTC")


def _required(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)


_PROVENANCE = [
    _required("document_id", pa.string()),  # sha256(source|native_id|version_id)[:32]
    _required("source", pa.string()),
    pa.field("month", pa.date32()),
    _required("native_id", pa.string()),  # the site's own id: page id, arXiv id, repo:path
    pa.field("version_id", pa.string()),  # revision id, v1, blob sha
    pa.field("cluster_id", pa.string()),  # what is resampled together: page, repository
    pa.field("event_time", _TIME),  # what decides the month
    _required("date_kind", pa.string()),  # created, published, revised, committed, given, none
    pa.field("text_as_of", _TIME),  # when the text itself is from
    pa.field("retrieved_at", _TIME),
    pa.field("url", pa.string()),
    pa.field("title", pa.string()),
    pa.field("category", pa.string()),
    pa.field("language", pa.string()),  # BCP 47 for prose, "code:python" for code
    _required("licence", pa.string()),  # SPDX id, URL or LicenseRef-unknown
    pa.field("attribution", pa.string()),
    pa.field("extra", pa.string()),  # JSON of what only this source knows
]

DOCUMENTS = pa.schema(
    [
        *_PROVENANCE,
        _required("num_chars", pa.int64()),
        _required("num_bytes", pa.int64()),
        _required("sha256_text", pa.string()),
        _required("text", pa.large_string()),
        # What hygiene found; NULL where it was not looked for.
        pa.field("language_score", pa.float32()),  # probability of ``language``, 0 to 1
        pa.field("similarity_to_prev", pa.float32()),  # Jaccard, to the item's former version
        pa.field("seen_share", pa.float32()),  # of its n-grams, in earlier months of the source
        pa.field("flags", pa.list_(pa.string())),
        pa.field("redactions", pa.string()),  # JSON: how many of which kind were taken out
    ]
)

MEDIA = pa.schema(
    [
        *_PROVENANCE,
        _required("media_kind", pa.string()),  # image or audio
        _required("codec", pa.string()),  # grey8 (64 x 128 patches) or pcm_s16le
        pa.field("width", pa.int32()),
        pa.field("height", pa.int32()),
        pa.field("channels", pa.int32()),
        pa.field("sample_rate", pa.int32()),
        pa.field("duration_s", pa.float32()),
        _required("num_bytes", pa.int64()),
        _required("sha256_media", pa.string()),
        _required("media", pa.large_binary()),
    ]
)

LOSSES = pa.schema(
    [
        _required("model", pa.string()),
        _required("revision", pa.string()),
        _required("source", pa.string()),
        pa.field("month", pa.date32()),
        _required("document_id", pa.string()),
        _required("chunk_index", pa.int32()),
        _required("protocol", pa.string()),
        pa.field("nll_nats", pa.float64()),  # NaN or NULL = not measured, see reason
        _required("num_tokens", pa.int64()),
        _required("num_chars", pa.int64()),
        _required("num_bytes", pa.int64()),
        pa.field("reason", pa.string()),  # why nll_nats is missing; NULL where it is there
    ]
)

_OPTION = pa.struct([("option", pa.string()), ("probability", pa.float64()), ("at", _TIME)])

QUESTIONS = pa.schema(
    [
        _required("question_id", pa.string()),
        _required("source", pa.string()),
        pa.field("url", pa.string()),
        _required("title", pa.string()),
        pa.field("background", pa.string()),
        pa.field("resolution_criteria", pa.string()),
        _required("options", pa.list_(pa.string())),
        pa.field("answer_index", pa.int32()),  # NULL until resolved
        pa.field("created_at", _TIME),
        _required("opened_at", _TIME),
        pa.field("closed_at", _TIME),
        pa.field("resolved_at", _TIME),
        _required("status", pa.string()),  # open, resolved, void
        pa.field("tags", pa.list_(pa.string())),
        pa.field("crowd_forecast", pa.list_(_OPTION)),
        _required("licence", pa.string()),
    ]
)

ANSWERS = pa.schema(
    [
        _required("model", pa.string()),
        _required("revision", pa.string()),
        _required("source", pa.string()),
        _required("question_id", pa.string()),
        _required("protocol", pa.string()),
        pa.field("probabilities", pa.list_(pa.float64())),  # one an option; NULL if none were given
        pa.field("chosen_index", pa.int32()),  # NULL if no choice could be read off
        _required("is_parsed", pa.bool_()),
        pa.field("is_correct", pa.bool_()),  # NULL until the question is resolved
        pa.field("response", pa.string()),  # what a model that generates wrote
        pa.field("reason", pa.string()),  # why chosen_index is missing; truncated: prompt was cut
    ]
)

PUZZLE_ANSWERS = pa.schema(
    [
        _required("model", pa.string()),
        _required("revision", pa.string()),
        _required("puzzle", pa.string()),
        _required("protocol", pa.string()),
        _required("split", pa.string()),  # id, ood or ood_near
        _required("item", pa.int32()),
        _required("input", pa.string()),
        _required("response", pa.string()),
        pa.field("answer", pa.list_(pa.int64())),  # NULL if none could be read off
        _required("status", pa.string()),  # correct, wrong, unparsed, truncated, error
        _required("lenient_status", pa.string()),
        _required("paper_status", pa.string()),
        pa.field("num_tokens", pa.int32()),
        pa.field("reason", pa.string()),  # of an error
    ]
)

# What was found to duplicate a document of an earlier month, after it was sealed itself.
DUPLICATES = pa.schema(
    [
        _required("source", pa.string()),
        _required("month", pa.date32()),
        _required("document_id", pa.string()),
        _required("duplicate_of_month", pa.date32()),
        _required("duplicate_of_document_id", pa.string()),
        _required("similarity", pa.float32()),  # Jaccard, estimated; 1 of the same text
        _required("found_at", _TIME),
    ]
)


@dataclass(frozen=True)
class Rule:
    """A condition on rows; ``broken`` gives a boolean array, true where it does not hold."""

    says: str
    broken: Callable[[pa.Table], pa.ChunkedArray]


def _negative(column: str) -> Rule:
    return Rule(f"{column} must be >= 0", lambda t: pc.less(t[column], 0))


def _too_large(column: str, limit: int) -> Rule:
    return Rule(f"{column} must be below {limit}", lambda t: pc.greater_equal(t[column], limit))


def _empty(column: str) -> Rule:
    return Rule(f"{column} must not be empty", lambda t: pc.equal(t[column], ""))


def _not_first_of_month(table: pa.Table) -> pa.ChunkedArray:
    return pc.not_equal(pc.day(table["month"]), 1)


def _no_calendar_year(table: pa.Table) -> pa.ChunkedArray:
    year = pc.year(table["month"])
    return pc.or_(pc.less(year, 1), pc.greater(year, 9999))


def _not_measured(table: pa.Table) -> pa.ChunkedArray:
    return pc.is_null(table["nll_nats"], nan_is_null=True)


def _odd_codec(table: pa.Table) -> pa.ChunkedArray:
    formats = pc.binary_join_element_wise(table["media_kind"], table["codec"], " ")
    return pc.invert(pc.is_in(formats, pa.array(["image grey8", "audio pcm_s16le"])))


def _not_one_byte_a_pixel(table: pa.Table) -> pa.ChunkedArray:
    width, height = (table[name].cast(pa.int64()) for name in ("width", "height"))
    return pc.not_equal(table["num_bytes"], pc.multiply(width, height))


def _half_a_sample(table: pa.Table) -> pa.ChunkedArray:
    is_odd = pc.equal(pc.bit_wise_and(table["num_bytes"], 1), 1)
    return pc.and_(pc.equal(table["media_kind"], "audio"), is_odd)


def _odd_resolution(table: pa.Table) -> pa.ChunkedArray:
    is_resolved = pc.equal(table["status"], "resolved")
    answer = pc.is_valid(table["answer_index"])
    lacks_time = pc.and_(is_resolved, pc.is_null(table["resolved_at"]))
    return pc.or_(pc.xor(is_resolved, answer), lacks_time)


_FIRST_OF_MONTH = Rule("month must be the first day of a month", _not_first_of_month)
# Beyond these, sums over a table no longer fit the 64 bits that views and replicates count in:
# one absurd row would break them for everybody. A chunk of 1 TiB costs less than 2^43 nats.
_MAX_COUNT = 2**40
_MAX_NATS = 2**46
_NON_EMPTY = {
    name: _empty(name) for name in ("model", "source", "document_id", "protocol", "question_id")
}

_RULES: dict[str, list[Rule]] = {
    "DOCUMENTS": [
        _FIRST_OF_MONTH,
        *(_NON_EMPTY[name] for name in ("source", "document_id")),
        _negative("num_chars"),
        _negative("num_bytes"),
        Rule(
            "num_bytes must be the UTF-8 length of text",
            lambda t: pc.not_equal(t["num_bytes"], pc.binary_length(t["text"])),
        ),
        Rule(
            "num_chars must be the length of text in code points",
            lambda t: pc.not_equal(t["num_chars"], pc.utf8_length(t["text"])),
        ),
    ],
    "MEDIA": [
        _FIRST_OF_MONTH,
        *(_NON_EMPTY[name] for name in ("source", "document_id")),
        Rule("media_kind and codec must be image and grey8, or audio and pcm_s16le", _odd_codec),
        Rule(
            "num_bytes must be the length of media",
            lambda t: pc.not_equal(t["num_bytes"], pc.binary_length(t["media"])),
        ),
        Rule("num_bytes must be width times height, of an image", _not_one_byte_a_pixel),
        Rule("num_bytes must be even, of audio: a sample has two", _half_a_sample),
    ],
    "LOSSES": [
        *(_NON_EMPTY[name] for name in ("model", "source", "document_id", "protocol")),
        Rule("month must lie in the years 1 to 9999", _no_calendar_year),
        _FIRST_OF_MONTH,
        _negative("chunk_index"),
        _negative("num_tokens"),
        _negative("num_chars"),
        _negative("num_bytes"),
        _too_large("num_tokens", _MAX_COUNT),
        _too_large("num_chars", _MAX_COUNT),
        _too_large("num_bytes", _MAX_COUNT),
        Rule("nll_nats must be >= 0", lambda t: pc.less(t["nll_nats"], 0)),
        Rule("nll_nats must be finite", lambda t: pc.is_inf(t["nll_nats"])),
        _too_large("nll_nats", _MAX_NATS),
        Rule(
            "nll_nats is missing, so reason must say why",
            lambda t: pc.and_(_not_measured(t), pc.equal(pc.fill_null(t["reason"], ""), "")),
        ),
    ],
    "QUESTIONS": [
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
        *(_NON_EMPTY[name] for name in ("source", "question_id")),
    ],
    "ANSWERS": [
        Rule(
            "chosen_index is missing, so reason must say why",
            lambda t: pc.and_(pc.is_null(t["chosen_index"]), pc.is_null(t["reason"])),
        ),
    ],
    "PUZZLE_ANSWERS": [
        _negative("item"),
        Rule(
            "status is error, so reason must say why",
            lambda t: pc.and_(pc.equal(t["status"], "error"), pc.is_null(t["reason"])),
        ),
    ],
    "DUPLICATES": [
        _FIRST_OF_MONTH,
        *(_NON_EMPTY[name] for name in ("source", "document_id")),
        Rule(
            "duplicate_of_month must lie before month",
            lambda t: pc.greater_equal(t["duplicate_of_month"], t["month"]),
        ),
    ],
}

_SCHEMAS = {
    "DOCUMENTS": DOCUMENTS,
    "MEDIA": MEDIA,
    "LOSSES": LOSSES,
    "QUESTIONS": QUESTIONS,
    "ANSWERS": ANSWERS,
    "PUZZLE_ANSWERS": PUZZLE_ANSWERS,
    "DUPLICATES": DUPLICATES,
}

# NULL has a meaning in these, but a table that lacks the column has not said so.
_STATED = {"LOSSES": {"month", "nll_nats"}}


def validate(table: pa.Table, schema: pa.Schema, where: str = "table") -> pa.Table:
    """Return ``table`` cast to ``schema``, in its column order, or say what is wrong.

    Optional columns that are missing are filled with NULL (not a loss and its month: they must be
    there); columns that the schema does not know are dropped. Numbers, texts and dates may be of
    any width, but none is taken for another.

    Args:
        table: any number of rows.
        schema: one of DOCUMENTS, MEDIA, LOSSES, QUESTIONS, ANSWERS, PUZZLE_ANSWERS,
            DUPLICATES.
        where: what to call the table in the message, such as a file's name.

    Raises:
        SchemaMismatch: names the column, the first offending row (counted from 0) and its value.
    """
    table = _cast(table, schema, where)
    for field in schema:
        if not field.nullable:
            _raise_first(table, pc.is_null(table[field.name]), f"{field.name} is required", where)
    for name, known in _SCHEMAS.items():
        if known is schema:
            for rule in _RULES[name]:
                _raise_first(table, rule.broken(table), rule.says, where)
    return table.cast(schema)


def _cast(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    required = _required_columns(schema)
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise SchemaMismatch(
            f"{where}: column {missing[0]!r} is missing; required columns: {', '.join(required)}"
        )
    for name in schema.names:
        if table.column_names.count(name) > 1:
            raise SchemaMismatch(f"{where}: column {name!r} is there more than once")
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        columns.append(cast_column(table[field.name], field, where))
    return pa.table(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _required_columns(schema: pa.Schema) -> list[str]:
    stated = {
        name for key, known in _SCHEMAS.items() if known is schema for name in _STATED.get(key, ())
    }
    return [field.name for field in schema if not field.nullable or field.name in stated]


def _raise_first(table: pa.Table, broken: pa.ChunkedArray, says: str, where: str) -> None:
    broken = pc.fill_null(broken, False)
    row = pc.index(broken, True).as_py()
    if row < 0:
        return
    shown = ", ".join(f"{k}={v!r}" for k, v in _identity(table, row).items())
    raise SchemaMismatch(f"{where}: row {row}: {says} ({shown})")


def _identity(table: pa.Table, row: int) -> dict[str, object]:
    """The columns that help a reader find the row; long values are cut."""
    names = (
        "model", "source", "month", "document_id", "question_id", "chunk_index", "protocol",
        "nll_nats", "num_tokens", "num_chars", "num_bytes", "answer_index",
    )  # fmt: skip
    return {n: _shown(table[n][row]) for n in names if n in table.column_names}


def _shown(value: pa.Scalar) -> object:
    # Arrow has more years than Python.
    return str(value.cast(pa.string())) if pa.types.is_date(value.type) else value.as_py()
