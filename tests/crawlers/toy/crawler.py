"""Letters of a town that does not exist: a whole source, as an example to begin with.

From https://letters.invalid: ``/letters`` lists a month page by page, ``/letter/<id>`` has a text.
The month is that of the day on which a letter was posted, which is when its text is from.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, Item, Repeat, SourceInfo, missing_item
from crawlers.web.fetcher import Fetched, Fetcher

INFO = SourceInfo(
    name="toy",
    title="Letters of a town that does not exist",
    licence="CC0-1.0",
    language="en",
    category="letters",
    sites={"toy": "https://letters.invalid"},
    request_interval_s=1.0,
    first_month=Month("2020-01"),
)


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the letters posted in a month, in the order of the list, or of their ranks."""
    posted: dict[str, dt.datetime] = {}
    for native_id, moment in _list_letters(month, context.fetcher):
        if native_id in posted:
            yield Repeat(native_id, "on two pages of the list")
        posted[native_id] = moment
    yield from context.sample(
        posted, str, lambda name: [_fetch_letter(name, posted[name], context.fetcher)]
    )


def _list_letters(month: Month, fetcher: Fetcher) -> Iterator[tuple[str, dt.datetime]]:
    page, seen, total = 1, set[str](), 1
    while len(seen) < total:
        rows, total = _read_page(month, page, fetcher)
        if not rows and len(seen) < total:
            raise SourceUnavailable(f"toy {month}: page {page} is empty, {total} letters expected")
        for row in rows:
            seen.add(str(row["id"]))
            yield str(row["id"]), dt.datetime.fromisoformat(row["posted"])
        page += 1


def _read_page(month: Month, page: int, fetcher: Fetcher) -> tuple[list[Any], int]:
    params = {"month": str(month), "page": page}
    try:
        answer = fetcher.get("toy", "/letters", params, is_busy=_is_busy).json()
        return list(answer["letters"]), int(answer["total"])
    except ItemUnavailable as error:  # without its list there is no month
        raise SourceUnavailable(f"toy {month}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise SourceChanged(f"toy {month}: page {page} of the list has no {error}") from error


def _is_busy(fetched: Fetched) -> bool:
    """Return True if the site reports under status 200 that it is busy."""
    return b'"busy"' in fetched.body


def _fetch_letter(native_id: str, posted: dt.datetime, fetcher: Fetcher) -> Item:
    try:
        page = fetcher.get("toy", f"/letter/{native_id}", is_busy=_is_busy)
        letter = page.json()
        text, title = str(letter["text"]), str(letter["title"])
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(native_id, error)
    except (SourceChanged, KeyError, TypeError) as error:
        return Drop(native_id, "parse_error", f"no letter: {error}")
    return Document(
        native_id=native_id,
        version_id=None,
        text=text,
        title=title,
        url=f"{INFO.sites['toy']}/letter/{native_id}",
        event_time=posted,
        date_kind="published",
        text_as_of=posted,
        retrieved_at=page.retrieved_at,
        licence=INFO.licence,
        attribution=letter.get("town") or "a town that does not exist",
    )
