"""Seal questions again, with passages that were known before each question opened.

The passages stand in the question's background. The name of the new source is that of the former
one and ``:documents``. So models are asked with and without, and answers are compared in pairs.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.cells.tokens import is_open
from core.corpus.derived import DerivedQuestions, seal_derived
from core.corpus.partition import Seal, list_sealed, list_sealed_sources, read_documents
from core.corpus.questions import Question, QuestionSeal, list_questions, read_questions
from core.errors import UsageError, did_you_mean
from core.month import Month
from core.schemas.tables import SealedRow
from core.storage.store import Store
from crawlers.crawling import manifest
from extras.retrieval.bm25 import Queries
from extras.retrieval.passages import spans_of, words_of

SUFFIX = ":documents"
_COLUMNS = [
    "document_id", "cluster_id", "event_time", "text_as_of", "retrieved_at", "title", "licence",
    "extra", "text",
]  # fmt: skip
_WHOLE_DAY = dt.timedelta(hours=36)  # from midnight UTC to the day's end where it ends last
_NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)
_HEADING = "Documents from before this question was asked:"


@dataclass(frozen=True)
class Passage:
    """A passage of a document, as a model reads it."""

    document_id: str
    cluster_id: str
    known_at: dt.datetime
    title: str
    titled_at: dt.datetime  # time from which on the title is known
    text: str

    @cached_property
    def words(self) -> list[str]:
        """Words of the text, and of a title that was known with it, to compare with a question."""
        title = self.title if self.titled_at <= self.known_at else ""
        return words_of(f"{title} {self.text}")

    def shown_to(self, question: Question) -> str:
        """Return the text as a model reads it: after its date, and its title if it was known."""
        title = self.title if self.titled_at < question.opened_at else ""
        return f"{self.known_at.date().isoformat()} {title}".rstrip() + f"\n{self.text}"


_Rank = tuple[float, dt.datetime, int]  # score below 0, time, place in the corpus: low is good


class Best:
    """The best passages of a question so far: of each cluster, such as a page's versions, one."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._found: dict[str, tuple[_Rank, Passage]] = {}  # by cluster

    def is_wanted(self, rank: _Rank, cluster: str) -> bool:
        """Return True if a passage of this rank belongs to the best."""
        if cluster in self._found:
            return rank < self._found[cluster][0]
        return len(self._found) < self._number or rank < self._found[self._last()][0]

    def add(self, rank: _Rank, passage: Passage) -> None:
        """Add a wanted passage; remove the last one if there are too many."""
        self._found[passage.cluster_id] = (rank, passage)
        if len(self._found) > self._number:
            del self._found[self._last()]

    def passages(self) -> list[Passage]:
        """Return the passages, the best first; of equal scores, the first known comes first."""
        return [passage for _, passage in sorted(self._found.values(), key=lambda each: each[0])]

    def _last(self) -> str:
        return max(self._found, key=lambda cluster: self._found[cluster][0])


