"""Forecasting questions, sealed by source and by the month in which they were resolved.

    questions/source=<source>/month=<YYYY-MM>/questions-<digest>.parquet
    questions/source=<source>/month=<YYYY-MM>/manifest.json

A question is sealed after it was resolved or declared void. Its opening date is a column: the
date decides which models the question can test. The manifest is written last and names the current
file. Changed questions have a new digest and a new file. The former file stays, because answers
refer to it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from core.corpus.partition import unreadable_manifest
from core.errors import StorageError
from core.json import JsonObject
from core.month import Month
from core.schemas.tables import QUESTIONS
from core.schemas.validation import validate
from core.storage.store import Store, name_of_part, path_part

_MANIFEST = "manifest.json"
_TASK = ":task-"  # in the name of a source of tasks, such as ``wikinews:task-cloze``

Status = Literal["open", "resolved", "void"]


def task_source(source: str, task: str) -> str:
    """Return the name of the source whose questions are tasks made from a source's texts."""
    return f"{source}{_TASK}{task}"


@dataclass(frozen=True)
class CrowdForecast:
    """The last probability that the site's users gave to an option before the question closed."""

    option: str
    probability: float
    at: dt.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A forecasting question, which is a row of QUESTIONS.

    Void questions (annulled, ambiguous, cancelled, or resolved to a fraction) have no answer.
    """

    question_id: str  # the site's id of the question, unique within the source
    source: str
    url: str | None = None
    title: str
    background: str | None = None
    resolution_criteria: str | None = None
    options: tuple[str, ...]  # at least two options, in the site's order
    answer_index: int | None = None  # index of the option that came true, or None
    created_at: dt.datetime | None = None
    opened_at: dt.datetime  # time at which forecasting began
    closed_at: dt.datetime | None = None  # time at which forecasting ended
    resolved_at: dt.datetime | None = None  # time of the outcome, or of the declaration as void
    status: Status
    tags: tuple[str, ...] = ()  # the site's tags, unchanged
    crowd_forecast: tuple[CrowdForecast, ...] = ()  # models do not see these forecasts
    licence: str


@dataclass(frozen=True)
class QuestionSeal:
    """The manifest of the questions of one source and month."""

    source: str
    month: Month
    digest: str  # digest over the questions; file names of answers contain this digest
    num_questions: int  # questions in the file, including void ones
    path: str  # path of the Parquet file, relative to the data root
    manifest: dict[str, object]

    @property
    def is_task(self) -> bool:
        """Return True if the questions are tasks made from texts, and not about the future."""
        return _TASK in self.source

    @property
    def is_partial(self) -> bool:
        """Return True if some questions were unavailable; another crawl may fetch them."""
        return self.manifest.get("status") == "partial"

    def __str__(self) -> str:
        return f"questions of {self.source} {self.month}"


def seal_questions(
    store: Store,
    source: str,
    month: Month,
    questions: Iterable[Question],
    describe: Mapping[str, object],
) -> QuestionSeal:
    """Write the questions of a month, in order of id, then the manifest.

    ``describe`` contains additional entries of the manifest, such as ``status``.

    Raises:
        SchemaMismatch: a question does not fit QUESTIONS; nothing is sealed.
    """
    rows = [dataclasses.asdict(question) for question in questions]
    rows.sort(key=lambda row: str(row["question_id"]))
    table = pa.Table.from_pylist(rows, schema=QUESTIONS)
    table = validate(table, QUESTIONS, f"questions of {source} {month}")
    lines = (json.dumps(row, sort_keys=True, default=str) for row in table.to_pylist())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    folder = _folder(source, month)
    name = f"questions-{digest[:12]}.parquet"
    with store.writing(f"{folder}/{name}") as staged:
        pq.write_table(table, staged.path, compression="zstd", write_page_checksum=True)
    manifest = {
        **describe,
        "source": source,
        "month": str(month),
        "digest": digest,
        "num_questions": table.num_rows,
        "file": {"name": name, "sha256": staged.sha256},
        "sealed_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
    raw = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    store.write_bytes(f"{folder}/{_MANIFEST}", raw.encode())
    return _seal_of(store, f"{folder}/{_MANIFEST}", manifest)


def read_question_seal(store: Store, source: str, month: Month) -> QuestionSeal | None:
    """Return the seal of a month, or None if not sealed; raise StorageError for a damaged file."""
    path = f"{_folder(source, month)}/{_MANIFEST}"
    return _read_manifest(store, path) if store.exists(path) else None


def list_questions(store: Store, source: str | None = None) -> list[QuestionSeal]:
    """Return the seals of one source (None: of all sources), sorted by source and month."""
    chosen = path_part(source) if source else "*"
    paths = store.list(f"questions/source={chosen}/month=*/{_MANIFEST}")
    return [_read_manifest(store, path) for path in sorted(paths)]


def read_questions(store: Store, seal: QuestionSeal) -> list[Question]:
    """Return the questions of a sealed month, in order of id.

    Raises:
        StorageError: the file is missing or damaged.
    """
    try:
        with store.open(seal.path) as file:
            table = pq.read_table(file, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(
            f"{store.url(seal.path)} is damaged ({error}); crawl or import it again with --replace"
        ) from error
    return [_question_of(row) for row in validate(table, QUESTIONS, str(seal)).to_pylist()]


def _question_of(row: Mapping[str, Any]) -> Question:
    forecasts = tuple(CrowdForecast(**forecast) for forecast in row["crowd_forecast"] or ())
    options = tuple(row["options"])
    tags = tuple(row["tags"] or ())
    return Question(**{**row, "options": options, "tags": tags, "crowd_forecast": forecasts})


def _folder(source: str, month: Month) -> str:
    return f"questions/source={path_part(source)}/month={month}"


def _read_manifest(store: Store, path: str) -> QuestionSeal:
    raw = store.read_bytes(path)
    try:
        return _seal_of(store, path, json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable_manifest(store, path, raw, error) from error


def _seal_of(store: Store, path: str, manifest: JsonObject) -> QuestionSeal:
    """Return the seal that a manifest describes; its path names source and month."""
    folder = path.rpartition("/")[0]
    source, month = folder.split("/")[1:3]
    return QuestionSeal(
        source=name_of_part(source.removeprefix("source=")),
        month=Month(month.removeprefix("month=")),
        digest=manifest["digest"],
        num_questions=int(manifest["num_questions"]),
        path=f"{folder}/{manifest['file']['name']}",
        manifest=manifest,
    )
