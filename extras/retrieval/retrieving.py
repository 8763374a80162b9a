"""Seal questions again, with passages that were known before each question opened.

The passages stand in the question's background. The name of the new source is that of the former
one and ``:documents``. So models are asked with and without, and answers are compared in pairs.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.cells.tokens import is_open
from core.corpus.partition import Seal, list_sealed, read_documents
from core.corpus.questions import (
    Question,
    QuestionSeal,
    list_questions,
    read_question_seal,
    read_questions,
    seal_questions,
)
from core.errors import PartitionSealed, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.crawling import manifest
from extras.retrieval.bm25 import Collector, PassageIndex
from extras.retrieval.passages import spans_of, words_of

SUFFIX = ":documents"
_COLUMNS = [
    "document_id", "cluster_id", "event_time", "text_as_of", "retrieved_at", "title", "licence",
    "text",
]  # fmt: skip
_HEADING = "Documents from before this question was asked:"


@dataclass(frozen=True)
class Passage:
    """A passage of a document, as a model reads it."""

    document_id: str
    cluster_id: str
    known_at: dt.datetime
    title: str
    text: str


@dataclass
class Library:
    """All passages of a corpus that a question may see, in memory, and their index."""

    index: PassageIndex
    passages: Sequence[Passage]
    left_out: Counter[str] = field(default_factory=Counter)  # documents, by reason
    digests: dict[str, str] = field(default_factory=dict)  # of the partitions that were read

    def find(self, question: Question, number: int) -> list[Passage]:
        """Return the best passages that were known before a question opened, best first.

        Of each cluster of documents, such as the versions of a page, at most one is taken.
        """
        found: dict[str, Passage] = {}
        for place, _ in self.index.search(words_of(question.title), question.opened_at):
            passage = self.passages[place]
            found.setdefault(passage.cluster_id, passage)
            if len(found) == number:
                break
        return list(found.values())


@dataclass(frozen=True)
class Retrieved:
    """The sealed questions of a month, and how many of the former ones have passages."""

    seal: QuestionSeal
    num_without: int  # questions for which nothing was found; they are left out


def retrieve(
    store: Store,
    source: str,
    months: Sequence[Month],
    texts: Sequence[str],
    number: int,
    replace: bool = False,
) -> tuple[list[Retrieved], Counter[str]]:
    """Seal the resolved questions of a source again, each with passages of the sealed corpus.

    ``months`` are months of resolution, ``texts`` sources of text; empty means all. A document is
    used if it has an open licence, and if its date, its version and its title are of before the
    question opened: see ``known_at``. A question without such a passage is left out.

    Return the seals, and the number of documents that no question may see, by reason.

    Raises:
        UsageError: no such questions are sealed, or no texts.
        PartitionSealed: a month is sealed with other passages; ``replace`` is not set.
        StorageError: a sealed file is damaged.
    """
    asked = [s for s in list_questions(store, source) if not months or s.month in months]
    if not asked or source.endswith(SUFFIX):
        raise UsageError(
            f"no questions of {source!r} are sealed in these months that could be asked with "
            "documents; see `tidemark forecast crawl` and `tidemark forecast import`"
        )
    questions = {
        seal.month: [q for q in read_questions(store, seal) if q.status == "resolved"]
        for seal in asked
    }
    library = read_library(store, [q for each in questions.values() for q in each], texts)
    planned = [_plan(seal, questions[seal.month], library, number) for seal in asked]
    _refuse_changes(store, planned, replace)
    return [_seal(store, plan) for plan in planned if plan.questions], library.left_out


def read_library(store: Store, questions: Sequence[Question], texts: Sequence[str] = ()) -> Library:
    """Read the sealed texts of ``texts`` (empty: of all sources) that a question may see.

    Raises:
        UsageError: nothing is sealed of these sources.
    """
    seals = [
        s for s in list_sealed(store) if s.is_text and (not texts or s.partition.source in texts)
    ]
    if not seals:
        raise UsageError("no texts are sealed of these sources; see `tidemark crawl`")
    latest = max((q.opened_at for q in questions), default=None)
    collector = Collector({word for q in questions for word in words_of(q.title)})
    left_out: Counter[str] = Counter()
    passages: list[Passage] = []
    for seal in seals:
        for row in _documents(store, seal):
            known = known_at(row)
            reason = _why_unused(row, known, latest)
            if reason or known is None:
                left_out[reason] += 1
                continue
            for passage in _passages(row, known):
                collector.add(known, words_of(f"{passage.title} {passage.text}"))
                passages.append(passage)
    digests = {str(seal.partition): seal.content_digest for seal in seals}
    return Library(collector.index(), passages, left_out, digests)


def known_at(row: dict[str, Any]) -> dt.datetime | None:
    """Return the time from which on a document's text was there to be read; None if unknown.

    It is the later one of the document's date and the time of this version of its text. Without
    the latter, the time at which it was retrieved counts, since a page can change until then.
    """
    written: dt.datetime | None = row["event_time"]
    version: dt.datetime | None = row["text_as_of"] or row["retrieved_at"]
    if written is None or version is None:
        return None
    return max(written, version)


def _why_unused(row: dict[str, Any], known: dt.datetime | None, latest: dt.datetime | None) -> str:
    if known is None:
        return "without the time of its version"
    if not is_open(row["licence"]):
        return "without an open licence"
    if latest is None or known >= latest:
        return "newer than all questions"
    return ""


def _documents(store: Store, seal: Seal) -> Iterator[dict[str, Any]]:
    for batch in read_documents(store, seal, columns=_COLUMNS):
        yield from batch.to_pylist()


def _passages(row: dict[str, Any], known: dt.datetime) -> Iterator[Passage]:
    title = " ".join((row["title"] or "").split())
    cluster = row["cluster_id"] or row["document_id"]
    for start, end in spans_of(row["text"]):
        yield Passage(row["document_id"], cluster, known, title, row["text"][start:end])


@dataclass(frozen=True)
class _Plan:
    source: str
    month: Month
    questions: list[Question]
    num_without: int
    describe: dict[str, object]


def _plan(
    seal: QuestionSeal, questions: Sequence[Question], library: Library, number: int
) -> _Plan:
    found = {q.question_id: library.find(q, number) for q in questions}
    shown = [with_passages(q, found[q.question_id]) for q in questions if found[q.question_id]]
    used = sorted({p.document_id for passages in found.values() for p in passages})
    describe = {
        "kind": "retrieval",
        "code_version": manifest.code_version(),
        "status": "complete",
        "of": {"source": seal.source, "digest": seal.digest},
        "num_passages": number,
        "num_without": len(questions) - len(shown),
        "documents": used,
        "corpus": library.digests,
    }
    return _Plan(f"{seal.source}{SUFFIX}", seal.month, shown, len(questions) - len(shown), describe)


def with_passages(question: Question, passages: Sequence[Passage]) -> Question:
    """Return a question whose background ends with passages, each with its date and title."""
    listed = [
        f"[{place}] {passage.known_at.date().isoformat()} {passage.title}".rstrip()
        + f"\n{passage.text}"
        for place, passage in enumerate(passages, start=1)
    ]
    parts = [(question.background or "").strip(), _HEADING, *listed]
    return dataclasses.replace(
        question,
        source=f"{question.source}{SUFFIX}",
        background="\n\n".join(filter(None, parts)),
    )


def _refuse_changes(store: Store, planned: Sequence[_Plan], replace: bool) -> None:
    for plan in planned:
        former = read_question_seal(store, plan.source, plan.month)
        is_changed = former is not None and read_questions(store, former) != plan.questions
        if is_changed and not replace:
            raise PartitionSealed(
                f"questions of {plan.source} are sealed in {plan.month} with other passages, since "
                "texts or questions have changed; nothing was sealed. Use --replace to seal them "
                "again"
            )


def _seal(store: Store, plan: _Plan) -> Retrieved:
    former = read_question_seal(store, plan.source, plan.month)
    if former is not None and read_questions(store, former) == plan.questions:
        return Retrieved(former, plan.num_without)
    window = {"start": plan.month.start.isoformat(), "end": plan.month.end.isoformat()}
    counts = {"ended_at": manifest.now(), "window": window, "kept": len(plan.questions)}
    seal = seal_questions(
        store, plan.source, plan.month, plan.questions, {**plan.describe, **counts}
    )
    return Retrieved(seal, plan.num_without)