@dataclass
class FoundPassages:
    """The best passages for questions, and what was read to find them."""

    passages: dict[Question, list[Passage]]  # the best first
    left_out: Counter[str]  # documents, by reason
    digests: dict[str, str]  # of the partitions that were read


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
    used if it has an open licence, and if its date and its version are of before the question
    opened: see ``known_at``. Its title is shown if it was retrieved before, since sites give old
    versions their present title. A question without such a passage is left out.

    Return the seals, and the number of documents that no question may see, by reason.

    Raises:
        UsageError: no such questions are sealed, or no texts.
        PartitionSealed: a month is sealed with other passages; ``replace`` is not set.
        StorageError: a sealed file is damaged.
    """
    asked = [s for s in list_questions(store, source) if not months or s.month in months]
    if not asked or source.endswith(SUFFIX):
        meant = did_you_mean(source, {seal.source for seal in list_questions(store)})
        raise UsageError(
            f"no questions of {source!r} are sealed in these months that could be asked with "
            f"documents; {meant}see `tidemark forecast crawl`, and `tidemark forecast import` of "
            "the extra question_files"
        )
    questions = {
        seal.month: [q for q in read_questions(store, seal) if q.status == "resolved"]
        for seal in asked
    }
    found = find_passages(store, [q for each in questions.values() for q in each], texts, number)
    planned = [_plan(seal, questions[seal.month], found, number) for seal in asked]
    planned = [plan for plan in planned if plan.questions]
    num_asked = {month: len(each) for month, each in questions.items()}
    sealed = [
        Retrieved(seal, num_asked[seal.month] - seal.num_questions)
        for seal in seal_derived(store, planned, replace)
    ]
    return sealed, found.left_out


def find_passages(
    store: Store, questions: Sequence[Question], texts: Sequence[str], number: int
) -> FoundPassages:
    """Search the sealed texts of ``texts`` (empty: of all sources) for passages for questions.

    The texts are read twice, a few documents at a time. In memory are the words of the titles, and
    at most ``number`` passages a question.

    Raises:
        UsageError: nothing is sealed of these sources.
    """
    seals = [
        s for s in list_sealed(store) if s.is_text and (not texts or s.partition.source in texts)
    ]
    if not seals:
        known = list_sealed_sources(store)
        meant = "".join(did_you_mean(source, known) for source in texts)
        raise UsageError(f"no texts are sealed of these sources; {meant}see `tidemark crawl`")
    latest = max((q.opened_at for q in questions), default=None)
    queries = Queries([(words_of(q.title), q.opened_at) for q in questions])
    left_out: Counter[str] = Counter()
    for passage in _read(store, seals, latest, left_out):
        queries.count(passage.known_at, passage.words)
    queries.weigh()
    best = [Best(number) for _ in questions]
    for order, passage in enumerate(_read(store, seals, latest, Counter())):
        for query, score in queries.score(passage.known_at, passage.words):
            rank = (-score, passage.known_at, order)
            if best[query].is_wanted(rank, passage.cluster_id):
                best[query].add(rank, passage)
    found = {q: each.passages() for q, each in zip(questions, best, strict=True)}
    digests = {str(seal.partition): seal.content_digest for seal in seals}
    return FoundPassages(found, left_out, digests)


def _read(
    store: Store, seals: Sequence[Seal], latest: dt.datetime | None, left_out: Counter[str]
) -> Iterator[Passage]:
    """Yield passages in the order of the corpus; count documents that are left out."""
    for seal in seals:
        for row in _documents(store, seal):
            known = known_at(row)
            reason = _why_unused(row, known, latest)
            if reason or known is None:
                left_out[reason] += 1
            else:
                yield from _passages(row, known)


def known_at(row: SealedRow) -> dt.datetime | None:
    """Return the time from which on a document's text was there to be read; None if unknown.

    It is the later one of the document's date and the time of this version of its text. Without
    the latter, the time at which it was retrieved counts, since a page can change until then.
    Of a date without a time, the end of the day counts, where on Earth it ends last.
    """
    written: dt.datetime | None = row["event_time"]
    version: dt.datetime | None = row["text_as_of"] or row["retrieved_at"]
    if written is None or version is None:
        return None
    is_of_a_day = json.loads(row["extra"] or "{}").get("date_precision") == "day"
    return max(written + _WHOLE_DAY if is_of_a_day else written, version)


def _why_unused(row: SealedRow, known: dt.datetime | None, latest: dt.datetime | None) -> str:
    """Return why a document cannot be shown; an empty text if it can."""
    if known is None:
        return "without the time of its version"
    if not is_open(row["licence"]):
        return "without an open licence"
    if latest is None or known >= latest:
        return "newer than all questions"
    return ""


def _documents(store: Store, seal: Seal) -> Iterator[SealedRow]:
    for batch in read_documents(store, seal, columns=_COLUMNS):
        yield from batch.to_pylist()


def _passages(row: SealedRow, known: dt.datetime) -> Iterator[Passage]:
    """Yield the passages of a document."""
    title = " ".join((row["title"] or "").split())
    titled_at = row["retrieved_at"] or _NEVER
    cluster = row["cluster_id"] or row["document_id"]
    for start, end in spans_of(row["text"]):
        yield Passage(row["document_id"], cluster, known, title, titled_at, row["text"][start:end])


def _plan(
    seal: QuestionSeal, questions: Sequence[Question], found: FoundPassages, number: int
) -> DerivedQuestions:
    """Return a month's questions with the passages found for them."""
    answerable = [q for q in questions if found.passages[q]]
    shown = [with_passages(q, found.passages[q]) for q in answerable]
    describe = {
        "kind": "retrieval",
        "code_version": manifest.code_version(),
        "of": {"source": seal.source, "digest": seal.digest},
        "num_passages": number,
        "num_without": len(questions) - len(shown),
        "corpus": found.digests,
    }
    documents = {q.question_id: {p.document_id for p in found.passages[q]} for q in answerable}
    return DerivedQuestions(f"{seal.source}{SUFFIX}", seal.month, shown, documents, describe)


def with_passages(question: Question, passages: Sequence[Passage]) -> Question:
    """Return a question whose background ends with passages, each with its date."""
    listed = [
        f"[{place}] {passage.shown_to(question)}" for place, passage in enumerate(passages, start=1)
    ]
    parts = [(question.background or "").strip(), _HEADING, *listed]
    return dataclasses.replace(
        question,
        source=f"{question.source}{SUFFIX}",
        background="\n\n".join(filter(None, parts)),
    )
