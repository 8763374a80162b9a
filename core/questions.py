"""Forecasting questions: sealed by source and by the month in which they were resolved.

    questions/source=<source>/month=<YYYY-MM>/questions-<digest>.parquet
    questions/source=<source>/month=<YYYY-MM>/manifest.json

By then a question is whole: asked, closed and answered, or void. When it was opened decides which
models it tests; that date is a column. The manifest is written last and names the file that holds;
what is sealed anew has another digest, and the former file stays for the answers that name it.
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

from core.errors import StorageError
from core.month import Month
from core.schemas import QUESTIONS, validate
from core.storage import Store, name_of_part, path_part

_MANIFEST = "manifest.json"

Status = Literal["open", "resolved", "void"]


@dataclass(frozen=True)
class CrowdForecast:
    """What a crowd gave an option, the last time before the question closed."""

    option: str
    probability: float
    at: dt.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A row of QUESTIONS.

    Attributes:
        question_id: unique within the source: the site's own id.
        options: in the site's order, at least two.
        answer_index: which of ``options`` came true; None unless resolved.
        opened_at: when forecasts could first be made.
        closed_at: when they no longer could.
        resolved_at: when the outcome was known; of a void question, when it was declared so.
        status: void ones (annulled, ambiguous, cancelled, resolved to a share) have no answer.
        tags: as the site writes them.
        crowd_forecast: never shown to a model.
    """

    question_id: str
    source: str
    url: str | None = None
    title: str
    background: str | None = None
    resolution_criteria: str | None = None
    options: tuple[str, ...]
    answer_index: int | None = None
    created_at: dt.datetime | None = None
    opened_at: dt.datetime
    closed_at: dt.datetime | None = None
    resolved_at: dt.datetime | None = None
    status: Status
    tags: tuple[str, ...] = ()
    crowd_forecast: tuple[CrowdForecast, ...] = ()
    licence: str


@dataclass(frozen=True)
class QuestionSeal:
    """What a manifest says of a month of questions.

    Attributes:
        digest: over the questions; answers are named after it.
        num_questions: in the file, void ones included.
        path: of the file, under the data root.
        manifest: all of it.
    """

    source: str
    month: Month
    digest: str
    num_questions: int
    path: str
    manifest: dict[str, object]

    @property
    def is_partial(self) -> bool:
        """Whether questions could not be had; another crawl may get them."""
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
    """Write a month of questions, and the manifest that makes them exist.

    Args:
        store: the data root.
        source: all questions must be of it.
        month: in which they were resolved.
        questions: in any order; kept by id.
        describe: more keys for the manifest (``status`` complete or partial, counts, …).

    Raises:
        SchemaMismatch: a question is not of QUESTIONS; nothing is sealed.
    """
    table = _table_of(questions, f"questions of {source} {month}")
    digest = _digest(table)
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


def _table_of(questions: Iterable[Question], where: str) -> pa.Table:
    rows = [dataclasses.asdict(question) for question in questions]
    rows.sort(key=lambda row: str(row["question_id"]))
    return validate(pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS, where)


def _digest(table: pa.Table) -> str:
    lines = (json.dumps(row, sort_keys=True, default=str) for row in table.to_pylist())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_question_seal(store: Store, source: str, month: Month) -> QuestionSeal | None:
    """Return what is sealed of a month, or None.

    Raises:
        StorageError: the manifest is damaged.
    """
    path = f"{_folder(source, month)}/{_MANIFEST}"
    return _read_manifest(store, path) if store.exists(path) else None


def list_questions(store: Store, source: str | None = None) -> list[QuestionSeal]:
    """Return all sealed months (of one source), by source and month."""
    chosen = path_part(source) if source else "*"
    paths = store.list(f"questions/source={chosen}/month=*/{_MANIFEST}")
    return [_read_manifest(store, path) for path in sorted(paths)]


def read_questions(store: Store, seal: QuestionSeal) -> list[Question]:
    """Return a sealed month's questions, by id.

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


def _question_of(row: dict[str, Any]) -> Question:
    forecasts = row["crowd_forecast"] or ()
    return Question(
        **{
            **row,
            "options": tuple(row["options"]),
            "tags": tuple(row["tags"] or ()),
            "crowd_forecast": tuple(CrowdForecast(**forecast) for forecast in forecasts),
        }
    )


def _folder(source: str, month: Month) -> str:
    return f"questions/source={path_part(source)}/month={month}"


def _read_manifest(store: Store, path: str) -> QuestionSeal:
    raw = store.read_bytes(path)
    try:
        return _seal_of(store, path, json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{store.url(path)} is not a manifest of tidemark ({error!r}); "
            "delete its folder and crawl or import the month again"
        ) from error


def _seal_of(store: Store, path: str, manifest: dict[str, Any]) -> QuestionSeal:
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
