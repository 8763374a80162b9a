"""Source files that well-known projects added or rewrote in a month.

The files are read from https://github.com with git, without the API. The scratch folder contains a
mirror of each repository in ``github_projects.txt`` (75 as shipped; users may edit the list). Two
commits are compared: the last first-parent commit before the month, and the last one before the
month's end. Added files are kept, and files of which more than half has changed. Renamed files do
not count as added. ``event_time`` is the committer date of the month's newest first-parent commit
that touched the file (for a merge: the date of merging). If that date is outside the month, the
date of the month's last commit replaces it. Committers can set these dates freely. ``extra`` has
the author's date. A renamed repository is found by its old name, which remains in the ids. Of two
names with the same last commit, the first in the list counts. History that was rewritten before the
mirror was cloned is missing. robots.txt is not checked, since GitHub offers repositories to
programs through git.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.errors import DiskFull, ItemFailed, ItemUnavailable, SourceUnavailable, StorageError
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
from crawlers.git.binary import Git
from crawlers.git.mirror import REGULAR_MODES, BlobReader, Change, Work, open_mirror, quote_path
from crawlers.text.code import (
    LANGUAGES,
    LICENCE_FILE,
    changed_ratio,
    find_licence,
    language_of,
    read_source,
)
from extras.github import api as github_api

INFO = SourceInfo(
    name="github_projects",
    title="GitHub projects: files added or rewritten",
    licence="MIT OR BSD-2-Clause OR BSD-3-Clause",
    language="code:python",
    category="code",
    sites={"github": "https://github.com"},
    request_interval_s=2.0,
    monthly_bytes=35_000_000,
    whole_months=None,
)
PROJECTS = Path(__file__).with_name("github_projects.txt")
FILES = tuple(f"*{suffix}" for suffix in LANGUAGES)  # git path patterns, which match in any folder
MAX_FILES = 50  # maximum per repository and month, so that no project dominates a month
MIN_CHANGED_RATIO = 0.5
FAILURES_TO_STOP = 3  # after this many failed repositories in a row, the site counts as failed


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield one file of each project, then a second one, and so on, in seeded random order."""
    git = _git(context)
    quota = context.quota()
    visits: dict[str, _Visit] = {}  # by the month's last commit
    gone: SourceUnavailable | None = None
    with contextlib.ExitStack() as stack:
        try:
            for outcome in _visit_all(git, month, context, stack):
                if not isinstance(outcome, _Visit):
                    yield outcome
                    continue
                first = visits.setdefault(outcome.work.head.oid, outcome)
                if first is not outcome:
                    yield Repeat(outcome.project, f"another name of {first.project}")
        except SourceUnavailable as error:
            gone = error
        order = sorted(visits.values(), key=lambda visit: context.rank(f"{month}/{visit.project}"))
        yield from _take_turns([visit.items(quota) for visit in order])
    if gone is not None:
        raise gone


def read_projects() -> list[str]:
    """Return the monitored repositories as ``owner/name``."""
    lines = PROJECTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _git(context: CrawlContext) -> Git:
    """Return git with the contact and the pace of requests that GitHub gets."""
    settings = context.settings
    pace_s = context.settings.request_interval_s
    pace_s = INFO.request_interval_s if pace_s is None else pace_s
    agent = f"tidemark (+{settings.contact}) git"
    return Git(settings.scratch / "git", context.fetcher.base_url("github"), agent, pace_s)


def _visit_all(
    git: Git, month: Period, context: CrawlContext, stack: contextlib.ExitStack
) -> Iterator[_Visit | Drop | Failure]:
    """Yield each project's work of a month; stop if several hosts in a row fail."""
    num_failed = 0
    for project in read_projects():
        try:
            visit = _visit(project, git, month, context, stack)
            if visit:
                yield visit
        except ItemUnavailable as error:
            yield missing_item(project, error)
        except DiskFull:
            raise
        except StorageError as error:
            yield Failure(project, "damaged_answer", str(error))
        except SourceUnavailable as error:
            num_failed += 1
            if num_failed == FAILURES_TO_STOP:
                raise
            yield missing_item(project, ItemFailed("network", str(error)))
            continue
        num_failed = 0


def _visit(
    project: str, git: Git, month: Period, context: CrawlContext, stack: contextlib.ExitStack
) -> _Visit | None:
    """Return a project's work of a month; None if it has none; raise one error for no licence."""
    mirror = open_mirror(git, project, month.end, context.fetcher.revalidates)
    work = mirror.work(month.start, month.end, FILES, LICENCE_FILE)
    if work is None:
        return None
    blobs = stack.enter_context(mirror.blobs())
    licence_files = [blobs.read(oid) or b"" for oid in work.top_oids]
    licence = find_licence([file.decode("utf-8", "replace") for file in licence_files])
    if licence is None:
        raise ItemUnavailable("licence", f"neither MIT nor BSD at {work.head.oid}")
    return _Visit(project, month, context, work, blobs, licence)


def _take_turns(queues: list[Iterator[Item]]) -> Iterator[Item]:
    """Alternate between queues: yield items of one queue up to a document, then of the next."""
    while queues:
        for queue in list(queues):
            for item in queue:
                yield item
                if isinstance(item, Document):
                    break
            else:
                queues.remove(queue)


@dataclass(frozen=True)
class _Visit:
    project: str
    month: Period
    context: CrawlContext
    work: Work
    blobs: BlobReader
    licence: str

    def items(self, quota: Quota) -> Iterator[Item]:
        paths = {change.path: change for change in self.work.changes}
        drawn = sorted(paths, key=lambda p: self.context.rank(f"{self.project}/{self.month}/{p}"))
        makers = {path: partial(self._document, paths[path]) for path in drawn}
        yield from github_api.keep_files(self.project, makers, quota, MAX_FILES)

    def _document(self, change: Change) -> Document:
        """Return a changed file as a document; raise an error if it changed too little."""
        if change.mode not in REGULAR_MODES:
            raise ItemUnavailable("unsafe_path", f"a link (mode {change.mode}), not a file")
        work = self.work
        text = read_source(change.path, self.blobs.read(change.new_oid))
        ratio = None
        if change.status == "M":
            old = self.blobs.read(change.old_oid)
            if old is None:
                raise ItemUnavailable("too_large", "its version before the month")
            ratio = changed_ratio(old.decode("utf-8-sig", "replace"), text)
            if ratio.value <= MIN_CHANGED_RATIO:
                raise ItemUnavailable("outside_month", f"changed by {ratio.value:.0%} only")
        commit = work.touches[change.path]
        committed_at = (commit if commit.committed_at in self.month else work.head).committed_at
        page = f"{self.project}/blob/{work.head.oid}/{quote_path(change.path)}"
        return Document(
            native_id=f"{self.project}:{change.path}",
            version_id=change.new_oid,
            text=text,
            title=change.path,
            url=f"{INFO.sites['github']}/{page}",
            event_time=committed_at,
            date_kind="committed",
            text_as_of=committed_at,
            retrieved_at=work.retrieved_at,
            licence=self.licence,
            attribution=f"{self.project} contributors",
            cluster_id=f"repo:{self.project}",
            language=f"code:{language_of(change.path)}",
            extra={
                "commit": commit.oid,
                "authored_at": commit.authored_at.isoformat(),
                "changed_ratio": ratio and round(ratio.value, 6),
                "is_lower_bound": ratio is not None and ratio.is_lower_bound,
                "old_blob": ratio and change.old_oid,
                "initial_import": work.is_initial,
            },
        )
