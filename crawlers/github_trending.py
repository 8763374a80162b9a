"""READMEs of the repositories that trend on GitHub, as they stood at the end of the month.

Which repositories trend, the page https://github.com/trending/python says, and it keeps no history:
it is read until RECENT_DAYS days from a month's first, so in the first days after its end. The list
by month (``?since=monthly``) is asked for first; GitHub's robots.txt has closed addresses with
``since=`` to robots (seen 2026-11), and then the list of the day is taken, which it leaves open. A
list without a row is an alarm, not an empty month. Older months are rebuilt from GH Archive: the
NUM_STARRED repositories, of any language, that were starred most in some hours of the month.
``extra`` says which list it was: ``monthly``, ``daily`` or ``archive``.

``event_time`` is the committer date of the last commit before the month's end; where that is before
the month, nothing was done in it and the repository is dropped. The README and the licence are
those of that commit. What a README's text is, ``crawlers/readme.py`` says. A repository costs up to
five requests: without a token, MAX_REPOSITORIES_WITHOUT_TOKEN are read and the rest is counted.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from core.errors import ItemUnavailable, SourceChanged, SourceError
from core.month import Month
from crawlers import gh_archive, github_api
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat, SourceInfo
from crawlers.git_mirror import REGULAR_MODES
from crawlers.github_api import GitHubApi, TreeEntry
from crawlers.http import Fetcher
from crawlers.readme import find_readme, read_readme
from crawlers.source_code import LICENCE_FILE, find_licence

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
        gh_archive.SITE: gh_archive.BASE_URL,
    },
    request_interval_s=1.0,
)
PAGE = "/trending/python"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}")

Rows = list[str | Drop | Failure]


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the READMEs of the list, as it is ordered; a sample comes in the order drawn.

    Raises:
        SourceUnavailable: GitHub does not answer, or its limit lasts; what came before is kept.
        SourceChanged: the list has no rows.
    """
    api, quota = GitHubApi(context.fetcher), context.quota()
    is_recent = dt.datetime.now(dt.UTC) - month.start <= dt.timedelta(days=RECENT_DAYS)
    period, rows = _fetch_list(context.fetcher) if is_recent else _rebuild_list(month, context)
    names: list[str] = []
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            yield row
        elif _NAME.fullmatch(row) is None:
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
            yield quota.take(_fetch_readme(api, name, month, period))
        except SourceError as error:
            yield github_api.missing_repository(name, error)


def _fetch_list(fetcher: Fetcher) -> tuple[str, Rows]:
    """Return which list it is, and where its rows lead, without the first slash."""
    try:
        period, page = "monthly", fetcher.get("github", PAGE, {"since": "monthly"})
    except ItemUnavailable as error:
        if error.reason != "robots":
            raise SourceChanged(f"the list of trending repositories is gone: {error}") from error
        try:
            period, page = "daily", fetcher.get("github", PAGE)
        except ItemUnavailable as closed:
            raise SourceChanged(f"the list of trending repositories is gone: {closed}") from closed
    links = read_links(page.body.decode("utf-8", "replace"))
    if not links:
        raise SourceChanged(f"{page.url}: no row (article.Box-row) in the list; see its HTML")
    return period, [link.removeprefix("/") for link in links]


def _rebuild_list(month: Month, context: CrawlContext) -> tuple[str, Rows]:
    return "archive", list(gh_archive.most_starred(month, context, NUM_STARRED))


def read_links(page: str) -> list[str]:
    """Return where the heading of each row of a trending page leads."""
    parser = _Rows()
    parser.feed(page)
    parser.close()
    return parser.links


class _Rows(HTMLParser):
    """Finds ``article.Box-row``, and in it the first link of its ``h2``; an empty one stays ''."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self._is_in_row = self._is_in_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        if tag == "article" and "Box-row" in (own.get("class") or "").split():
            self.links.append("")
            self._is_in_row = True
        elif tag == "h2":
            self._is_in_heading = self._is_in_row
        elif tag == "a" and self._is_in_heading and not self.links[-1]:
            self.links[-1] = own.get("href") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_in_row = self._is_in_heading = False
        elif tag == "h2":
            self._is_in_heading = False


def _fetch_readme(api: GitHubApi, name: str, month: Month, period: str) -> Document:
    commit = api.last_commit(name, None, month.end)
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
        title=name,
        url=f"https://github.com/{name}/blob/{commit.sha}/{path}",
        event_time=commit.committed_at,
        date_kind="committed",
        text_as_of=commit.committed_at,
        retrieved_at=retrieved_at,
        licence=licence,
        attribution=f"{name} contributors",
        cluster_id=f"repo:{name}",
        category=INFO.category,
        extra={"commit": commit.sha, "list": period},
    )


def _read_licences(api: GitHubApi, name: str, files: list[TreeEntry]) -> list[str]:
    own = [entry for entry in files if LICENCE_FILE.fullmatch(entry.path)]
    return [api.blob(name, entry)[0].decode("utf-8", "replace") for entry in own]
