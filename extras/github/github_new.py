"""Source files of repositories that were new on GitHub in the month, as of the month's end.

A repository belongs to the month of its creation (``created_at``). A search returns at most 1,000
results. So its time window is halved until it has fewer results, down to one second. Results beyond
1,000 in one second cannot be listed, and count as one drop. Text and licence are those of the
default branch's last commit before the month's end. The search, however, selects repositories by
their current licence. A repository whose last commit is older than the month is dropped. Reading a
repository takes two requests. Without a token (``TIDEMARK_TOKENS__GITHUB_API``), GitHub allows 60
requests an hour. Then MAX_REPOSITORIES_WITHOUT_TOKEN random repositories are read, and all others
become drops. Deleted repositories are missing (survivorship bias).
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import quote

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceError
from core.month import Period
from crawlers.contract import (
    CrawlContext,
    Document,
    Drop,
    Failure,
    Item,
    Quota,
    Repeat,
    SourceInfo,
    missing_item,
)
from crawlers.text import code
from crawlers.text.archives import read_files
from crawlers.text.code import LICENCE_FILE, blob_id, find_licence, read_source
from extras.github import api as github_api
from extras.github.api import Commit, GitHubApi, Repository, read_repository

INFO = SourceInfo(
    name="github_new",
    title="GitHub: files of new repositories",
    licence="MIT OR BSD-2-Clause OR BSD-3-Clause",
    language="code:python",
    category="code",
    sites=github_api.SITES,
    monthly_bytes=35_000_000,
    subset_kind="programming language",
    subset_names=tuple(sorted({*code.LANGUAGES.values(), "markdown"})),
    whole_months=None,
)
DEFAULT_LANGUAGE = "python"
LANGUAGES = {**code.LANGUAGES, ".md": "markdown"}  # by suffix; names of GitHub's search
LICENCES = ("mit", "bsd-2-clause", "bsd-3-clause")  # licences, as named in GitHub's search
MAX_FILES = 10  # maximum per repository, so that no repository dominates a month
MAX_FILE_BYTES = 10**6
MAX_REPOSITORIES_WITHOUT_TOKEN = 25
MAX_SEARCHES = 5_000  # maximum per month; about 250 are usual
_SECOND = dt.timedelta(seconds=1)


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield files by creation time of their repositories; samples are in random order."""
    api = GitHubApi(context.fetcher)
    quota = context.quota()
    found: dict[int, Repository] = {}
    for item in _list_all(api, month, context):
        if not isinstance(item, Repository):
            yield item
        elif item.id in found:
            yield Repeat(item.name, "listed before")
        else:
            found[item.id] = item
    repositories = sorted(found.values(), key=lambda one: (one.created_at, one.id))
    if context.is_sampled or not api.has_token:
        repositories.sort(key=lambda one: context.rank(str(one.id)))
    for number, repository in enumerate(repositories):
        if not api.has_token and number >= MAX_REPOSITORIES_WITHOUT_TOKEN:
            yield Drop(repository.name, "sample_cap", f"no token: {number} repositories are enough")
        elif quota.is_full:
            yield Drop(repository.name, "sample_cap")
        else:
            yield from _visit(api, repository, month, context, quota)


def _list_all(
    api: GitHubApi, month: Period, context: CrawlContext
) -> Iterator[Repository | Drop | Failure]:
    """Yield the repositories of a month, by one search for each licence."""
    searches = itertools.count(1)
    for licence in LICENCES:
        language = f"language:{context.subset or DEFAULT_LANGUAGE}"
        terms = f"{language} license:{licence} fork:false archived:false size:>10"
        for row in _list_window(api, terms, month.start, month.end, searches):
            if not isinstance(row, Repository) or row.created_at in month:
                yield row
            else:
                yield Drop(row.name, "outside_month", row.created_at.isoformat())


