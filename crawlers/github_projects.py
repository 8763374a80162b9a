"""Python files that some well-known projects added or rewrote in a month.

From https://github.com, by git alone (no API): a mirror of each repository in
``github_projects.txt`` is kept in the scratch folder. A month's files are those that differ between
the last first-parent commit before the month and the last one before its end: files that were
added, and files of which more than half has changed; renamed files are not new.

``event_time`` is the committer date of the newest first-parent commit of the month that touched the
file (a merge counts when it was merged); should that commit claim a date outside the month, the
date of the month's last commit. Quirks: dates are the committer's claim; history that was rewritten
before the mirror was made is not seen; robots.txt is not asked, since git is how GitHub offers
repositories to programs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote

from core.errors import ItemUnavailable
from core.month import Month
from crawlers.contract import CrawlContext, Document, Drop, DropReason, SourceInfo
from crawlers.git import Git
from crawlers.git_mirror import REGULAR_MODES, BlobReader, Change, Mirror, Work, open_mirror
from crawlers.source_code import LICENCE_FILE, changed_ratio, find_licence, read_source

INFO = SourceInfo(
    name="github_projects",
    title="GitHub projects: files added or rewritten",
    licence="MIT OR BSD-2-Clause OR BSD-3-Clause",
    language="code:python",
    category="code",
    sites={"github": "https://github.com"},
    request_interval_s=2.0,
)
PROJECTS = Path(__file__).with_name("github_projects.txt")
FILES = "*.py"  # as git matches paths: in any folder
MAX_FILES = 50  # of one repository and month, so that no project is most of the month
MIN_CHANGED_RATIO = 0.5


def fetch_month(month: Month, context: CrawlContext) -> Iterator[Document | Drop]:
    """Yield the files of all projects, project by project, in an order drawn with the seed.

    A limit is spread evenly over the projects.

    Raises:
        SourceUnavailable: the site fails in a way that may pass; mirrors so far are kept.
        StorageError: a mirror in the scratch folder is damaged.
    """
    settings, projects = context.settings, read_projects()
    pace_s = settings.request_interval_s
    pace_s = INFO.request_interval_s if pace_s is None else pace_s
    agent = f"tidemark (+{settings.contact}) git"
    git = Git(settings.scratch / "git", context.fetcher.base_url("github"), agent, pace_s)
    limit = MAX_FILES if context.limit is None else -(-context.limit // len(projects))
    for project in projects:
        try:
            mirror = open_mirror(git, project, month.end)
            yield from _Visit(project, month, mirror, context.seed).items(min(limit, MAX_FILES))
        except ItemUnavailable as error:
            yield Drop(project, cast(DropReason, error.reason), str(error))


def read_projects() -> list[str]:
    """Return the monitored repositories as ``owner/name``."""
    lines = PROJECTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@dataclass(frozen=True)
class _Visit:
    project: str
    month: Month
    mirror: Mirror
    seed: int

    def items(self, max_files: int) -> Iterator[Document | Drop]:
        work = self.mirror.work(self.month.start, self.month.end, FILES, LICENCE_FILE)
        if work is None:
            return
        with self.mirror.blobs() as blobs:
            licence_files = [blobs.read(oid) or b"" for oid in work.top_oids]
            licence = find_licence([file.decode("utf-8", "replace") for file in licence_files])
            if licence is None:
                raise ItemUnavailable("licence", f"neither MIT nor BSD at {work.head.oid}")
            num_kept = 0
            for change in sorted(work.changes, key=self._draw):
                item: Document | Drop
                try:
                    if num_kept == max_files:
                        raise ItemUnavailable("sample_cap", f"{num_kept} files are kept already")
                    item = self._document(change, blobs, work, licence)
                    num_kept += 1
                except ItemUnavailable as error:
                    native_id = f"{self.project}:{change.path}"
                    item = Drop(native_id, cast(DropReason, error.reason), str(error))
                yield item

    def _draw(self, change: Change) -> bytes:
        """Where a file comes in the sample: at random, but always the same."""
        key = f"{self.seed}/{self.project}/{self.month}/{change.path}"
        return hashlib.sha256(key.encode()).digest()

    def _document(self, change: Change, blobs: BlobReader, work: Work, licence: str) -> Document:
        if change.mode not in REGULAR_MODES:
            raise ItemUnavailable("unsafe_path", f"a link (mode {change.mode}), not a file")
        text = read_source(change.path, blobs.read(change.new_oid))
        ratio = None
        if change.status == "M":
            old = blobs.read(change.old_oid)
            if old is None:
                raise ItemUnavailable("too_large", "its version before the month")
            ratio = changed_ratio(old.decode("utf-8-sig", "replace"), text)
            if ratio.value <= MIN_CHANGED_RATIO:
                raise ItemUnavailable("outside_month", f"changed by {ratio.value:.0%} only")
        commit = work.touches[change.path]
        committed_at = (commit if commit.committed_at in self.month else work.head).committed_at
        page = f"{self.project}/blob/{work.head.oid}/{quote(change.path)}"
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
            licence=licence,
            attribution=f"{self.project} contributors",
            cluster_id=f"repo:{self.project}",
            category=INFO.category,
            language=INFO.language,
            extra={
                "commit": commit.oid,
                "authored_at": commit.authored_at.isoformat(),
                "changed_ratio": ratio and round(ratio.value, 6),
                "is_lower_bound": ratio is not None and ratio.is_lower_bound,
                "old_blob": ratio and change.old_oid,
                "initial_import": work.is_initial,
            },
        )
