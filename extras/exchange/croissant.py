"""Metadata of an exported data set in Croissant 1.1, with the fields for responsible AI.

The file is ``croissant.json`` beside the Parquet files, which ``export hf`` writes; each of them is
a record set. NeurIPS' track for evaluations and data sets asks for the eight fields ``rai:…`` and
``prov:…`` that are marked below. https://docs.mlcommons.org/croissant/
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.corpus.partition import Seal
from core.corpus.simulated import is_simulated
from core.storage.store import sha256_of_file
from core.version import own_version

FILE = "croissant.json"
VERSION = "http://mlcommons.org/croissant/1.1"
RAI_VERSION = "http://mlcommons.org/croissant/RAI/1.0"
# Names of Croissant's own vocabulary; its checker warns of a context that lacks one of them.
_TERMS = (
    "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field",
    "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset",
    "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated",
    "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, object] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
_TYPES = {"month": "sc:Date", "event_time": "sc:DateTime", "simulated": "sc:Boolean"}
_ABOUT = {
    "document_id": "Id of a version of a document; the same in each crawl.",
    "source": "Source of the text.",
    "month": "First day of the month in which the text was published (UTC).",
    "event_time": "Instant that decides the month (UTC).",
    "title": "Title of the document.",
    "url": "Address of the document.",
    "licence": "Licence of the document: an SPDX id or an address.",
    "attribution": "Whom to name when the text is passed on.",
    "language": "BCP 47 tag of prose, or code: and a programming language.",
    "category": "Genre or topic.",
    "text": "The text.",
    "simulated": "True if a program has made up the text.",
}
_SIMULATED = "SIMULATED: a program made up the texts whose column `simulated` is true. "
_DESCRIPTION = (
    "Texts that were published in the month that column `month` names. Each has a licence and an "
    "attribution of its own."
)
_COLLECTION = (
    "Texts were requested from public sites by their interfaces for programs, or imported from "
    "files. Each belongs to the month in which it was published."
)
_PREPARED = (
    "Crawled texts were cleaned of markup. Texts that are too short, too long, repeated, of "
    "another language or mostly no prose were dropped. Imported texts are as they came, unless the "
    "import asked for cleaning."
)
_LIMITATIONS = (
    "Months with a document whose licence is not known as open are left out, so the sources are "
    "not all that tidemark measures on.",
    "Large sources are samples of their months.",
    "A month has the texts that could be had when it was crawled; texts that were removed before "
    "are missing.",
)
_BIASES = (
    "Authors of encyclopedias, code, public bodies and other open sources wrote the texts. They "
    "are no sample of any population, and most of them write English.",
    "Topics of sources, and their share of a month, change over the months.",
)
_PERSONAL = (
    "The texts were public when they were collected, and may name people and state what they did. "
    "E-mail addresses, telephone numbers and keys are in them unless the crawl replaced them.",
)
_USES = (
    "Measuring how well a language model predicts text that was published after its training data.",
    "Estimating the last month of a model's training data.",
    "Training a model on a month makes later measurements of it on this month worthless.",
)
_IMPACT = (
    "Users can check when a model's knowledge ends, and need not believe its maker. People who are "
    "named in the texts are named in one more place; a takedown removes a document from later "
    "exports."
)
_MAINTENANCE = (
    "Months are added as they end. A sealed month changes by takedown alone, and a repeated crawl "
    "is a new version."
)


@dataclass(frozen=True)
class DescribedSet:
    """Months with their files, and who publishes them."""

    seals: Mapping[str, Seal]  # by name of the file
    record_sets: Mapping[str, str]  # name of the record set by name of the file
    schema: pa.Schema
    licences: Collection[str]
    languages: Collection[str]
    name: str  # of the data set
    author: str | None
    address: str | None  # http:// or https:// address of the data set or its publisher


def write_croissant(folder: Path, described: DescribedSet) -> None:
    """Write ``croissant.json`` beside the files of an export.

    Exports of the same months are identical: the date is that of the last sealing.
    """
    text = json.dumps(_metadata(folder, described), indent=2, ensure_ascii=False)
    (folder / FILE).write_text(f"{text}\n", encoding="utf-8")


def _metadata(folder: Path, described: DescribedSet) -> dict[str, object]:
    """Return the data set's description in Croissant (JSON-LD)."""
    sealed = [seal.sealed_at for seal in described.seals.values() if seal.sealed_at]
    day = max(sealed).date() if sealed else None
    title = "Dated text by source and month"
    is_partly_simulated = any(map(is_simulated, described.licences))
    warning = _SIMULATED if is_partly_simulated else ""
    creator = {"@type": "Organization", "name": described.author or "tidemark"}
    facts: dict[str, object] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [VERSION, RAI_VERSION],
        "name": described.name,
        "alternateName": title,
        "description": f"{warning}{_DESCRIPTION} Collected by tidemark {own_version()}.",
        "citeAs": _citation(title, creator["name"], day),
        "creator": creator,
        "datePublished": day and day.isoformat(),
        "version": day and f"{day.year}.{day.month}.{day.day}",
        "license": sorted(described.licences),
        "inLanguage": sorted({each for each in described.languages if ":" not in each}),
        "url": described.address,
        "isLiveDataset": False,
        **_responsible(described, is_partly_simulated),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{(folder / name).stat().st_size} B",
                "encodingFormat": "application/x-parquet",  # as the format's own reader calls it
                "sha256": sha256_of_file(folder / name),
            }
            for name in described.seals
        ],
        "recordSet": [
            _record_set(name, described.record_sets[name], seal, described.schema.names)
            for name, seal in described.seals.items()
        ],
    }
    return {key: value for key, value in facts.items() if value not in (None, [])}