def _list_window(
    api: GitHubApi, terms: str, start: dt.datetime, end: dt.datetime, searches: Iterator[int]
) -> Iterator[Repository | Drop | Failure]:
    """Yield the repositories of a time window; halve it if it has too many results."""
    if next(searches) > MAX_SEARCHES:
        raise SourceChanged(
            f"{INFO.name}: more than {MAX_SEARCHES} searches do not list a month; expected windows "
            "with fewer results if they are halved"
        )
    window = f"{start:%Y-%m-%dT%H:%M:%SZ}..{end - _SECOND:%Y-%m-%dT%H:%M:%SZ}"
    query = f"created:{window} {terms}"
    try:
        first = api.search(query, 1)
        if first.total > github_api.MAX_RESULTS and end - start > _SECOND:
            half = start + (end - start) // 2
            half = half.replace(microsecond=0)
            yield from _list_window(api, terms, start, half, searches)
            yield from _list_window(api, terms, half, end, searches)
            return
        if first.total > github_api.MAX_RESULTS:
            detail = f"{first.total} in one second, of which the search lists a part"
            yield Drop(f"search:{query}", "sample_cap", detail)
        num_pages = -(-min(first.total, github_api.MAX_RESULTS) // github_api.PER_PAGE)
        yield from _read_rows(first.items)
        for page in range(2, num_pages + 1):
            yield from _read_rows(api.search(query, page).items)
    except ItemFailed as error:
        # Other time windows may succeed. This failure makes the month partial.
        yield missing_item(f"search:{query}", error)


def _read_rows(rows: list[object]) -> Iterator[Repository | Drop]:
    """Yield the repositories in rows of a search; a Drop for one that cannot be read."""
    for row in rows:
        try:
            yield read_repository(row)
        except SourceChanged as error:
            name = row.get("full_name") if isinstance(row, dict) else None
            yield Drop(f"search:{name or '?'}"[:200], "parse_error", str(error))


def _visit(
    api: GitHubApi, repository: Repository, month: Period, context: CrawlContext, quota: Quota
) -> Iterator[Item]:
    """Yield the files of a repository's last commit in the month, within the quota."""
    name = repository.name
    language = context.subset or DEFAULT_LANGUAGE
    try:
        commit = api.last_commit(name, repository.branch, month.end)
        if commit.committed_at not in month:
            moment = commit.committed_at.isoformat()
            raise ItemUnavailable("outside_month", f"its last commit claims {moment}")
        fetched = api.tarball(name, commit.sha)
        files = read_files(fetched.body, partial(_is_wanted, language), MAX_FILE_BYTES)
        licence = _licence_of(files)
        if licence is None:
            raise ItemUnavailable("licence", f"neither MIT nor BSD at {commit.sha}")
        paths = [path for path in files if _language_of(path) == language]
        if not paths:
            raise ItemUnavailable("empty", f"no file in {language}")
    except SourceError as error:
        yield github_api.missing_repository(name, error)
        return
    make = partial(_document, repository, commit, licence, fetched.retrieved_at)
    paths.sort(key=lambda path: context.rank(f"{repository.id}:{path}"))
    makers = {path: partial(make, path, files[path]) for path in paths}
    # If ``limit`` is set, one repository supplies at most a tenth of the sample's documents.
    limit = context.limit
    most = MAX_FILES if limit is None else min(MAX_FILES, max(1, limit // 10))
    yield from github_api.keep_files(name, makers, quota, most)


def _is_wanted(language: str, path: str) -> bool:
    return _is_licence(path) or _language_of(path) == language


def _language_of(path: str) -> str | None:
    return LANGUAGES.get(PurePosixPath(path).suffix.lower())


def _is_licence(path: str) -> bool:
    return LICENCE_FILE.fullmatch(path) is not None  # the pattern matches only in the top folder


def _licence_of(files: dict[str, bytes | None]) -> str | None:
    own = [content or b"" for path, content in files.items() if _is_licence(path)]
    return find_licence([content.decode("utf-8", "replace") for content in own])


def _document(
    repository: Repository,
    commit: Commit,
    licence: str,
    retrieved_at: dt.datetime,
    path: str,
    content: bytes | None,
) -> Document:
    """Return a file of a repository at a commit as a document."""
    name = repository.name
    return Document(
        native_id=f"{name}:{path}",
        version_id=blob_id(content or b""),
        text=read_source(path, content),
        title=path,
        url=f"https://github.com/{name}/blob/{commit.sha}/{quote(path)}",
        event_time=repository.created_at,
        date_kind="created",
        text_as_of=commit.committed_at,
        retrieved_at=retrieved_at,
        licence=licence,
        attribution=f"{name} contributors",
        cluster_id=f"repo:{name}",
        language=f"code:{_language_of(path)}",
        extra={"commit": commit.sha, "repository_id": repository.id},
    )
