"""Export of a sealed month as a task of lm-evaluation-harness.

With the task, lm-evaluation-harness computes the same losses as tidemark's protocol ``lm-eval``.
The exported folder holds the task (YAML), the documents (JSON lines, with licences), and a Python
function that reads the documents. The harness's own JSON reader is unsuitable: it converts texts
that look like dates, and requires an absolute path.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from core.corpus.partition import (
    Partition,
    Seal,
    list_sealed,
    list_sealed_sources,
    read_documents,
    read_seal,
)
from core.corpus.simulated import is_simulated
from core.errors import UsageError, did_you_mean
from core.month import Period
from core.settings import Settings
from core.storage.store import Store
from core.version import own_version
from reports.exports.files import exporting, write_manifest

_KIND = "lm-eval"
_COLUMNS = ["document_id", "title", "url", "licence", "attribution", "text"]
_ADDED = "simulated"  # true of text that the simulator has made up
# doc_to_target must be the column name `text`. With the template {{text}}, the harness would
# evaluate a text that looks like a Python list.
_TASK = """\
task: {name}
custom_dataset: !function documents.load
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: text
metric_list:
  - metric: word_perplexity
  - metric: byte_perplexity
  - metric: bits_per_byte
metadata:
  version: 1.0
"""
_LOADER = '''\
"""Reads documents.jsonl for lm-evaluation-harness."""

import json
from pathlib import Path

import datasets


def load(**_):
    """Return the documents as they are; what looks like a date or a number stays text."""
    with Path(__file__).with_name("documents.jsonl").open(encoding="ascii") as lines:
        rows = [json.loads(line) for line in lines]
    columns = {columns}
    features = {{name: datasets.Value("string") for name in columns}}
    features["{added}"] = datasets.Value("bool")
    values = {{name: [row[name] for row in rows] for name in features}}
    dataset = datasets.Dataset.from_dict(values, features=datasets.Features(features))
    return {{"test": dataset}}
'''
_README = """\
# {name}

{simulated}A month of text as a task of lm-evaluation-harness. In this folder's parent:

    lm_eval --model hf --model_args pretrained=MODEL --include_path {folder} --tasks {name}

`bits_per_byte` is what tidemark gives under protocol `lm-eval`.

Each document has a licence and an attribution of its own, which go where its text goes.
{num_restricted} of {num_documents} have no licence that lets others pass their text on: keep those
to yourself.

| licence | documents |
|---|---|
{licences}
"""
_SIMULATED = """\
**SIMULATED.** tidemark's simulator made this text up. No site has published it.

"""


@dataclass(frozen=True)
class LmEvalTask:
    """An exported task; ``num_restricted`` documents have licences that forbid redistribution."""

    name: str
    folder: Path
    num_documents: int
    num_restricted: int


def export_lm_eval(
    settings: Settings, source: str, month: Period | None, output: Path | None = None
) -> LmEvalTask:
    """Export a sealed partition as a task; month None selects the undated partition.

    The default output folder is tidemark-lm-eval/<task>. An earlier export there is replaced.

    Raises:
        UsageError: the partition is not sealed, is not text or is for local use; ``output`` exists
            and is no export.
        StorageError: a file of the partition is damaged, or writing failed.
    """
    store = Store(settings.home)
    partition = Partition(source, month)
    seal = _sealed_text(store, partition, settings.corpus_as_of)
    name = task_name(partition)
    folder = Path("tidemark-lm-eval") / name if output is None else output
    with exporting(folder, _KIND) as staged:
        with (staged / "documents.jsonl").open("w", encoding="ascii") as file:
            licences = _write_documents(store, seal, file)
        num_restricted = sum(n for licence, n in licences.items() if is_restricted(licence))
        task = LmEvalTask(name, folder, seal.num_documents, num_restricted)
        (staged / f"{name}.yaml").write_text(_TASK.format(name=name), encoding="ascii")
        loader = _LOADER.format(columns=json.dumps(_COLUMNS), added=_ADDED)
        (staged / "documents.py").write_text(loader, encoding="ascii")
        (staged / "README.md").write_text(_readme(task, licences), encoding="utf-8")
        write_manifest(staged, _KIND, _facts(task, seal, licences))
    return task


def _facts(task: LmEvalTask, seal: Seal, licences: Counter[str]) -> dict[str, object]:
    """Return what the exported task says of its text: month, digest, licences."""
    month = seal.partition.month
    return {
        "tidemark": own_version(),
        "task": task.name,
        "source": seal.partition.source,
        "month": str(month) if month else None,
        "partition_digest": seal.digest,
        "num_documents": seal.num_documents,
        "num_bytes": seal.num_bytes,
        "simulated": any(map(is_simulated, licences)),
        "licences": dict(sorted(licences.items())),
        "num_restricted": task.num_restricted,
    }


def task_name(partition: Partition) -> str:
    """Return the task's name, whose characters are safe in file names, YAML and glob patterns."""
    month = str(partition.month or "undated").replace("-", "_")
    return f"tidemark_{safe_name(partition.source)}_{month}"


