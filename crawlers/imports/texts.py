"""Import of a user's own texts as one sealed partition, and of saved pages, one for each month.

Formats:
    json-list: one JSON list of strings, as Uncheatable Eval publishes its data, or of objects.
    jsonl: each line is a JSON object with ``text`` or a JSON string; blank lines are ignored.
    parquet: each row is a document, with a ``text`` column.
    folder: each regular file is a document (id: its path); links and hidden files are skipped.

Objects and Parquet rows may also have the other fields of ``documents.FIELDS``. A date is stored in
``extra``, and has no effect on the month. Saved pages have what they state (``text.pages``).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from core.corpus.partition import Partition, Seal
from core.errors import UsageError
from core.storage.store import Store
from crawlers.imports.dating import Dating
from crawlers.imports.documents import UNKNOWN, ImportOptions
from crawlers.imports.readers import find_format
from crawlers.imports.sets import import_set
from crawlers.registry import list_all_sources, load_crawler
from crawlers.text.pages import ARTICLE

__all__ = ["ImportOptions", "import_texts", "options_for_pages", "strict"]


def import_texts(path: Path, partition: Partition, store: Store, options: ImportOptions) -> Seal:
    """Seal the texts of a file or folder as one partition.

    Nothing is written unless the whole file is well-formed. Texts that are empty, too short or too
    long are dropped. With ``clean``, repeated texts are dropped, too. The manifest counts drops by
    reason. If the same texts are sealed already, their seal is kept. Raise UsageError for an
    unknown file or format, a month that is not over, or a source without name or with images or
    recordings. Raise MalformedInput if the file is not well-formed; the error names file and
    record. Raise EmptyPartition if every record was dropped; the message counts the reasons. Raise
    PartitionSealed if different content is sealed already and ``replace`` is not set.
    """
    chosen = strict(path, partition, options)
    return import_set([path], partition.source, store, chosen).seals[0]


def strict(path: Path, partition: Partition, options: ImportOptions) -> ImportOptions:
    """Return the options by which one file or folder of texts becomes one partition."""
    format_ = find_format(path, options.format)
    if options.columns and format_ == "folder":
        raise UsageError(f"{path} is a folder, which has no fields to name; omit --column")
    dating = Dating(partition.month, is_undated=partition.month is None)
    return dataclasses.replace(options, format=format_, dating=dating, is_strict=True, sift=False)


def options_for_pages(source: str, replace: bool = False) -> ImportOptions:
    """Return the options for pages of a site, by what its crawler states, if there is one."""
    licence = UNKNOWN
    elements = ARTICLE
    if source in list_all_sources():
        crawler = load_crawler(source)
        licence = crawler.INFO.licence
        elements = getattr(crawler, "ELEMENTS", ARTICLE)
    return ImportOptions(
        format="html", clean=True, sift=False, licence=licence, elements=elements, replace=replace
    )
