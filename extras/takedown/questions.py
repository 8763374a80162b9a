"""Removal of questions with texts of documents."""

from __future__ import annotations

import json
from collections.abc import Collection

from core.corpus.derived import FORMER, all_documents, documents_of
from core.corpus.questions import QuestionSeal, list_questions
from core.storage.store import Store, path_part
from extras.takedown.texts import rewrite_table

_ID_COLUMNS = ("question_id",)


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
        gone = {name for name, used in documents_of(seal).items() if not wanted.isdisjoint(used)}
        if gone or not wanted.isdisjoint(all_documents(seal)):
            _forget(store, seal, gone)
        forgotten |= {(seal.source, name) for name in gone}
    return forgotten


def _forget(store: Store, seal: QuestionSeal, gone: Collection[str]) -> None:
    """Remove questions of a month, their answers, and former files."""
    folder = seal.path.rpartition("/")[0]
    for path in store.list(f"{folder}/*.parquet"):
        if path != seal.path:
            store.delete(path)
    answers = f"answers/model=*/source={path_part(seal.source)}/month={seal.month}/*.parquet"
    for path in store.list(answers):
        rewrite_table(store, path, gone, _ID_COLUMNS)
    num_left = rewrite_table(store, seal.path, gone, _ID_COLUMNS)
    file = {"name": seal.path.rpartition("/")[2], "sha256": store.sha256(seal.path)}
    manifest = {**seal.manifest, "file": file, "num_questions": num_left, FORMER: []}
    raw = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    store.write_bytes(f"{folder}/manifest.json", raw.encode())
