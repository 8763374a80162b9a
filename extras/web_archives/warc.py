"""Pages of web archives: WARC files of CC-NEWS, and WET files of Common Crawl; also packed.

Records that are torn or cut are drops that name the byte of the unpacked file where they begin;
reading goes on at the next record. Rights stay with the publishers, so all texts are of unknown
licence, and hosts of ``TIDEMARK_DENIED_HOSTS`` are left out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import cast

from core.errors import ItemUnavailable
from crawlers.contract import Drop, DropReason
from crawlers.imports.streams import open_stream
from crawlers.imports.tables import DataFile, Row, Rows
from crawlers.text.cleaning import clean
from crawlers.text.pages import Page
from crawlers.text.warc import (
    Record,
    Torn,
    captured_at,
    read_capture,
    read_records,
    require_allowed,
    require_whole,
)

MAX_DAYS = 7  # between the stated publication and the capture; more is an old article or no date


def read_archive(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the pages of a WARC or WET file: text, title, url, and date of publication or capture.

    Requests, metadata and revisits are ignored.
    """
    faults: list[str] = []
    with open_stream(file.path, faults) as stream:
        for number, found in enumerate(read_records(stream)):
            place = f"{file.name}:{number}"
            where = f"{place} (byte {found.start})"
            if isinstance(found, Torn):
                yield Drop(place, found.reason, f"{where}: {found.why}")
                continue
            kind = found.headers.get("warc-type")
            url = found.headers.get("warc-target-uri", "")
            url = url.strip("<>")
            try:
                if kind == "conversion":
                    require_allowed(url, file.denied_hosts)
                    yield Row(place, _extracted(found, url), "web")
                elif kind == "response" and not url:
                    raise ItemUnavailable("damaged", "it states no address")
                elif kind == "response" and url.startswith(("http://", "https://")):
                    require_allowed(url, file.denied_hosts)
                    yield Row(place, _page(found, url), "web")
            except ItemUnavailable as error:
                yield Drop(place, cast(DropReason, error.reason), f"{where}: {url[:200]}: {error}")
    for why in faults:
        yield file.damaged("file", why)


def _extracted(record: Record, url: str) -> dict[str, object]:
    """Return the text that the archive extracted from a page."""
    require_whole(record)
    try:
        text = record.body.decode()
    except UnicodeDecodeError as error:
        raise ItemUnavailable("damaged", f"byte {error.start} of it is not UTF-8") from error
    return {"text": clean(text), "url": url, "date": captured_at(record)}


def _page(record: Record, url: str) -> dict[str, object]:
    """Return the text of a captured HTML page."""
    page = read_capture(record)
    return {
        "text": clean(page.text),
        "title": page.title,
        "url": url,
        "date": _date_of(page, captured_at(record)),
    }


def _date_of(page: Page, captured: dt.datetime | None) -> dt.datetime | None:
    if page.published and captured and abs(page.published - captured).days >= MAX_DAYS:
        why = f"published {page.published:%Y-%m-%d}, captured {captured:%Y-%m-%d}"
        raise ItemUnavailable("outside_month", why)
    return page.published or captured
