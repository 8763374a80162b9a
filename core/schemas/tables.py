"""The record types as Arrow schemas; ``core.schemas.validation`` checks tables against them.

Column ``month`` is the first day of the month (date32), or NULL for an undated corpus. For
half-months and weeks (``core.periods``), it is the first day of the period. Suffixes of names
are units: ``_nats``, ``_tokens``, ``_chars`` (code points), ``_bytes`` (of UTF-8), ``_at`` (UTC).
"""

from __future__ import annotations

import datetime as dt
from typing import TypedDict

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")


def _optional(type_: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, type_) for name in names]


def _required(type_: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, type_, nullable=False) for name in names]


_PROVENANCE = [
    *_required(pa.string(), "document_id"),  # sha256(source|native_id|version_id)[:32]
    *_required(pa.string(), "source"),
    pa.field("month", pa.date32()),
    *_required(pa.string(), "native_id"),  # the site's id of the item: page id, arXiv id, repo:path
    pa.field("version_id", pa.string()),  # version of the item: revision id, v1, blob SHA
    pa.field("cluster_id", pa.string()),  # unit of bootstrap resampling, such as a page
    pa.field("event_time", _TIME),  # time that decides the document's month
    *_required(pa.string(), "date_kind"),  # of event_time, such as "created"; "none": no date
    pa.field("text_as_of", _TIME),  # time of this version of the text
    pa.field("retrieved_at", _TIME),
    *_optional(pa.string(), "url", "title", "category"),
    pa.field("language", pa.string()),  # BCP 47 for prose, "code:python" for code
    *_required(pa.string(), "licence"),  # SPDX id, URL or LicenseRef-unknown
    pa.field("attribution", pa.string()),
    pa.field("extra", pa.string()),  # JSON of source-specific facts
]

DOCUMENTS = pa.schema(
    [
        *_PROVENANCE,
        *_required(pa.int64(), "num_chars", "num_bytes"),
        *_required(pa.string(), "sha256_text"),
        *_required(pa.large_string(), "text"),
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
        *_required(pa.string(), "media_kind"),  # image or audio
        *_required(pa.string(), "codec"),  # grey8 (8-bit pixels) or pcm_s16le (16-bit samples)
        *_optional(pa.int32(), "width", "height", "channels", "sample_rate"),
        pa.field("duration_s", pa.float32()),
        *_required(pa.int64(), "num_bytes"),
        *_required(pa.string(), "sha256_media"),
        *_required(pa.large_binary(), "media"),
    ]
)


class DocumentRow(TypedDict, total=False):
    """A document before it is sealed: columns of DOCUMENTS, or of MEDIA.

    It has either ``text`` or ``media``. Other columns that are absent are NULL, or computed when
    rows become tables (``core.corpus.partition.tables_of``).
    """

    native_id: str
    version_id: str | None
    cluster_id: str | None
    event_time: dt.datetime | None
    date_kind: str
    text_as_of: dt.datetime | None
    retrieved_at: dt.datetime | None
    url: str | None
    title: str | None
    category: str | None
    language: str | None
    licence: str
    attribution: str | None
    extra: str | None

    text: str
    language_score: float | None
    similarity_to_prev: float | None
    seen_share: float | None
    flags: list[str]
    redactions: str | None

    media: bytes
    media_kind: str
    codec: str
    channels: int
    width: int
    height: int
    sample_rate: int
    duration_s: float


class SealedRow(DocumentRow, total=False):
    """A row of sealed documents, with those columns that a reader asked for."""

    document_id: str
    num_chars: int


LOSSES = pa.schema(
    [
        *_required(pa.string(), "model", "revision", "source"),
        pa.field("month", pa.date32()),
        *_required(pa.string(), "document_id"),
        *_required(pa.int32(), "chunk_index"),
        *_required(pa.string(), "protocol"),
        pa.field("nll_nats", pa.float64()),  # NaN or NULL: not measured, see reason
        *_required(pa.int64(), "num_tokens", "num_chars", "num_bytes"),
        pa.field("reason", pa.string()),  # reason for a missing nll_nats; else NULL
    ]
)

