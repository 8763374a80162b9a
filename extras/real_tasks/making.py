"""Make tasks from the texts of a month, and seal them as questions.

A task shows a part of a document and asks which of four options comes next. The wrong options are
from other documents of the same source and month, so they are as new as the right one. Tasks are
sealed as the source ``NAME:task-KIND`` and answered as questions are.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from core.cells.tokens import is_open
from core.corpus.derived import DerivedQuestions, seal_derived
from core.corpus.partition import Seal, list_sealed, list_sealed_sources, read_documents, read_texts
from core.corpus.questions import Question, QuestionSeal, task_source
from core.errors import UsageError, did_you_mean
from core.month import Month
from core.schemas.tables import SealedRow
from core.storage.store import Store
from crawlers.crawling import manifest
from extras.real_tasks.finding import (
    FINDERS,
    MAX_CHARS,
    Shown,
    TextGap,
    are_copies,
    is_other,
    marks_of,
    tells_answer,
)

NUM_OPTIONS = 4
_VERSION = 4  # increase if a change makes other tasks from the same texts
_SPARE = 4  # documents that are read for each task that is wanted
_PLACES = 30  # places of a document that are looked at
_MOST_SEEN = 0.5  # share of a document's text that earlier months had, at most
_COLUMNS = [
    "document_id", "cluster_id", "event_time", "language", "licence", "seen_share", "num_chars",
]  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A document that tasks are made from, and its facts."""

    facts: SealedRow
    text: str

    @cached_property
    def shown(self) -> Shown:
        """The text, in the forms in which answers are searched in it."""
        return Shown(self.text)

    @cached_property
    def marks(self) -> frozenset[str]:
        """The text's long sentences, which a copy has too."""
        return marks_of(self.text)


def make_tasks(
    store: Store,
    sources: Sequence[str],
    months: Sequence[Month],
    number: int,
    seed: int = 0,
    replace: bool = False,
) -> list[QuestionSeal]:
    """Make at most ``number`` tasks of each kind from each sealed month, and seal them.

    ``sources`` are of text, and empty means all, as with ``months``. Only openly licensed documents
    with a date are used, one of each cluster. Equal texts and seeds give equal tasks.

    Raises:
        UsageError: nothing is sealed of these sources and months.
        PartitionSealed: a month is sealed with other tasks; ``replace`` is not set.
        StorageError: a sealed file is damaged.
    """
    sealed = [seal for seal in list_sealed(store) if seal.is_text]
    seals = [seal for seal in sealed if isinstance(seal.partition.month, Month)]
    if sources:
        seals = [seal for seal in seals if seal.partition.source in sources]
    if months:
        seals = [seal for seal in seals if seal.partition.month in months]
    if not seals:
        known = list_sealed_sources(store)
        meant = "".join(did_you_mean(source, known) for source in sources or ())
        raise UsageError(
            f"no texts of months are sealed of these sources and months; {meant}see `tidemark "
            "crawl`"
        )
    planned = [plan for seal in seals for plan in _plans(store, seal, number, seed)]
    return seal_derived(store, [plan for plan in planned if plan.questions], replace)


def _plans(store: Store, seal: Seal, number: int, seed: int) -> Iterator[DerivedQuestions]:
    """Yield a month's questions of each kind of task, with the documents they are made of."""
    texts = _choose(store, seal, number, seed)
    partition = seal.partition
    assert isinstance(partition.month, Month)  # noqa: S101
    for kind in FINDERS:
        own = {
            name: text
            for name, text in texts.items()
            if (kind == "code") == str(text.facts["language"]).startswith("code:")
        }
        tasks = list(_tasks(own, kind, seed))[:number]
        name = task_source(partition.source, kind)
        questions = [
            _question(name, partition.month, each, options, own, seed) for each, options in tasks
        ]
        documents = {
            place.document_id: {place.document_id, *(other.document_id for other in options)}
            for place, options in tasks
        }
        describe = {
            "kind": "tasks",
            "code_version": manifest.code_version(),
            "version": _VERSION,
            "seed": seed,
            "corpus": {str(partition): seal.content_digest},
        }
        questions.sort(key=lambda question: question.question_id)
        yield DerivedQuestions(name, partition.month, questions, documents, describe)


