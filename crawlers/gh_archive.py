"""GH Archive: which repositories were starred most in a month, counted in a sample of its hours.

https://www.gharchive.org keeps what GitHub's public timeline said, one gzip file of JSON lines an
hour (``2024-04-01-5.json.gz``; the hour without a leading zero). A star is a ``WatchEvent``. An
hour is some 10 to 100 MB, so a few are drawn by the seed.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator

from core.errors import ItemFailed, ItemUnavailable, SourceUnavailable
from core.month import Month
from crawlers.contract import CrawlContext, Drop, Failure, missing_item

SITE = "gharchive"
BASE_URL = "https://data.gharchive.org"
NUM_HOURS = 6
MAX_HOUR_BYTES = 256 * 2**20  # packed
MAX_UNPACKED_BYTES = 4 * 2**30  # read line by line, never held
MAX_LINE_BYTES = 8 * 2**20
_HOUR = dt.timedelta(hours=1)
_MARK = b'"WatchEvent"'


def most_starred(month: Month, context: CrawlContext, count: int) -> Iterator[str | Drop | Failure]:
    """Yield the names of the most starred repositories, then what became of hours without answer.

    Raises:
        SourceUnavailable: no hour could be read.
    """
    stars: Counter[str] = Counter()
    lost: list[Drop | Failure] = []
    hours = draw_hours(month, context)
    for hour in hours:
        name = f"{hour:%Y-%m-%d}-{hour.hour}"
        try:
            page = context.fetcher.get(SITE, f"/{name}.json.gz", max_bytes=MAX_HOUR_BYTES)
            stars.update(read_stars(page.body))
        except (ItemUnavailable, ItemFailed) as error:
            lost.append(missing_item(f"hour:{name}", error))
    if len(lost) == len(hours):
        raise SourceUnavailable(f"GH Archive gave none of {len(hours)} hours, such as {lost[0]}")
    # By name where the stars are equal, so that the order is always the same.
    for name, _ in sorted(stars.items(), key=lambda pair: (-pair[1], pair[0]))[:count]:
        yield name
    yield from lost


def draw_hours(month: Month, context: CrawlContext) -> list[dt.datetime]:
    """Return NUM_HOURS hours of a month, drawn by the seed, in the order of time."""
    hours = [month.start + n * _HOUR for n in range((month.end - month.start) // _HOUR)]
    return sorted(sorted(hours, key=lambda hour: context.rank(f"{hour:%Y-%m-%dT%H}"))[:NUM_HOURS])


def read_stars(packed: bytes) -> Iterator[str]:
    """Yield the repository of each star in an hour's file; a line that is no event is passed over.

    Raises:
        ItemUnavailable: damaged, or larger than any hour.
    """
    left = MAX_UNPACKED_BYTES
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as lines:
            while line := lines.readline(MAX_LINE_BYTES):
                left -= len(line)
                if left < 0:
                    raise ItemUnavailable(
                        "too_large", f"unpacks to over {MAX_UNPACKED_BYTES} bytes"
                    )
                if _MARK in line and (name := _starred(line)):
                    yield name
    except (OSError, EOFError, zlib.error) as error:
        raise ItemUnavailable("bad_archive", f"damaged gzip: {error}") from error


def _starred(line: bytes) -> str | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("type") != "WatchEvent":
        return None
    repository = event.get("repo")
    name = repository.get("name") if isinstance(repository, dict) else None
    return name if isinstance(name, str) else None