# Losses of single tokens, of chosen documents; the sum over a chunk's tokens is the chunk's loss.
TOKEN_LOSSES = pa.schema(
    [
        *(LOSSES.field(name) for name in ("model", "revision", "source", "month", "document_id")),
        *(LOSSES.field(name) for name in ("protocol", "chunk_index")),
        *_required(pa.int32(), "token_index"),  # among the tokens of the document, from 0
        *_required(pa.int64(), "token_id"),
        # In the document's UTF-8; equal for tokens that cover no text, such as special tokens.
        *_required(pa.int64(), "begin_byte", "end_byte"),
        pa.field("nll_nats", pa.float64()),  # NULL: not a number
        pa.field("mean_ln_p_nats", pa.float64()),  # mean of ln p over the vocabulary, under p
        pa.field("variance_ln_p_nats2", pa.float64()),  # NULL: not computed, or no token before it
        pa.field("segment_index", pa.int32()),  # in a comparison of two models; else NULL
    ]
)

_OPTION = pa.struct([("option", pa.string()), ("probability", pa.float64()), ("at", _TIME)])

QUESTIONS = pa.schema(
    [
        *_required(pa.string(), "question_id", "source"),
        pa.field("url", pa.string()),
        *_required(pa.string(), "title"),
        *_optional(pa.string(), "background", "resolution_criteria"),
        *_required(pa.list_(pa.string()), "options"),
        pa.field("answer_index", pa.int32()),  # NULL if not resolved
        pa.field("created_at", _TIME),
        *_required(_TIME, "opened_at"),
        *_optional(_TIME, "closed_at", "resolved_at"),
        *_required(pa.string(), "status"),  # open, resolved, void
        pa.field("tags", pa.list_(pa.string())),
        pa.field("crowd_forecast", pa.list_(_OPTION)),
        *_required(pa.string(), "licence"),
    ]
)

ANSWERS = pa.schema(
    [
        *_required(pa.string(), "model", "revision", "source", "question_id", "protocol"),
        pa.field("probabilities", pa.list_(pa.float64())),  # a probability per option, or NULL
        pa.field("chosen_index", pa.int32()),  # NULL if the response contains no clear choice
        *_required(pa.bool_(), "is_parsed"),
        pa.field("is_correct", pa.bool_()),  # NULL if the question is not resolved
        pa.field("response", pa.string()),  # text that a generating model wrote
        pa.field("reason", pa.string()),  # why no choice; truncated: the prompt was cut
        pa.field("place_probabilities", pa.list_(pa.float64())),  # by place in the shown list
    ]
)

_PUZZLE_ITEM = [
    *_required(pa.string(), "model", "revision", "puzzle", "protocol"),
    *_required(pa.string(), "split"),  # id (in distribution), ood (out of it), ood_near
    *_required(pa.int32(), "item"),
    *_required(pa.string(), "input"),
]

PUZZLE_ANSWERS = pa.schema(
    [
        *_PUZZLE_ITEM,
        *_required(pa.string(), "response"),
        pa.field("answer", pa.list_(pa.int64())),  # NULL if no answer was parsed
        *_required(pa.string(), "status"),  # correct, wrong, unparsed, truncated, error
        *_required(pa.string(), "lenient_status", "paper_status"),
        pa.field("num_tokens", pa.int32()),
        pa.field("reason", pa.string()),  # reason why the request failed
    ]
)

# Likelihoods of right answers to items; -ln p in nats. NULL if not measured, with a reason.
PUZZLE_LIKELIHOODS = pa.schema(
    [
        *_PUZZLE_ITEM,
        *_required(pa.int32(), "num_answers"),  # number of right answers that were tried
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
        *_required(pa.string(), "source"),
        *_required(pa.date32(), "month"),
        *_required(pa.string(), "document_id"),
        *_required(pa.date32(), "duplicate_of_month"),
        *_required(pa.string(), "duplicate_of_document_id"),
        *_required(pa.float32(), "similarity"),  # estimated Jaccard similarity; 1 for equal text
        *_required(_TIME, "found_at"),
    ]
)
