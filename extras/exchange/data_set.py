"""Export of sealed months as a data set in the form of the Hugging Face hub.

The folder has a Parquet file per source and month, and a card whose YAML names a configuration per
source, so ``datasets.load_dataset(FOLDER, SOURCE)`` reads it. ``croissant.json`` describes the same
files. The set has months of openly licensed text only. Nothing is sent anywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import yaml

from core.cells.tokens import is_open
from core.corpus.partition import Seal, list_sealed, list_sealed_sources, read_documents
from core.corpus.simulated import is_simulated
from core.errors import UsageError, did_you_mean
from core.month import Period
from core.settings import Settings
from core.storage.store import Store
from core.version import own_version
from extras.exchange.croissant import DescribedSet, write_croissant
from extras.exchange.lm_eval import is_restricted, safe_name
from reports.exports.files import exporting, write_manifest, write_parquet

_KIND = "hf"
_COLUMNS = [
    "document_id", "source", "month", "event_time", "title", "url", "licence", "attribution",
    "language", "category", "text",
]  # fmt: skip
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGEST = "1M<n<10M"
_CARD = """\
---
{front}---

# Dated text by source and month

{simulated}Texts that were published in the month that column `month` names, collected by tidemark
{version}. Split them by month to measure how well a model predicts text that did not exist when it
was trained:

```python
datasets.load_dataset({folder}, "{example}", split="train")
```

Each document has a licence and an attribution of its own, which go where its text goes. All
licences let others pass the text on and change it. `event_time` decides the month (UTC). `language`
is BCP 47 for prose, and `code:…` for code.

| source | months | documents | bytes |
|---|---|---|---|
{sources}

| licence | documents |
|---|---|
{licences}
"""
_SIMULATED = """\
**SIMULATED.** A program made up the texts of column `simulated`. No site has published them.

"""


@dataclass
class DataSet:
    """An exported data set; ``left_out`` has a sentence for each month that is not in it."""

    folder: Path
    seals: list[Seal] = field(default_factory=list)
    licences: Counter[str] = field(default_factory=Counter)
    languages: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)


def export_data_set(
    settings: Settings, sources: Sequence[str], months: Sequence[Period], output: Path
) -> DataSet:
    """Export the open months of ``sources`` (none: of all); ``months`` empty means all months.

    An earlier export in the folder is replaced.

    Raises:
        UsageError: no month is open, or one of a named source is not; ``output`` exists and is no
            export.
        StorageError: a file of a partition is damaged, or writing failed.
    """
    store = Store(settings.home)
    found = DataSet(output)
    for seal in list_sealed(store, as_of=settings.corpus_as_of):
        partition = seal.partition
        is_chosen = not sources or partition.source in sources
        if not is_chosen or (months and partition.month not in months):
            continue
        reason = _why_closed(store, seal)
        if reason is None:
            found.seals.append(seal)
        else:
            found.left_out.append(f"{partition} {reason}")
    lacking = set(sources) - {seal.partition.source for seal in found.seals}
    if not found.seals or lacking or (sources and found.left_out):
        told = "; ".join(found.left_out) or "nothing is sealed of what was asked for"
        known = list_sealed_sources(store)
        meant = "".join(did_you_mean(source, known) for source in sorted(lacking))
        raise UsageError(f"not exported: {told}; {meant}see `tidemark status` for what is sealed")
    with exporting(output, _KIND) as folder:
        for seal in found.seals:
            write_parquet(_schema(), _batches(store, seal, found), folder / _file_of(seal))
        (folder / "README.md").write_text(_card(found), encoding="utf-8")
        write_croissant(folder, _described(found, settings))
        write_manifest(folder, _KIND, {"tidemark": own_version(), "licences": found.licences})
    return found


def _why_closed(store: Store, seal: Seal) -> str | None:
    """Return why a month is not exported; None if each of its texts has an open licence."""
    if not seal.is_text:
        return f"holds no text but {seal.content}"
    if seal.is_local:
        return "is for local use"
    closed: Counter[str] = Counter()
    for batch in read_documents(store, seal, ["licence"], batch_rows=8192):
        for licence in batch["licence"].to_pylist():
            closed[licence] += is_restricted(licence) or not is_open(licence)
    number = closed.total()
    if not number:
        return None
    names = ", ".join(sorted(name for name, count in closed.items() if count)[:3])
    return f"has {number} documents whose licence is not known as open ({names})"


def _schema() -> pa.Schema:
    time = pa.timestamp("us", tz="UTC")
    kinds = {"month": pa.date32(), "event_time": time, "text": pa.large_string()}
    fields = [(name, kinds.get(name, pa.string())) for name in _COLUMNS]
    return pa.schema([*fields, ("simulated", pa.bool_())])


def _batches(store: Store, seal: Seal, found: DataSet) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a month; count their licences and languages."""
    for batch in read_documents(store, seal, _COLUMNS):
        licences = batch["licence"].to_pylist()
        found.licences.update(licences)
        found.languages.update(filter(None, batch["language"].to_pylist()))
        simulated = pa.array([is_simulated(licence) for licence in licences])
        columns = [batch[name] for name in _COLUMNS]
        yield pa.RecordBatch.from_arrays([*columns, simulated], schema=_schema())


def _described(found: DataSet, settings: Settings) -> DescribedSet:
    """Return what Croissant's description needs to know of a data set."""
    files = {_file_of(seal): seal for seal in found.seals}
    return DescribedSet(
        seals=files,
        record_sets={name: name.removesuffix(".parquet") for name in files},
        schema=_schema(),
        licences=found.licences,
        languages=found.languages,
        name=found.folder.resolve().name,
        author=settings.report_author,
        address=settings.report_url,
    )


def _file_of(seal: Seal) -> str:
    month = seal.partition.month or "undated"
    return f"{safe_name(seal.partition.source)}-{month}.parquet"


def _card(found: DataSet) -> str:
    """Return the data set's README, with the front matter that the Hub reads."""
    by_source: dict[str, list[Seal]] = {}
    for seal in found.seals:
        by_source.setdefault(safe_name(seal.partition.source), []).append(seal)
    configs = [
        {"config_name": name, "data_files": [_file_of(seal) for seal in seals]}
        for name, seals in sorted(by_source.items())
    ]
    number = sum(seal.num_documents for seal in found.seals)
    front = {
        "pretty_name": "Dated text by source and month",
        "license": "other",
        "license_name": "per-document",
        "license_link": "README.md",
        "language": sorted({name.partition("-")[0] for name in found.languages if ":" not in name}),
        "size_categories": [next((name for most, name in _SIZES if number < most), _LARGEST)],
        "task_categories": ["text-generation"],
        "configs": configs,
    }
    rows: list[str] = []
    for name, seals in sorted(by_source.items()):
        num_documents = sum(seal.num_documents for seal in seals)
        num_bytes = sum(seal.num_bytes for seal in seals)
        rows.append(f"| {name} | {len(seals)} | {num_documents:,} | {num_bytes:,} |")
    licences = [f"| {name} | {count:,} |" for name, count in sorted(found.licences.items())]
    return _CARD.format(
        front=yaml.safe_dump(
            {name: value for name, value in front.items() if value}, sort_keys=False
        ),
        simulated=_SIMULATED if any(map(is_simulated, found.licences)) else "",
        version=own_version(),
        folder=json.dumps(found.folder.resolve().name, ensure_ascii=False),
        example=configs[0]["config_name"],
        sources="\n".join(rows),
        licences="\n".join(licences),
    )
