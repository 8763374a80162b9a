"""Integrity checks of files that are not compared with landed rows, such as questions."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from core import progress
from core.cells.canary import read_canary_records
from core.cells.failures import SUFFIX
from core.corpus.partition import MANIFEST
from core.corpus.questions import read_question_seal
from core.errors import StorageError, TidemarkError
from core.month import Month
from core.storage.store import Store, name_of_part
from warehouse.read.findings import Finding, finding_of

Rows = list[dict[str, object]]
_FROM_BACKUP = "Bring the file back from a backup; or move it out of the data root, then "
_QUESTIONS = (
    "Bring the file back from a backup; or move the folder of its month out of the data root, "
    "crawl, import or make its questions again, and run `tidemark forecast answer` again."
)
_ANSWERS = f"{_FROM_BACKUP}run `tidemark forecast answer` again."
_PUZZLES = (
    "Bring the file and the one beside it (.json, .parquet) back from a backup; or move both out "
    "of the data root, then run `tidemark scylla run` (extra `scylla`) again."
)
_TOKENS = (
    "Bring the file back from a backup; or move it out of the data root: `tidemark xray` (extra "
    "`xray`) computes again what it shows."
)
_CANARY = f"{_FROM_BACKUP}run `tidemark check numerics`."


def check_files(store: Store) -> Iterator[Finding]:
    """Read all questions, answers, puzzles, kept token losses and runs of the canary.

    Raises:
        StorageError: the data root cannot be listed.
    """
    yield from _check(
        store,
        "questions_can_be_read",
        "Forecasting questions that are missing or damaged.",
        _QUESTIONS,
        (f"questions/source=*/month=*/{MANIFEST}", _read_questions),
    )
    yield from _check(
        store,
        "answers_can_be_read",
        "Answers to forecasting questions that are damaged.",
        _ANSWERS,
        ("answers/model=*/source=*/month=*/*.parquet", _read_parquet),
    )
    yield from _check(
        store,
        "puzzles_can_be_read",
        "Answers to puzzles that are missing or damaged.",
        _PUZZLES,
        ("puzzles/model=*/puzzle=*/*.json", _read_puzzles),
    )
    yield from _check(
        store,
        "tokens_can_be_read",
        "Losses of single tokens that are damaged.",
        _TOKENS,
        ("tokens/model=*/source=*/month=*/*.parquet", _read_parquet),
    )
    try:
        read_canary_records(store)
    except TidemarkError as error:
        rows: Rows = [{"problem": str(error)}]
        meaning = "Runs of the canary that are damaged."
        yield from finding_of("canary_can_be_read", meaning, _CANARY, rows)


def _check(
    store: Store,
    check: str,
    meaning: str,
    remedy: str,
    files: tuple[str, Callable[[Store, str], None]],
) -> Iterator[Finding]:
    """Read each file of a kind; report those that cannot be read."""
    pattern, read = files
    rows: Rows = []
    paths = [path for path in store.list(pattern) if not path.endswith(SUFFIX)]
    for number, path in enumerate(paths, start=1):
        try:
            read(store, path)
        # Of a damaged schema, names may not be UTF-8, and types may be unknown.
        except (pa.ArrowException, OSError, ValueError, LookupError, TidemarkError) as error:
            rows.append({"file": path, "problem": str(error)})
        progress.report(check.replace("_can_be_read", " are read"), number, len(paths))
    yield from finding_of(check, meaning, remedy, rows)


def _read_parquet(store: Store, path: str) -> None:
    """Read a Parquet file in full, so that damage raises an error."""
    table = pq.read_table(
        io.BytesIO(store.read_bytes(path)), page_checksum_verification=True, partitioning=None
    )
    table.validate(full=True)


def _read_questions(store: Store, path: str) -> None:
    """Read the questions of a manifest, and compare the digest of their file."""
    source, month = path.split("/")[1:3]
    name = name_of_part(source.removeprefix("source="))
    seal = read_question_seal(store, name, Month(month.removeprefix("month=")))
    if seal is None:
        raise StorageError(f"{store.url(path)} is missing")
    stated = seal.manifest.get("file")
    if isinstance(stated, dict):
        _require_digest(store, seal.path, stated.get("sha256"))
    _read_parquet(store, seal.path)


def _read_puzzles(store: Store, path: str) -> None:
    """Read the record of a puzzle cell, and compare the digest of the answers' file."""
    record = json.loads(store.read_bytes(path))
    if not isinstance(record, dict):
        raise ValueError("is no record of a puzzle")
    if record["answers_digest"] is not None:
        answers = f"{path.removesuffix('.json')}.parquet"
        _require_digest(store, answers, record["answers_digest"])


def _require_digest(store: Store, path: str, digest: object) -> None:
    found = hashlib.sha256(store.read_bytes(path)).hexdigest()
    if found != digest:
        raise ValueError(f"{path} has the SHA-256 {found}; expected {digest}")
