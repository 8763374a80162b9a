"""READMEs of repositories that are trending on GitHub, as of the end of the month.

https://github.com/trending/python lists the repositories that are trending now, not earlier ones.
So this page is used for a month only until RECENT_DAYS days after the month's first day. The
monthly list (``?since=monthly``) is requested first. If robots.txt disallows URLs with ``since=``
(as in 2026-11), the daily list is read, which is allowed. A list without rows is an error, not an
empty month. Older months use GH Archive: the NUM_STARRED repositories, of any language, that
received most stars in some hours of the month. ``extra["list"]`` is ``monthly``, ``daily`` or
``archive``. README and licence are those of a repository's last commit before the month's end.
``event_time`` is that commit's committer date. A repository whose last commit is older than the
month is dropped. Of two names with the same last commit (a renamed repository), the first counts.
Reading a repository takes up to five requests. Without a token, only
MAX_REPOSITORIES_WITHOUT_TOKEN are read, and all others become drops.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree, html

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceError, SourceUnavailable
from core.month import Month
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Regime,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.git.mirror import REGULAR_MODES
from crawlers.text.code import LICENCE_FILE, find_licence, find_readme, read_readme
from crawlers.web.fetcher import Fetcher
from extras.github import api as github_api
from extras.github.api import GitHubApi, TreeEntry

ARCHIVE = "gharchive"
RECENT_DAYS = 40
NUM_STARRED = 50
MAX_REPOSITORIES_WITHOUT_TOKEN = 12
INFO = SourceInfo(
    name="github_trending",
    title="GitHub: READMEs of trending repositories",
    licence="MIT OR BSD-2-Clause OR BSD-3-Clause",
    language="en",
    category="documentation",
    sites={
        "github": "https://github.com",
        github_api.SITE: github_api.SITES[github_api.SITE],
        ARCHIVE: "https://data.gharchive.org",
    },
    regimes=(
        Regime(Month("2025-05"), "gharchive-losses", "the archive loses events since 2025-05-23"),
        Regime(
            Month("2025-10"),
            "gharchive-payloads",
            "payloads are smaller since 2025-10-07; of 2025-10-09 to 13, 1 % of events are there",
        ),
        Regime(Month("2026-02"), "gharchive-few-stars", "10 to 20 % of the stars are there"),
    ),
    whole_months="GitHub's list is of a month",
)
PAGE = "/trending/python"

# GH Archive (https://www.gharchive.org) has GitHub's public events in one gzip file of JSON lines
# per hour (``2024-04-01-5.json.gz``; hour without leading zero), of some 10 to 100 MB. A star is a
# ``WatchEvent``. NUM_HOURS random hours of a month are read. The archive has lost events since
# 2025-05-24 (issues 310, 312 and 320 of igrigorik/gharchive.org), and stars more than others: in
# 2026 the number of all events is as before. So hours are judged by their stars: one with less than
# MIN_SHARE of the stars of the fullest hour that was drawn, or from LOSSES_SINCE on of
# USUAL_STARS, is not used. A month without any usable hour is refused.
NUM_HOURS = 6
MIN_SHARE = 0.1
USUAL_STARS = 8_000  # per hour, from 2025-01 to 2025-05: 180,000 to 197,000 a day
LOSSES_SINCE = Month("2025-05")
MAX_HOUR_BYTES = 256 * 2**20  # compressed
MAX_UNPACKED_BYTES = 4 * 2**30  # maximum decompressed size; files are read line by line
MAX_LINE_BYTES = 8 * 2**20
_HOUR = dt.timedelta(hours=1)
_MARK = b'"WatchEvent"'

Rows = list[str | Drop | Failure]


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield READMEs in the list's order; samples, and crawls without a token, in random order."""
    api = GitHubApi(context.fetcher)
    quota = context.quota()
    is_recent = dt.datetime.now(dt.UTC) - month.start <= dt.timedelta(days=RECENT_DAYS)
    period, rows = (
        _fetch_list(context.fetcher)
        if is_recent
        else ("archive", list(most_starred(month, context, NUM_STARRED)))
    )
    names: list[str] = []
    heads: dict[str, str] = {}  # commit -> the first name with this commit
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            yield row
        elif github_api.NAME.fullmatch(row) is None:
            yield Drop(f"row:{number}", "parse_error", f"no repository: {row[:100]!r}")
        elif row in names:
            yield Repeat(row, "listed before")
        else:
            names.append(row)
    if context.is_sampled or not api.has_token:
        names.sort(key=context.rank)
    for number, name in enumerate(names):
        if not api.has_token and number >= MAX_REPOSITORIES_WITHOUT_TOKEN:
            yield Drop(name, "sample_cap", f"no token: {number} repositories are enough")
            continue
        if quota.is_full:
            yield Drop(name, "sample_cap")
            continue
        try:
            yield quota.take(_fetch_readme(api, name, month, period, heads))
        except SourceError as error:
            yield github_api.missing_repository(name, error)


def _fetch_list(fetcher: Fetcher) -> tuple[str, Rows]:
    """Return the list's name (``monthly`` or ``daily``) and the ``owner/name`` of each row."""
    period = "monthly"
    try:
        page = fetcher.get("github", PAGE, {"since": "monthly"})
    except ItemUnavailable as error:
        if error.reason != "robots":
            raise SourceChanged(f"the list of trending repositories is gone: {error}") from error
        period = "daily"
        try:
            page = fetcher.get("github", PAGE)
        except ItemUnavailable as closed:
            raise SourceChanged(f"the list of trending repositories is gone: {closed}") from closed
    links = read_links(page.body.decode("utf-8", "replace"))
    if not links:
        raise SourceChanged(f"{page.url}: no row (article.Box-row) in the list; see its HTML")
    return period, [link.removeprefix("/") for link in links]


