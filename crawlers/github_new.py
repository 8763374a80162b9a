"""Source files of repositories that were new on GitHub in the month, as they stood at its end.

The month is that of the repository's creation (``created_at``). The search gives 1,000 results of
a query, so its window is halved until it holds no more, down to one second; what a second has
beyond that cannot be listed, and is counted as one drop. The text is that of the default branch's
last commit before the month's end, never of today, and so is the licence: today's is only what is
searched for. A history that ends before the month was written elsewhere, before: it is dropped.

A repository costs two requests: without a token (``TIDEMARK_TOKENS__GITHUB_API``) GitHub allows 60
an hour, so MAX_REPOSITORIES_WITHOUT_TOKEN are taken, at random, and the rest is left out, counted.
Only repositories that are still there are found: survivors.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, SourceError
from core.month import Month
from crawlers import github_api
from crawlers.archives import read_files
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
from crawlers.github_api import Commit, GitHubApi, Repository, read_repository
from crawlers.source_code import LICENCE_FILE, blob_id, find_licence, language_of, read_source

INFO = SourceInfo(
    name="github_new",
    title="GitHub: files of new repositories",
    licence="MIT OR BSD-2-Clause OR BSD-3-Clause",
    language="code:python",
    category="code",
    sites=github_api.SITES,
    request_interval_s=1.0,
    monthly_bytes=35_000_000,
)
LANGUAGES = ("python",)  # as the search names them and ``source_code.LANGUAGES`` does
LICENCES = ("mit", "bsd-2-clause", "bsd-3-clause")  # as the search names them
MAX_FILES = 10  # of one repository, so that none is much of the month
MAX_FILE_BYTES = 10**6
MAX_REPOSITORIES_WITHOUT_TOKEN = 25
_SECOND = dt.timedelta(seconds=1)


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Item]:
    """Yield the files of new repositories, by creation; a sample comes in the order drawn.

    Raises:
        SourceUnavailable: GitHub does not answer, or its limit lasts; what came before is kept.
        SourceChanged: an answer is not as documented.
    """
    api, quota = GitHubApi(context.fetcher), context.quota()
    found: dict[int, Repository] = {}
    for item in _list_all(api, month):
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
            yield from _Visit(api, repository, month, context).items(quota)


def _list_all(api: GitHubApi, month: Month) -> Iterator[Repository | Drop | Failure]:
    for language in LANGUAGES:
        for licence in LICENCES:
            terms = f"language:{language} license:{licence} fork:false archived:false size:>10"
            yield from _list_window(api, terms, month, month.start, month.end)


def _list_window(
    api: GitHubApi, terms: str, month: Month, start: dt.datetime, end: dt.datetime
) -> Iterator[Repository | Drop | Failure]:
    """Yield what was created from ``start`` up to ``end``, halved where that is too much."""
    window = f"{start:%Y-%m-%dT%H:%M:%SZ}..{end - _SECOND:%Y-%m-%dT%H:%M:%SZ}"
    query = f"created:{window} {terms}"
    try:
        first = api.search(query, 1)
        if first.total > github_api.MAX_RESULTS and end - start > _SECOND:
            half = start + (end - start) // 2
            half = half.replace(microsecond=0)
            yield from _list_window(api, terms, month, start, half)
            yield from _list_window(api, terms, month, half, end)
            return
        if first.total > github_api.MAX_RESULTS:
            detail = f"{first.total} in one second, of which the search lists a part"
            yield Drop(f"search:{query}", "sample_cap", detail)
        num_pages = -(-min(first.total, github_api.MAX_RESULTS) // github_api.PER_PAGE)
        yield from _read_rows(first.items, month)
        for page in range(2, num_pages + 1):
            yield from _read_rows(api.search(query, page).items, month)
    except ItemFailed as error:
        # The other windows may do better; what this one lacks makes the month partial.
        yield missing_item(f"search:{query}", error)


def _read_rows(rows: list[object], month: Month) -> Iterator[Repository | Drop]:
    for row in rows:
        try:
            repository = read_repository(row)
        except SourceChanged as error:
            name = row.get("full_name") if isinstance(row, dict) else None
            yield Drop(f"search:{name or '?'}"[:200], "parse_error", str(error))
            continue
        if repository.created_at in month:
            yield repository
        else:
            yield Drop(repository.name, "outside_month", repository.created_at.isoformat())


@dataclass(frozen=True)
class _Visit:
    api: GitHubApi
    repository: Repository
    month: Month
    context: CrawlContext

    def items(self, quota: Quota) -> Iterator[Item]:
        """Yield the repository's files, drawn by the seed, or why there are none."""
        name = self.repository.name
        try:
            commit = self.api.last_commit(name, self.repository.branch, self.month.end)
            if commit.committed_at not in self.month:
                moment = commit.committed_at.isoformat()
                raise ItemUnavailable("outside_month", f"its last commit claims {moment}")
            fetched = self.api.tarball(name, commit.sha)
            files = read_files(fetched.body, _is_wanted, MAX_FILE_BYTES)
            licence = _licence_of(files)
            if licence is None:
                raise ItemUnavailable("licence", f"neither MIT nor BSD at {commit.sha}")
            paths = [path for path in files if language_of(path) in LANGUAGES]
            if not paths:
                raise ItemUnavailable("empty", f"no file in {' or '.join(LANGUAGES)}")
        except SourceError as error:
            yield github_api.missing_repository(name, error)
            return
        make = _Maker(self.repository, commit, licence, fetched.retrieved_at)
        yield from self._draw(paths, files, make, quota)

    def _draw(
        self, paths: list[str], files: dict[str, bytes | None], make: _Maker, quota: Quota
    ) -> Iterator[Item]:
        num_kept, limit = 0, self.context.limit
        # A small sample comes from several repositories: at least ten, where there are.
        most = MAX_FILES if limit is None else min(MAX_FILES, max(1, limit // 10))
        paths.sort(key=lambda path: self.context.rank(f"{self.repository.id}:{path}"))
        for path in paths:
            native_id = f"{self.repository.name}:{path}"
            if quota.is_full or num_kept == most:
                yield Drop(native_id, "sample_cap", f"{num_kept} files of it are kept")
                continue
            try:
                document = make.document(path, files[path])
            except ItemUnavailable as error:
                yield missing_item(native_id, error)
                continue
            num_kept += 1
            yield quota.take(document)


def _is_wanted(path: str) -> bool:
    return _is_licence(path) or language_of(path) in LANGUAGES


def _is_licence(path: str) -> bool:
    return LICENCE_FILE.fullmatch(path) is not None  # of the top folder: no slash is in it


def _licence_of(files: dict[str, bytes | None]) -> str | None:
    own = [content or b"" for path, content in files.items() if _is_licence(path)]
    return find_licence([content.decode("utf-8", "replace") for content in own])


@dataclass(frozen=True)
class _Maker:
    repository: Repository
    commit: Commit
    licence: str
    retrieved_at: dt.datetime

    def document(self, path: str, content: bytes | None) -> Document:
        text = read_source(path, content)
        name = self.repository.name
        return Document(
            native_id=f"{name}:{path}",
            version_id=blob_id(content or b""),
            text=text,
            title=path,
            url=f"https://github.com/{name}/blob/{self.commit.sha}/{quote(path)}",
            event_time=self.repository.created_at,
            date_kind="created",
            text_as_of=self.commit.committed_at,
            retrieved_at=self.retrieved_at,
            licence=self.licence,
            attribution=f"{name} contributors",
            cluster_id=f"repo:{name}",
            category=INFO.category,
            language=f"code:{language_of(path)}",
            extra={"commit": self.commit.sha, "repository_id": self.repository.id},
        )