def _responsible(described: DescribedSet, is_partly_simulated: bool) -> dict[str, object]:
    """Return the fields for responsible AI; the first eight are those that NeurIPS requires."""
    months = [seal.partition.month for seal in described.seals.values() if seal.partition.month]
    first = min((month.first_day for month in months), default=None)
    last = max((month.end for month in months), default=None)
    sources = sorted({seal.partition.source for seal in described.seals.values()})
    return {
        "rai:dataLimitations": list(_LIMITATIONS),
        "rai:dataBiases": list(_BIASES),
        "rai:personalSensitiveInformation": list(_PERSONAL),
        "rai:dataUseCases": list(_USES),
        "rai:dataSocialImpact": _IMPACT,
        "rai:hasSyntheticData": is_partly_simulated,
        "prov:wasDerivedFrom": [{"@type": "prov:Entity", "prov:label": name} for name in sources],
        "prov:wasGeneratedBy": [
            {"@type": "prov:Activity", "prov:label": label, "sc:description": about}
            for label, about in (("collection", _COLLECTION), ("preparation", _PREPARED))
        ],
        "rai:dataCollection": _COLLECTION,
        "rai:dataCollectionTimeFrame": [
            f"{moment:%Y-%m-%d}" for moment in (first, last) if moment is not None
        ],
        "rai:dataPreprocessingProtocol": [_PREPARED],
        "rai:dataReleaseMaintenancePlan": _MAINTENANCE,
    }


def _record_set(file: str, name: str, seal: Seal, columns: Sequence[str]) -> dict[str, object]:
    """Return the description of one file's columns in Croissant."""
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"{seal.num_documents} documents of {seal.partition}.",
        "key": {"@id": f"{name}/document_id"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column}",
                "name": column,
                "description": _ABOUT[column],
                "dataType": _TYPES.get(column, "sc:Text"),
                "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
            }
            for column in columns
        ],
    }


def _citation(title: str, author: object, day: dt.date | None) -> str:
    year = f", year = {{{day.year}}}" if day else ""
    return f"@misc{{tidemark, title = {{{title}}}, author = {{{author}}}{year}}}"