def read_links(page: str) -> list[str]:
    """Return the heading's link of each row of a trending page; '' for a row without a link."""
    try:
        tree = html.document_fromstring(page.encode(), html.HTMLParser(encoding="utf-8"))
    except (etree.ParserError, ValueError):  # not HTML
        return []
    rows = tree.xpath("//article[contains(concat(' ', @class, ' '), ' Box-row ')]")
    return [next(filter(None, row.xpath(".//h2//a/@href")), "") for row in rows]


def _fetch_readme(
    api: GitHubApi, name: str, month: Month, period: str, heads: dict[str, str]
) -> Document | Repeat:
    """Return the README of a repository's last commit in the month."""
    commit = api.last_commit(name, None, month.end)
    first = heads.setdefault(commit.sha, name)
    if first != name:
        return Repeat(name, f"another name of {first}: both have the commit {commit.sha}")
    if commit.committed_at not in month:
        raise ItemUnavailable("outside_month", f"no commit since {commit.committed_at:%Y-%m-%d}")
    files = [entry for entry in api.tree(name, commit.tree) if entry.mode in REGULAR_MODES]
    licence = find_licence(_read_licences(api, name, files))
    if licence is None:
        raise ItemUnavailable("licence", f"neither MIT nor BSD at {commit.sha}")
    path = find_readme([entry.path for entry in files])
    if path is None:
        raise ItemUnavailable("empty", "no README in the top folder")
    entry = next(entry for entry in files if entry.path == path)
    content, retrieved_at = api.blob(name, entry)
    return Document(
        native_id=name,
        version_id=entry.sha,
        text=read_readme(path, content),
        is_plain=True,
        title=name,
        url=f"https://github.com/{name}/blob/{commit.sha}/{path}",
        event_time=commit.committed_at,
        date_kind="committed",
        text_as_of=commit.committed_at,
        retrieved_at=retrieved_at,
        licence=licence,
        attribution=f"{name} contributors",
        cluster_id=f"repo:{name}",
        extra={"commit": commit.sha, "list": period},
    )


def _read_licences(api: GitHubApi, name: str, files: list[TreeEntry]) -> list[str]:
    own = [entry for entry in files if LICENCE_FILE.fullmatch(entry.path)]
    return [api.blob(name, entry)[0].decode("utf-8", "replace") for entry in own]


def most_starred(month: Month, context: CrawlContext, count: int) -> Iterator[str | Drop | Failure]:
    """Yield the most starred repositories' names, then a drop or failure per unreadable hour."""
    stars_of: dict[str, Counter[Star]] = {}
    lost: list[Drop | Failure] = []
    hours = draw_hours(month, context)
    for hour in hours:
        name = f"{hour:%Y-%m-%d}-{hour.hour}"
        try:
            page = context.fetcher.get(ARCHIVE, f"/{name}.json.gz", max_bytes=MAX_HOUR_BYTES)
            stars_of[name] = Counter(read_stars(page.body))
        except (ItemUnavailable, ItemFailed) as error:
            lost.append(missing_item(f"hour:{name}", error))
    usual = USUAL_STARS if month >= LOSSES_SINCE else 1
    usual = max([usual, *(stars.total() for stars in stars_of.values())])
    for name, stars in list(stars_of.items()):
        if stars.total() < MIN_SHARE * usual:
            detail = (
                f"{stars.total()} stars in an hour, of some {usual}: GH Archive lost the others"
            )
            lost.append(Drop(f"hour:{name}", "damaged", detail))
            del stars_of[name]
    if len(lost) == len(hours):
        raise SourceUnavailable(f"GH Archive gave none of {len(hours)} hours, such as {lost[0]}")
    yield from rank_names(sum(stars_of.values(), Counter()))[:count]
    yield from lost


def rank_names(stars: Counter[Star]) -> list[str]:
    """Return the repositories' names, most stars first; of two names, the one that came later."""
    names = {star.repository: star.name for star in stars}
    total: Counter[int | str] = Counter()
    for star, number in stars.items():
        total[star.repository] += number
    return [names[each] for each in sorted(names, key=lambda each: (-total[each], names[each]))]


def draw_hours(month: Month, context: CrawlContext) -> list[dt.datetime]:
    """Return NUM_HOURS hours of a month, drawn with the seed, in chronological order."""
    hours = [month.start + n * _HOUR for n in range((month.end - month.start) // _HOUR)]
    return sorted(sorted(hours, key=lambda hour: context.rank(f"{hour:%Y-%m-%dT%H}"))[:NUM_HOURS])


class Star(NamedTuple):
    """A star event's repository; ``repository`` is its id, or its name if it has no id."""

    repository: int | str
    name: str


def read_stars(packed: bytes) -> Iterator[Star]:
    """Yield the star events; raise ItemUnavailable if the file is unusable."""
    left = MAX_UNPACKED_BYTES
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as lines:
            while line := lines.readline(MAX_LINE_BYTES):
                left -= len(line)
                if left < 0:
                    raise ItemUnavailable(
                        "too_large", f"unpacks to over {MAX_UNPACKED_BYTES} bytes"
                    )
                star = _starred(line) if _MARK in line else None
                if star:
                    yield star
    except (OSError, EOFError, zlib.error) as error:
        raise ItemUnavailable("bad_archive", f"damaged gzip: {error}") from error


def _starred(line: bytes) -> Star | None:
    """Return the repository that an event of GH Archive stars; None for other events."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("type") != "WatchEvent":
        return None
    repository = event.get("repo")
    if not isinstance(repository, dict):
        return None
    name = repository.get("name")
    if not isinstance(name, str):
        return None
    number = repository.get("id")
    return Star(number if type(number) is int else name, name)
