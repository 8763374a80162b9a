"""Import of web pages that a user saved: each month of their dates becomes a sealed partition.

Title, date and text are those that a page states (``text.pages``). Pages without a date or without
text, and pages of a month that is not over, are drops in the manifest of the first month.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

from core.corpus.partition import Partition, Seal
from core.errors import ItemUnavailable, UsageError
from core.month import Month
from core.storage.store import Store
from crawlers.contract import Drop
from crawlers.imports.text_files import Record, regular_files
from crawlers.imports.texts import ImportOptions, import_records
from crawlers.registry import list_all_sources, load_crawler
from crawlers.text import pages
from crawlers.text.pages import Page

SUFFIXES = (".html", ".htm", ".xhtml")


def import_pages(folder: Path, source: str, store: Store, options: ImportOptions) -> list[Seal]:
    """Seal the pages of a folder, a partition for each month; return the seals.

    Raise UsageError if the folder has no page with date and text of a month that is over. Raise the
    errors of ``imports.texts.import_texts``.
    """
    elements = pages.ARTICLE
    if source in list_all_sources():
        crawler = load_crawler(source)
        elements = getattr(crawler, "ELEMENTS", elements)
    by_month: dict[Month, list[str]] = {}
    drops: list[Drop] = []
    for name in _names(folder):
        found = _read(folder, name, elements)
        if isinstance(found, Drop):
            drops.append(found)
        else:
            assert found.published is not None  # noqa: S101 - _read drops undated pages
            by_month.setdefault(Month.of(found.published), []).append(name)
    if not by_month:
        reasons = ", ".join(f"{drop.native_id}: {drop.reason}" for drop in drops[:3]) or "no page"
        raise UsageError(
            f"{folder} has no page to import ({reasons}); expected {', '.join(SUFFIXES)} files "
            f"that state a date, with text in {elements}"
        )
    seals = []
    for number, month in enumerate(sorted(by_month)):
        lost = drops if number == 0 else []
        records = _records(folder, by_month[month], elements, lost)
        partition = Partition(source, month)
        seals.append(import_records(folder, partition, store, options, "html", records))
    return seals


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in regular_files(folder) if name.lower().endswith(SUFFIXES)]
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error}") from error


def _read(folder: Path, name: str, elements: str) -> Page | Drop:
    try:
        data = (folder / name).read_bytes()
        page = pages.read_page(data.decode("utf-8", "replace"), elements)
    except ItemUnavailable as error:
        return Drop(name, "parse_error", str(error))
    except OSError as error:
        raise UsageError(f"{folder / name} cannot be read: {error}") from error
    if page.published is None:
        return Drop(name, "no_date", "neither in JSON-LD nor in meta elements")
    if page.published >= Month.last_complete().end:
        return Drop(name, "outside_month", f"{page.published:%Y-%m} is not over")
    if not page.text:
        return Drop(name, "empty", f"no text in {elements}")
    return page


def _records(
    folder: Path, names: list[str], elements: str, drops: list[Drop]
) -> Iterator[Record | Drop]:
    yield from drops
    for name in names:
        page = _read(folder, name, elements)
        if isinstance(page, Drop):  # changed since the first reading
            yield page
            continue
        stated = {"title": page.title, "url": page.url, "date": _iso(page.published)}
        details = {key: value for key, value in stated.items() if value}
        yield Record(str(folder / name), name, page.text, details)


def _iso(moment: dt.datetime | None) -> str | None:
    return moment.isoformat() if moment else None
