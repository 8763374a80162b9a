"""Questions that contain texts of documents, such as passages to read or sentences to complete.

The manifest names the documents of each question under ``documents``, and those of former files of
the month under ``former_documents``. So a takedown of a document reaches such questions and
the answers to them. The takedown does not need the code that made the questions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.corpus.questions import (
    Question,
    QuestionSeal,
    read_question_seal,
    read_questions,
    seal_questions,
)
from core.errors import PartitionSealed
from core.month import Month
from core.storage.store import Store

_DOCUMENTS = "documents"
FORMER = "former_documents"


@dataclass(frozen=True)
class DerivedQuestions:
    """Questions of a source and month, with the ids of the documents whose text each contains."""

    source: str
    month: Month
    questions: Sequence[Question]  # in order of id
    documents: Mapping[str, Collection[str]]  # by id of the question
    describe: Mapping[str, object]  # further entries of the manifest


def seal_derived(
    store: Store, planned: Sequence[DerivedQuestions], replace: bool = False
) -> list[QuestionSeal]:
    """Seal derived questions; return the seals of all, also of those that were sealed before.

    Raises:
        PartitionSealed: a month is sealed with other questions and ``replace`` is not set; nothing
            was sealed.
    """
    changed = [plan for plan in planned if _is_changed(store, plan)]
    for plan in changed:
        if not replace and read_question_seal(store, plan.source, plan.month) is not None:
            raise PartitionSealed(
                f"questions of {plan.source} are sealed in {plan.month} with other texts, since "
                "documents or questions have changed; nothing was sealed. Use --replace to seal "
                "them again"
            )
    for plan in changed:
        _seal(store, plan)
    seals = [read_question_seal(store, plan.source, plan.month) for plan in planned]
    return [seal for seal in seals if seal is not None]


def _is_changed(store: Store, plan: DerivedQuestions) -> bool:
    former = read_question_seal(store, plan.source, plan.month)
    return former is None or read_questions(store, former) != list(plan.questions)


def _seal(store: Store, plan: DerivedQuestions) -> None:
    """Seal derived questions; list the ids of present and former documents in the manifest."""
    former = read_question_seal(store, plan.source, plan.month)
    known = set() if former is None else all_documents(former)
    describe = {
        **plan.describe,
        "status": "complete",
        "kept": len(plan.questions),
        "window": {"start": plan.month.start.isoformat(), "end": plan.month.end.isoformat()},
        "ended_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        _DOCUMENTS: {name: sorted(ids) for name, ids in sorted(plan.documents.items())},
        FORMER: sorted(known),
    }
    seal_questions(store, plan.source, plan.month, plan.questions, describe)


def documents_of(seal: QuestionSeal) -> dict[str, list[str]]:
    """Return, by question id, the ids of the documents whose texts the question contains."""
    named = seal.manifest.get(_DOCUMENTS)
    return named if isinstance(named, dict) else {}


def all_documents(seal: QuestionSeal) -> set[str]:
    """Return the ids of the documents of all questions, present and former."""
    former = seal.manifest.get(FORMER)
    known = set(map(str, former)) if isinstance(former, list) else set()
    return known.union(*documents_of(seal).values())
