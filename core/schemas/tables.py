"""The record types as Arrow schemas, and validation of tables against them.

Column ``month`` is the first day of the month (date32), or NULL for an undated corpus. Of a source
of half-months or weeks (``core.periods``), it is the first day of that. Suffixes of column names
are units: ``_nats``, ``_tokens``, ``_chars`` (code points), ``_bytes`` (of UTF-8), ``_at`` (UTC).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import SchemaMismatch
from core.periods import HalfMonth, Week
from core.settings import MAX_NAME_BYTES

_TIME = pa.timestamp("us", tz="UTC")


def _required(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)


_PROVENANCE = [
    _required("document_id", pa.string()),  # sha256(source|native_id|version_id)[:32]
    _required("source", pa.string()),
    pa.field("month", pa.date32()),
    _required("native_id", pa.string()),  # the site's id of the item: page id, arXiv id, repo:path
    pa.field("version_id", pa.string()),  # version of the item: revision id, v1, blob SHA
    pa.field("cluster_id", pa.string()),  # unit of bootstrap resampling, such as a page
    pa.field("event_time", _TIME),  # time that decides the document's month
    _required("date_kind", pa.string()),  # kind of event_time, such as "created"; "none": no date
    pa.field("text_as_of", _TIME),  # time of this version of the text
    pa.field("retrieved_at", _TIME),
    pa.field("url", pa.string()),
    pa.field("title", pa.string()),
    pa.field("category", pa.string()),
    pa.field("language", pa.string()),  # BCP 47 for prose, "code:python" for code
    _required("licence", pa.string()),  # SPDX id, URL or LicenseRef-unknown
    pa.field("attribution", pa.string()),
    pa.field("extra", pa.string()),  # JSON of source-specific facts
]

DOCUMENTS = pa.schema(
    [
        *_PROVENANCE,
        _required("num_chars", pa.int64()),
        _required("num_bytes", pa.int64()),
        _required("sha256_text", pa.string()),
        _required("text", pa.large_string()),
        # These columns are results of cleaning and comparing texts, and NULL if not computed.
        pa.field("language_score", pa.float32()),  # probability of ``language``, 0 to 1
        pa.field("similarity_to_prev", pa.float32()),  # Jaccard similarity to prior version
        pa.field("seen_share", pa.float32()),  # share of n-grams seen in earlier months
        pa.field("flags", pa.list_(pa.string())),
        pa.field("redactions", pa.string()),  # JSON: number of redactions by kind
    ]
)

MEDIA = pa.schema(
    [
        *_PROVENANCE,
        _required("media_kind", pa.string()),  # image or audio
        _required("codec", pa.string()),  # grey8 (8-bit pixels) or pcm_s16le (16-bit samples)
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
        pa.field("nll_nats", pa.float64()),  # NaN or NULL: not measured, see reason
        _required("num_tokens", pa.int64()),
        _required("num_chars", pa.int64()),
        _required("num_bytes", pa.int64()),
        pa.field("reason", pa.string()),  # reason for a missing nll_nats; else NULL
    ]
)

# Losses of single tokens, of chosen documents; the sum over a chunk's tokens is the chunk's loss.
TOKEN_LOSSES = pa.schema(
    [
        *(LOSSES.field(name) for name in ("model", "revision", "source", "month", "document_id")),
        *(LOSSES.field(name) for name in ("protocol", "chunk_index")),
        _required("token_index", pa.int32()),  # among the tokens of the document, from 0
        _required("token_id", pa.int64()),
        _required("begin_byte", pa.int64()),  # in the document's UTF-8; equal to end_byte for
        _required("end_byte", pa.int64()),  # tokens that cover no text, such as special tokens
        pa.field("nll_nats", pa.float64()),  # NULL: not a number
        pa.field("mean_ln_p_nats", pa.float64()),  # mean of ln p over the vocabulary, under p
        pa.field("variance_ln_p_nats2", pa.float64()),  # NULL: not computed, or no token before it
        pa.field("segment_index", pa.int32()),  # in a comparison of two models; else NULL
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
        pa.field("answer_index", pa.int32()),  # NULL if not resolved
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
        pa.field("probabilities", pa.list_(pa.float64())),  # a probability per option, or NULL
        pa.field("chosen_index", pa.int32()),  # NULL if the response contains no clear choice
        _required("is_parsed", pa.bool_()),
        pa.field("is_correct", pa.bool_()),  # NULL if the question is not resolved
        pa.field("response", pa.string()),  # text that a generating model wrote
        pa.field("reason", pa.string()),  # why no choice; truncated: the prompt was cut
        pa.field("place_probabilities", pa.list_(pa.float64())),  # by place in the shown list
    ]
)

PUZZLE_ANSWERS = pa.schema(
    [
        _required("model", pa.string()),
        _required("revision", pa.string()),
        _required("puzzle", pa.string()),
        _required("protocol", pa.string()),
        _required("split", pa.string()),  # id (in distribution), ood (out of it), ood_near
        _required("item", pa.int32()),
        _required("input", pa.string()),
        _required("response", pa.string()),
        pa.field("answer", pa.list_(pa.int64())),  # NULL if no answer was parsed
        _required("status", pa.string()),  # correct, wrong, unparsed, truncated, error
        _required("lenient_status", pa.string()),
        _required("paper_status", pa.string()),
        pa.field("num_tokens", pa.int32()),
        pa.field("reason", pa.string()),  # reason why the request failed
    ]
)

# Likelihoods of right answers to items; -ln p in nats. NULL if not measured, with a reason.
PUZZLE_LIKELIHOODS = pa.schema(
    [
        _required("model", pa.string()),
        _required("revision", pa.string()),
        _required("puzzle", pa.string()),
        _required("protocol", pa.string()),
        _required("split", pa.string()),  # id (in distribution), ood (out of it), ood_near
        _required("item", pa.int32()),
        _required("input", pa.string()),
        _required("num_answers", pa.int32()),  # number of right answers that were tried
        pa.field("answer", pa.string()),  # the one with the highest probability per token
        pa.field("token_nats", pa.list_(pa.float64())),  # -ln p of each token of ``answer``
        pa.field("prompt_nats", pa.float64()),  # sum over the prompt's tokens but the first
        pa.field("prompt_tokens", pa.int32()),  # number of these tokens
        pa.field("reason", pa.string()),
    ]
)

# Documents that were found, after sealing, to be duplicates of a document of an earlier month.
DUPLICATES = pa.schema(
    [
        _required("source", pa.string()),
        _required("month", pa.date32()),
        _required("document_id", pa.string()),
        _required("duplicate_of_month", pa.date32()),
        _required("duplicate_of_document_id", pa.string()),
        _required("similarity", pa.float32()),  # estimated Jaccard similarity; 1 for equal text
        _required("found_at", _TIME),
    ]
)


@dataclass(frozen=True)
class Rule:
    """A condition on rows; ``broken`` returns a boolean array, True for rows that violate it."""

    says: str
    broken: Callable[[pa.Table], pa.ChunkedArray]


def _each(says: str, broken: Callable[..., pa.ChunkedArray], *columns: str) -> list[Rule]:
    def rule(name: str) -> Rule:
        return Rule(f"{name} must {says}", lambda t: broken(t[name]))

    return list(map(rule, columns))


_empty = partial(_each, "not be empty", lambda column: pc.equal(column, ""))
_negative = partial(_each, "be >= 0", lambda column: pc.less(column, 0))


def _too_long(*columns: str) -> list[Rule]:
    says = f"have at most {MAX_NAME_BYTES} bytes"
    return _each(says, lambda c: pc.greater(pc.binary_length(c), MAX_NAME_BYTES), *columns)


def _too_large(limit: int, *columns: str) -> list[Rule]:
    return _each(f"be below {limit}", lambda column: pc.greater_equal(column, limit), *columns)


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


def _odd_resolution(table: pa.Table) -> pa.ChunkedArray:
    is_resolved = pc.equal(table["status"], "resolved")
    answer = pc.is_valid(table["answer_index"])
    lacks_time = pc.and_(is_resolved, pc.is_null(table["resolved_at"]))
    return pc.or_(pc.xor(is_resolved, answer), lacks_time)


def _no_first_day(table: pa.Table) -> pa.ChunkedArray:
    source, month = table["source"], table["month"]
    is_later = pc.not_equal(pc.day(month), 1)
    is_between = pc.and_(is_later, pc.not_equal(pc.day(month), 16))
    is_no_monday = pc.not_equal(pc.day_of_week(month), 0)
    by_half = pc.if_else(pc.ends_with(source, f":{HalfMonth.kind}"), is_between, is_later)
    return pc.if_else(pc.ends_with(source, f":{Week.kind}"), is_no_monday, by_half)


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
        *_too_long("model", "revision", "source", "document_id", "protocol"),
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
                pc.equal(pc.fill_null(t["reason"], ""), ""),
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
        ),
    ],
    PUZZLE_ANSWERS: [
        *_negative("item"),
        Rule(
            "status is error, so reason must say why",
            lambda t: pc.and_(pc.equal(t["status"], "error"), pc.is_null(t["reason"])),
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
    number, binary = {"integer", "floating", "decimal"}, {"binary", "large_binary"}
    text, day = {"string", "large_string", "string_view"}, {"date", "timestamp"}
    for kinds, sources in ((number, number), (text, text | binary), ({"date"}, day | text)):
        if _is_of(wanted, kinds):
            return _is_of(found, sources)
    return True


def _is_of(type_: pa.DataType, kinds: set[str]) -> bool:
    return any(getattr(pa.types, f"is_{kind}")(type_) for kind in kinds)


def _first_uncastable(column: pa.ChunkedArray, type_: pa.DataType) -> int:
    def fails(row: int) -> bool:
        try:
            column.slice(0, row + 1).cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return True
        return False

    return bisect.bisect_left(range(len(column)), True, key=fails)


def _raise_first(table: pa.Table, broken: pa.ChunkedArray, says: str, where: str) -> None:
    row = pc.index(pc.fill_null(broken, False), True).as_py()
    if row < 0:
        return
    names = (
        "model", "source", "month", "document_id", "question_id", "chunk_index", "protocol",
        "nll_nats", "num_tokens", "num_chars", "num_bytes", "answer_index",
    )  # fmt: skip
    known = (name for name in names if name in table.column_names)
    shown = ", ".join(f"{name}={_shown(table[name][row])!r}" for name in known)
    raise SchemaMismatch(f"{where}: row {row}: {says} ({shown})")


def _shown(value: pa.Scalar) -> object:
    # Convert dates to text, since Arrow has dates in years that Python's ``date`` does not support.
    return str(value.cast(pa.string())) if pa.types.is_date(value.type) else value.as_py()