def safe_name(source: str) -> str:
    """Return a source's name; replace unsafe characters and add digits of a hash if it has any."""
    safe = re.sub(r"[^a-z0-9_]+", "_", source.lower())[:60]
    if safe == source:
        return safe
    digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{safe.strip('_')}_{digest[:8]}"


def is_restricted(licence: str) -> bool:
    """Return True unless the licence permits redistribution; arXiv's default licence does not."""
    is_named_only = licence.startswith("LicenseRef-") and not is_simulated(licence)
    return is_named_only or "nonexclusive-distrib" in licence


def _sealed_text(store: Store, partition: Partition, as_of: dt.datetime | None) -> Seal:
    """Return the seal of a month's text; raise an error if it may not be exported."""
    seal = read_seal(store, partition, as_of)
    if seal is None:
        known = [str(other.partition.month or "undated")
                 for other in list_sealed(store, partition.source, as_of)]  # fmt: skip
        sealed = f"sealed are: {', '.join(known)}" if known else "no month of that source is"
        meant = did_you_mean(partition.source, list_sealed_sources(store))
        raise UsageError(f"{partition} is not sealed; {sealed}. {meant}See `tidemark sources list`")
    if not seal.is_text:
        raise UsageError(f"{partition} holds no text but {seal.content}; lm_eval reads text")
    if seal.is_local:
        raise UsageError(
            f"{partition} is of web archives, whose rights stay with the publishers: its texts are "
            "for local use, and are not exported. Others can import the same archives"
        )
    return seal


def _write_documents(store: Store, seal: Seal, file: IO[str]) -> Counter[str]:
    """Write the documents as JSON lines; return how many have each licence."""
    licences: Counter[str] = Counter()
    for batch in read_documents(store, seal, _COLUMNS):
        for row in batch.to_pylist():
            licences[row["licence"]] += 1
            ordered = {column: row[column] for column in _COLUMNS}
            ordered[_ADDED] = is_simulated(row["licence"])
            file.write(json.dumps(ordered) + "\n")  # ASCII: some readers end lines at U+2028
    return licences


def _readme(task: LmEvalTask, licences: Counter[str]) -> str:
    """Return the README of an exported task."""
    rows = [f"| {_in_a_cell(name)} | {count} |" for name, count in sorted(licences.items())]
    return _README.format(
        name=task.name,
        folder=_in_a_cell(task.folder.name),
        simulated=_SIMULATED if any(map(is_simulated, licences)) else "",
        num_restricted=task.num_restricted,
        num_documents=task.num_documents,
        licences="\n".join(rows),
    )


def _in_a_cell(text: str) -> str:
    """Escape an untrusted text for a cell of a Markdown table."""
    return json.dumps(text)[1:-1].replace("|", "\\|").replace("<", "&lt;")
