"""Questions that contain texts of documents, such as passages to read or sentences to complete.

The manifest names the documents of each question under ``documents``, and those of former files of
the month under ``former_documents``. So a takedown of a document reaches such questions and
the answers to them. It does not need the code that made the questions.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.corpus.questions import (
    Question,
    QuestionSeal,
    list_questions,
    read_question_seal,
    read_questions,
    seal_questions,
)
from core.corpus.takedown import rewrite_table
from core.errors import PartitionSealed
from core.month import Month
from core.storage.store import Store, path_part

_DOCUMENTS = "documents"
_FORMER = "former_documents"
_ID_COLUMNS = ("question_id",)


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
    former = read_question_seal(store, plan.source, plan.month)
    known = set() if former is None else _all_documents(former)
    describe = {
        **plan.describe,
        "status": "complete",
        "kept": len(plan.questions),
        "window": {"start": plan.month.start.isoformat(), "end": plan.month.end.isoformat()},
        "ended_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        _DOCUMENTS: {name: sorted(ids) for name, ids in sorted(plan.documents.items())},
        _FORMER: sorted(known),
    }
    seal_questions(store, plan.source, plan.month, plan.questions, describe)


def forget_questions(store: Store, ids: Collection[str]) -> set[tuple[str, str]]:
    """Remove questions with texts of documents, and the answers to them; ``ids`` are documents.

    The file keeps its name and the manifest its digest, by which answers to other questions
    identify them. Former files of these months are deleted: no answer that lands refers to them.

    Return source and id of these questions, also of those that were removed before.

    Raises:
        StorageError: a file is damaged.
    """
    wanted = frozenset(ids)
    forgotten: set[tuple[str, str]] = set()
    for seal in list_questions(store):
        gone = {name for name, used in _documents_of(seal).items() if not wanted.isdisjoint(used)}
        if gone or not wanted.isdisjoint(_all_documents(seal)):
            _forget(store, seal, gone)
        forgotten |= {(seal.source, name) for name in gone}
    return forgotten


def _documents_of(seal: QuestionSeal) -> dict[str, list[str]]:
    named = seal.manifest.get(_DOCUMENTS)
    return named if isinstance(named, dict) else {}


def _all_documents(seal: QuestionSeal) -> set[str]:
    former = seal.manifest.get(_FORMER)
    known = set(map(str, former)) if isinstance(former, list) else set()
    return known.union(*_documents_of(seal).values())


def _forget(store: Store, seal: QuestionSeal, gone: Collection[str]) -> None:
    folder = seal.path.rpartition("/")[0]
    for path in store.list(f"{folder}/*.parquet"):
        if path != seal.path:
            store.delete(path)
    answers = f"answers/model=*/source={path_part(seal.source)}/month={seal.month}/*.parquet"
    for path in store.list(answers):
        rewrite_table(store, path, gone, _ID_COLUMNS)
    num_left = rewrite_table(store, seal.path, gone, _ID_COLUMNS)
    file = {"name": seal.path.rpartition("/")[2], "sha256": store.sha256(seal.path)}
    manifest = {**seal.manifest, "file": file, "num_questions": num_left, _FORMER: []}
    raw = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    store.write_bytes(f"{folder}/manifest.json", raw.encode())
