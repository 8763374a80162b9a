"""Letters of a town that does not exist: a whole source, as an example to begin with.

From https://letters.invalid: ``/letters`` lists a month page by page, ``/letter/<id>`` has a text.
The month is that of the day on which a letter was posted, which is when its text is from.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceUnavailable
from core.month import Month
from crawlers.apis.fields import Fields
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
MAX_LETTERS = 10_000  # of a month


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the letters posted in a month, in the order of the list, or of their ranks."""
    posted: dict[str, dt.datetime] = {}
    for row in _list_letters(month, context.fetcher):
        native_id, moment = row.text("id"), row.time("posted")
        if native_id is None or moment is None:
            yield Drop(native_id or row.where, "parse_error", "no id, or no date of posting")
        elif native_id in posted:
            yield Repeat(native_id, "on two pages of the list")
        else:
            posted[native_id] = moment
    yield from context.sample(
        posted, str, lambda name: [_fetch_letter(name, posted[name], context.fetcher)]
    )


def _list_letters(month: Month, fetcher: Fetcher) -> Iterator[Fields]:
    page, seen, total = 1, set[str](), 1
    while len(seen) < total:
        rows, total = _read_page(month, page, fetcher)
        if not rows and len(seen) < total:
            raise SourceUnavailable(f"toy {month}: page {page} is empty, {total} letters expected")
        seen.update(row.text("id") or row.where for row in rows)
        yield from rows
        page += 1


def _read_page(month: Month, page: int, fetcher: Fetcher) -> tuple[list[Fields], int]:
    params = {"month": str(month), "page": page}
    try:
        fetched = fetcher.get("toy", "/letters", params, is_busy=_is_busy)
    except ItemUnavailable as error:  # without its list there is no month
        raise SourceUnavailable(f"toy {month}: {error}") from error
    answer = Fields.of(f"toy {month}: page {page}", fetched.json())
    letters = answer.need("letters", answer.rows("letters"), "a list")
    total = answer.integer("total", 0, MAX_LETTERS)
    return letters, answer.need("total", total, f"a number up to {MAX_LETTERS}")


def _is_busy(fetched: Fetched) -> bool:
    """Return True if the site reports under status 200 that it is busy."""
    return b'"busy"' in fetched.body


def _fetch_letter(native_id: str, posted: dt.datetime, fetcher: Fetcher) -> Item:
    try:
        page = fetcher.get("toy", f"/letter/{native_id}", is_busy=_is_busy)
        letter = Fields.of(f"toy: {native_id}", page.json())
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(native_id, error)
    except SourceChanged as error:
        return Drop(native_id, "parse_error", f"no letter: {error}")
    text, title = letter.text("text"), letter.text("title")
    if text is None or title is None:
        return Drop(native_id, "parse_error", "no text, or no title")
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
        attribution=letter.text("town") or "a town that does not exist",
    )
