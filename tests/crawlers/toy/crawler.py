"""Letters of a town that does not exist: a whole source, as an example to begin with.

From https://letters.invalid: ``/letters`` lists a month page by page, ``/letter/<id>`` has a text.
The month is that of the day on which a letter was posted, which is when its text is from.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import SourceUnavailable
from core.month import Month
from crawlers.apis.fields import Fields, read_item
from crawlers.contract import CrawlContext, Document, Drop, Item, SourceInfo
from crawlers.web.fetcher import Fetched

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
    yield from context.sample_list(
        _list_letters(month, context),
        lambda letter: str(letter.text("id")),
        lambda letter: [_fetch_letter(letter, context)],
    )


def _list_letters(month: Month, context: CrawlContext) -> Iterator[Fields | Drop]:
    page = 1
    seen: set[str] = set()
    total = 1
    while len(seen) < total:
        rows, total = _read_page(month, page, context)
        if not rows and len(seen) < total:
            raise SourceUnavailable(f"toy {month}: page {page} is empty, {total} letters expected")
        for row in rows:
            name = row.text("id") or row.where
            seen.add(name)
            if row.text("id") is None or row.time("posted") is None:
                yield Drop(name, "parse_error", "no id, or no date of posting")
            else:
                yield row
        page += 1


def _read_page(month: Month, page: int, context: CrawlContext) -> tuple[list[Fields], int]:
    params = {"month": str(month), "page": page}
    fetched = context.fetcher.get("toy", "/letters", params, is_busy=_is_busy)
    answer = Fields.of(f"toy {month}: page {page}", fetched.json())
    letters = answer.need("letters", answer.rows("letters"), "a list")
    total = answer.integer("total", 0, MAX_LETTERS)
    return letters, answer.need("total", total, f"a number up to {MAX_LETTERS}")


def _is_busy(fetched: Fetched) -> bool:
    """Return True if the site reports under status 200 that it is busy."""
    return b'"busy"' in fetched.body


def _fetch_letter(listed: Fields, context: CrawlContext) -> Item:
    name = str(listed.text("id"))

    def read() -> Item:
        page = context.fetcher.get("toy", f"/letter/{name}", is_busy=_is_busy)
        letter = Fields.of(f"toy: {name}", page.json())
        posted = listed.need("posted", listed.time("posted"), "a time")
        return Document(
            native_id=name,
            version_id=None,
            text=letter.need("text", letter.text("text"), "a text"),
            title=letter.need("title", letter.text("title"), "a text"),
            url=f"{INFO.sites['toy']}/letter/{name}",
            event_time=posted,
            date_kind="published",
            text_as_of=posted,
            retrieved_at=page.retrieved_at,
            licence=INFO.licence,
            attribution=letter.text("town") or "a town that does not exist",
        )

    return read_item(name, read)
