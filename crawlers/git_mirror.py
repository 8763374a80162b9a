"""Partial mirrors of git repositories: what changed between two commits, and file contents.

A mirror is a bare clone without file contents (``--filter=blob:none``), kept in the scratch folder
and brought up to date when a month is asked for that was not over at the last fetch. The contents
that a month needs are then fetched in one go. Paths inside a repository are data: nothing is ever
checked out or written under such a name.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from core.errors import ItemUnavailable, SourceUnavailable, UsageError
from crawlers.git import EMPTY_TREE, WHOLE, Git, damaged

MAX_BLOB_BYTES = 10**6
REGULAR_MODES = ("100644", "100755")

_NO_OID = "0" * 40
_COMMIT = "%H %ct %at"
_SUBMODULE = b"160000"  # mode
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_REFUSAL_LASTS = dt.timedelta(days=1)  # a repository may come back, but not between two months


class Commit(NamedTuple):
    """A commit and the dates that it claims."""

    oid: str
    committed_at: dt.datetime
    authored_at: dt.datetime


class Span(NamedTuple):
    """The last first-parent commits before a month and before its end; None where there is none."""

    before: str | None
    head: Commit | None


class Change(NamedTuple):
    """A file that was added (``A``) or modified (``M``) between two commits; not a rename."""

    path: str
    status: str
    mode: str
    old_oid: str
    new_oid: str


class Work(NamedTuple):
    """What was done in a repository in a period; the contents can be read.

    Attributes:
        head: the last first-parent commit of the period.
        is_initial: the repository has no commit before the period.
        changes: files added or modified, by path.
        touches: the last first-parent commit that touched each of those files, by path.
        top_oids: contents of the chosen files of the top folder, at ``head``.
        retrieved_at: when the contents were fetched.
    """

    head: Commit
    is_initial: bool
    changes: list[Change]
    touches: dict[str, Commit]
    top_oids: list[str]
    retrieved_at: dt.datetime


def open_mirror(git: Git, name: str, until: dt.datetime) -> Mirror:
    """Return the mirror of ``owner/repository``, as fetched at ``until`` or later.

    Raises:
        UsageError: ``name`` is not of that form.
        ItemUnavailable: there is no such public repository, or it is too large.
        SourceUnavailable: the site fails in a way that may pass.
    """
    if _NAME.fullmatch(name) is None or name.endswith(".git"):
        raise UsageError(f"{name!r} is not a repository; expected owner/name")
    mirror = Mirror(git, git.root / f"{name}.git")
    if not mirror.is_fresh(until):
        with git.alone():
            if not mirror.is_fresh(until):  # another process may have been quicker
                mirror.refresh(f"{git.base_url}/{name}")
    return mirror


class Mirror:
    """A bare clone without file contents, and what can be asked of it; made by ``open_mirror``."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git, self._folder = git, folder
        self._fetched, self._refused = folder / WHOLE, Path(f"{folder}.refused")

    def is_fresh(self, until: dt.datetime) -> bool:
        """Whether it was fetched at ``until`` or later.

        Raises:
            ItemUnavailable: the site has refused the repository less than a day ago.
        """
        if self._fetched.exists() and until <= _read_time(self._fetched):
            return True
        if self._refused.exists():
            refusal = json.loads(self._refused.read_text())
            asked_at = dt.datetime.fromisoformat(refusal["at"])
            if max(until, dt.datetime.now(dt.UTC) - _REFUSAL_LASTS) <= asked_at:
                raise ItemUnavailable(refusal["reason"], refusal["detail"])
        return False

    def refresh(self, url: str) -> None:
        """Clone, or fetch what is new. The caller holds the site's lock."""
        for left in self._folder.parent.glob(f"{self._folder.name}.partial-*"):
            shutil.rmtree(left, ignore_errors=True)
        asked_at = dt.datetime.now(dt.UTC).isoformat()
        try:
            if self._fetched.exists():
                self._update()
                _write(self._fetched, asked_at)
            else:
                self._clone(url, asked_at)
        except ItemUnavailable as error:
            refusal = {"at": asked_at, "reason": error.reason, "detail": str(error)}
            _write(self._refused, json.dumps(refusal))
            raise
        self._refused.unlink(missing_ok=True)

    def _clone(self, url: str, asked_at: str) -> None:
        """Clone under another name, so that a killed clone is never taken for a mirror."""
        self._folder.parent.mkdir(exist_ok=True)
        # Never the same name twice: git may outlive a killed crawl, and cleans up after itself.
        partial = Path(f"{self._folder}.partial-{secrets.token_hex(4)}")
        try:
            self._git.transfer(
                partial, "clone", "--quiet", "--bare", "--filter=blob:none", "--single-branch",
                "--no-tags", "--template=", "--", url, str(partial),
            )  # fmt: skip
            if not self._git.local(partial, "for-each-ref"):
                # So git takes a 200 that is no answer of git's, such as a page of excuses.
                raise SourceUnavailable(f"{url} holds no commit; if it stays so, do without it")
            _write(partial / WHOLE, asked_at)
            shutil.rmtree(self._folder, ignore_errors=True)
            partial.rename(self._folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _update(self) -> None:
        branch = self._git.local(self._folder, "symbolic-ref", "HEAD").decode().strip()
        self._fetch("origin", f"+HEAD:{branch}")

    def _fetch(self, *arguments: str, stdin: bytes = b"") -> None:
        for pattern in ("*.lock", "tmp_*"):  # left by a killed git; nobody else holds them
            for left in self._folder.rglob(pattern):
                left.unlink(missing_ok=True)
        # Contents are asked for by name: there is no common history to negotiate about.
        negotiation = "noop" if stdin else "consecutive"
        self._git.transfer(
            self._folder, f"--git-dir={self._folder}",
            "-c", f"fetch.negotiationAlgorithm={negotiation}", "fetch", "--quiet", "--no-tags",
            "--no-write-fetch-head", "--filter=blob:none", *arguments, stdin=stdin,
        )  # fmt: skip

    def work(
        self,
        start: dt.datetime,
        end: dt.datetime,
        pathspecs: tuple[str, ...],
        top_files: re.Pattern[str],
    ) -> Work | None:
        """Return what was done from ``start`` up to ``end``; fetches its contents in one go.

        Args:
            start: belongs to the period; by committer date, to the second.
            end: does not.
            pathspecs: of the files wanted, as git matches paths; any may match.
            top_files: whole names of the files that are wanted of the top folder.

        Returns:
            None where no such file was added or modified.

        Raises:
            ItemUnavailable: the repository had no commit yet at ``end``.
            SourceUnavailable: the site fails in a way that may pass.
            StorageError: the mirror is damaged.
        """
        before, head = self.span(start, end)
        if head is None:
            raise ItemUnavailable("not_yet_created", f"no commit before {end:%Y-%m-%d}")
        touches, oids = self._history(before, head.oid, pathspecs)
        if not oids:
            return None
        top_oids = self._top_files(head.oid, top_files)
        retrieved_at = self._fetch_blobs([*oids, *top_oids])
        changes = self._changes(before, head.oid, pathspecs)
        return Work(head, before is None, changes, touches, top_oids, retrieved_at)

    def span(self, start: dt.datetime, end: dt.datetime) -> Span:
        """Return the last first-parent commits before ``start`` and before ``end``.

        "Last" is by place in history; a commit counts by its committer date, to the second.
        """
        head = None
        output = self._git.local(
            self._folder, "log", "--branches", "--first-parent", f"--format={_COMMIT}"
        )
        for line in output.decode().splitlines():
            commit = _parse_commit(line)
            if head is None and commit.committed_at < end:
                head = commit
            if head is not None and commit.committed_at < start:
                return Span(commit.oid, head)
        return Span(None, head)

    def _history(
        self, before: str | None, head: str, pathspecs: tuple[str, ...]
    ) -> tuple[dict[str, Commit], list[str]]:
        """Follow the first-parent commits after ``before`` up to ``head``.

        Returns:
            The last commit that touched each path; and the contents of the files that differ
            between the two ends, of both ends, empty where nothing was added or modified.
        """
        output = self._git.local(
            self._folder, "log", "--first-parent", "--diff-merges=first-parent", "--no-renames",
            "--raw", "-z", "--no-abbrev", f"--format=%x01{_COMMIT}",
            head if before is None else f"{before}..{head}", "--", *pathspecs,
        )  # fmt: skip
        touches: dict[str, Commit] = {}
        ends: dict[str, tuple[str, str]] = {}  # path -> oid at ``before``, oid at ``head``
        tokens = iter(output.split(b"\0"))
        for token in tokens:
            if token.startswith(b"\x01"):
                commit = _parse_commit(token[1:].decode())
            elif meta := token.strip():
                change = _parse_change(meta, next(tokens))
                if _SUBMODULE in meta[:14]:  # names a commit of another repository
                    continue
                touches.setdefault(change.path, commit)
                newest = ends.get(change.path, (change.old_oid, change.new_oid))[1]
                ends[change.path] = (change.old_oid, newest)
        oids = {oid for old, new in ends.values() if old != new for oid in (old, new)} - {_NO_OID}
        is_new = any(old != new != _NO_OID for old, new in ends.values())
        return touches, sorted(oids) if is_new else []

    def _changes(self, before: str | None, head: str, pathspecs: tuple[str, ...]) -> list[Change]:
        """Return the files added or modified between two commits, renames left out.

        A file is renamed where git finds half of a removed file in it; both must match
        one of ``pathspecs``. Their contents must have been fetched.
        """
        output = self._git.local(
            self._folder, "diff", "--raw", "-z", "--no-abbrev", "-M50%", "--diff-filter=AM",
            before or EMPTY_TREE, head, "--", *pathspecs,
        )  # fmt: skip
        tokens = output.split(b"\0")[:-1]
        return [_parse_change(*pair) for pair in zip(tokens[::2], tokens[1::2], strict=True)]

    def _top_files(self, commit: str, pattern: re.Pattern[str]) -> list[str]:
        """Return the object ids of the files of the top folder whose whole names match."""
        oids = []
        for entry in self._git.local(self._folder, "ls-tree", "-z", commit).split(b"\0")[:-1]:
            meta, _, name = entry.decode(errors="backslashreplace").partition("\t")
            mode, _, oid = meta.split(" ")
            if mode in REGULAR_MODES and pattern.fullmatch(name):
                oids.append(oid)
        return oids

    def _fetch_blobs(self, oids: Iterable[str]) -> dt.datetime:
        """Fetch contents in one go, unless that was done before; return when it was.

        Raises:
            SourceUnavailable: the site fails in a way that may pass.
        """
        request = "".join(f"{oid}\n" for oid in sorted(set(oids))).encode()
        done = self._folder / f"blobs-{hashlib.sha256(request).hexdigest()}"
        if not done.exists():
            with self._git.alone():
                if not done.exists():  # another process may have been quicker
                    asked_at = dt.datetime.now(dt.UTC).isoformat()
                    self._fetch("--stdin", "origin", stdin=request)
                    _write(done, asked_at)
        return _read_time(done)

    @contextlib.contextmanager
    def blobs(self) -> Iterator[BlobReader]:
        """Open a reader of contents that were fetched."""
        git = self._git
        with subprocess.Popen(
            git.command(f"--git-dir={self._folder}", "cat-file", "--batch"),
            env=git.environment("none"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                yield BlobReader(self._folder, process)
            finally:
                process.kill()


class BlobReader:
    """Reads contents one by one from a running ``git cat-file --batch``."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._feed, self._output = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)

    def read(self, oid: str) -> bytes | None:
        """Return a blob's bytes, or None where it is larger than MAX_BLOB_BYTES.

        Raises:
            StorageError: the blob is not in the mirror.
        """
        self._feed.write(f"{oid}\n".encode())
        self._feed.flush()
        header = self._output.readline().split()
        if len(header) != 3 or header[1] != b"blob":
            raise damaged(self._folder, f"no contents for {oid}")
        left, is_small = int(header[2]) + 1, int(header[2]) <= MAX_BLOB_BYTES  # a newline ends it
        if is_small:
            return self._output.read(left)[:-1]
        while left > 0:
            left -= len(self._output.read(min(left, MAX_BLOB_BYTES)))
        return None


def _parse_commit(line: str) -> Commit:
    oid, committed, authored = line.split(" ")
    return Commit(oid, _moment(committed), _moment(authored))


def _parse_change(meta: bytes, path: bytes) -> Change:
    """Parse ``:old_mode new_mode old_oid new_oid status`` of git's raw format."""
    _, mode, old_oid, new_oid, status = meta.decode().split(" ")
    return Change(path.decode(errors="backslashreplace"), status, mode, old_oid, new_oid)


def _moment(seconds: str) -> dt.datetime:
    """A commit may claim any date; one that no calendar has is as good as the first of all."""
    try:
        return dt.datetime.fromtimestamp(int(seconds), dt.UTC)
    except (ValueError, OverflowError, OSError):
        return dt.datetime.min.replace(tzinfo=dt.UTC)


def _read_time(file: Path) -> dt.datetime:
    return dt.datetime.fromisoformat(file.read_text())


def _write(file: Path, text: str) -> None:
    """Write all or nothing; the caller holds the site's lock."""
    new = Path(f"{file}.new")
    new.write_text(text)
    new.replace(file)