def _choose(store: Store, seal: Seal, number: int, seed: int) -> dict[str, Text]:
    """Return some texts of a month by id; which ones, the seed and their ids decide."""
    usable = (row for row in _rows(store, seal) if _is_usable(row))
    drawn = heapq.nsmallest(
        _SPARE * number, usable, key=lambda row: _place(seed, "document", row["document_id"])
    )
    by_cluster: dict[str, SealedRow] = {}
    for row in drawn:
        by_cluster.setdefault(row["cluster_id"] or row["document_id"], row)
    facts = {row["document_id"]: row for row in by_cluster.values()}
    texts = {
        name: Text(facts[name], text[:MAX_CHARS]) for name, text in read_texts(store, seal, facts)
    }
    return {name: texts[name] for name in facts}


def _rows(store: Store, seal: Seal) -> Iterator[SealedRow]:
    for batch in read_documents(store, seal, columns=_COLUMNS, batch_rows=8192):
        yield from batch.to_pylist()


def _is_usable(row: SealedRow) -> bool:
    has_date = row["event_time"] is not None
    return has_date and is_open(row["licence"]) and (row["seen_share"] or 0) <= _MOST_SEEN


def _tasks(texts: dict[str, Text], kind: str, seed: int) -> Iterator[tuple[TextGap, list[TextGap]]]:
    """Yield at most one task of each text: its place, and those of the wrong options."""
    own: dict[str, list[TextGap]] = {}
    pools: dict[tuple[str, str], list[TextGap]] = defaultdict(list)
    for name, text in texts.items():
        own[name] = _sorted(FINDERS[kind](name, text.text), seed)[:_PLACES]
        for place in own[name]:
            pools[str(text.facts["language"]), place.kind].append(place)
    for name, text in texts.items():
        for place in own[name]:
            if tells_answer(place):
                continue
            pool = pools[str(text.facts["language"]), place.kind]
            options = _wrong_options(place, pool, texts, seed)
            if len(options) == NUM_OPTIONS - 1:
                yield place, options
                break


def _wrong_options(
    place: TextGap, pool: Iterable[TextGap], texts: dict[str, Text], seed: int
) -> list[TextGap]:
    """Return places of other documents whose answers are wrong here, in a random order.

    What the text itself says is no wrong option, and a copy of the text gives none.
    """
    own = texts[place.document_id]
    chosen: list[TextGap] = []
    for other in _sorted(pool, seed, place.document_id):
        is_wrong = (
            other.document_id != place.document_id
            and not own.shown.tells(other.kind, other.answer)
            and not are_copies(own.marks, texts[other.document_id].marks)
            and all(is_other(place.kind, other.answer, each.answer) for each in [place, *chosen])
        )
        if is_wrong:
            chosen.append(other)
        if len(chosen) == NUM_OPTIONS - 1:
            break
    return chosen


def _question(
    source: str,
    month: Month,
    place: TextGap,
    others: Sequence[TextGap],
    texts: dict[str, Text],
    seed: int,
) -> Question:
    """Return the question what follows a text, with other texts' answers as options."""
    options = sorted(
        [place, *others], key=lambda each: _place(seed, "order", place.document_id, each.answer)
    )
    facts = texts[place.document_id].facts
    dated = cast(dt.datetime, facts["event_time"])  # see ``_is_usable``
    licences = {texts[each.document_id].facts["licence"] for each in options}
    return Question(
        question_id=place.document_id,
        source=source,
        title=f"What comes next in {source} {month} {place.document_id[:12]}?",
        background=place.before,
        options=tuple(each.answer for each in options),
        answer_index=options.index(place),
        opened_at=dated,
        resolved_at=dated,
        status="resolved",
        tags=("task",),
        licence=" AND ".join(sorted({part for each in licences for part in each.split(" AND ")})),
    )


def _sorted(places: Iterable[TextGap], seed: int, *salt: str) -> list[TextGap]:
    return sorted(
        places, key=lambda each: _place(seed, *salt, each.document_id, each.before, each.answer)
    )


def _place(seed: int, *names: str) -> bytes:
    """Return bytes by which to sort, as good as random and the same on each machine."""
    return hashlib.sha256("\n".join([str(seed), *names]).encode(errors="replace")).digest()
