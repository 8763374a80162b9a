"""Partial mirrors of git repositories: changes between two commits, and file contents.

A mirror is a bare clone without file contents (``--filter=blob:none``) in the scratch folder. New
commits are fetched if the requested month was not over at the last fetch. The file contents of a
month are then fetched in one request. Paths in a repository are only data: no file is ever checked
out, or written to such a path.
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
from urllib.parse import quote

from core.errors import ItemUnavailable, SourceUnavailable, UsageError
from crawlers.git.binary import EMPTY_TREE, WHOLE, Git, damaged

MAX_BLOB_BYTES = 10**6
REGULAR_MODES = ("100644", "100755")

_NO_OID = "0" * 40
_COMMIT = "%H %ct %at"
_SUBMODULE = b"160000"  # mode
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
AGAIN_AFTER = dt.timedelta(minutes=10)
_REFUSAL_LASTS = dt.timedelta(days=1)  # time after which a refused repository is requested again


class Commit(NamedTuple):
    """A commit with its committer date and author date, which people can set freely."""

    oid: str
    committed_at: dt.datetime
    authored_at: dt.datetime


class Change(NamedTuple):
    """A file that was added (status ``A``) or modified (``M``) between two commits."""

    path: str
    status: str
    mode: str
    old_oid: str
    new_oid: str


class Version(NamedTuple):
    """The state of a file on the main line from a commit on; without ``oid``, it is removed."""

    path: str
    oid: str | None
    mode: str
    commit: Commit


class Work(NamedTuple):
    """The changes of a repository in a period; the mirror has the changed files' contents."""

    head: Commit  # the last first-parent commit of the period
    is_initial: bool  # the repository has no commit before the period
    changes: list[Change]  # files added or modified, sorted by path
    touches: dict[str, Commit]  # last first-parent commit that changed a file, by the file's path
    top_oids: list[str]  # ids of top-level files at ``head`` that match ``top_files`` of ``work``
    retrieved_at: dt.datetime  # when the contents were fetched


def open_mirror(git: Git, name: str, until: dt.datetime, is_again: bool = False) -> Mirror:
    """Return the mirror of a repository; fetch it if the last fetch was before ``until``.

    With ``is_again`` it is also fetched if the last fetch was more than ``AGAIN_AFTER`` ago, since
    its history may have been rewritten. So a range of months fetches it once.

    Raise UsageError if ``name`` is not of the form ``owner/repository``. Raise ItemUnavailable if
    the repository is missing, not public or too large. Raise SourceUnavailable if the site failed
    temporarily.
    """
    if _NAME.fullmatch(name) is None or name.endswith(".git"):
        raise UsageError(f"{name!r} is not a repository; expected owner/name")
    mirror = Mirror(git, git.root / f"{name}.git")
    if is_again:
        until = max(until, dt.datetime.now(dt.UTC) - AGAIN_AFTER)
    if not mirror.is_fresh(until):
        with git.alone():
            if not mirror.is_fresh(until):  # another process may have fetched the mirror meanwhile
                mirror.refresh(f"{git.base_url}/{name}")
    return mirror


class Mirror:
    """A bare clone without file contents, and queries on it; see ``open_mirror``."""

    def __init__(self, git: Git, folder: Path) -> None:
        self._git = git
        self._folder = folder
        self._fetched = folder / WHOLE
        self._refused = Path(f"{folder}.refused")

    def is_fresh(self, until: dt.datetime) -> bool:
        """Return True if the mirror was fetched at ``until`` or later.

        Raise ItemUnavailable if the site refused the repository less than a day ago.
        """
        if self._fetched.exists() and until <= _read_time(self._fetched):
            return True
        if self._refused.exists():
            refusal = json.loads(self._refused.read_text())
            refused_at = dt.datetime.fromisoformat(refusal["at"])
            if max(until, dt.datetime.now(dt.UTC) - _REFUSAL_LASTS) <= refused_at:
                raise ItemUnavailable(refusal["reason"], refusal["detail"])
        return False

    def refresh(self, url: str) -> None:
        """Clone the repository, or fetch new commits; the caller must hold ``Git.alone``."""
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
        """Clone to a temporary name, so that an incomplete clone is never used as a mirror."""
        self._folder.parent.mkdir(exist_ok=True)
        # Random name: git of a killed crawl may still run, and would delete its folder at exit.
        partial = Path(f"{self._folder}.partial-{secrets.token_hex(4)}")
        try:
            self._git.transfer(
                partial, "clone", "--quiet", "--bare", "--filter=blob:none", "--single-branch",
                "--no-tags", "--reject-shallow", "--template=", "--", url, str(partial),
            )  # fmt: skip
            if not self._git.local(partial, "for-each-ref"):
                # Git takes any response with status 200 for an empty repository, even an HTML page.
                raise SourceUnavailable(f"{url} has no commit; if this lasts, omit the project")
            _write(partial / WHOLE, asked_at)
            shutil.rmtree(self._folder, ignore_errors=True)
            partial.rename(self._folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _update(self) -> None:
        branch = self._git.local(self._folder, "symbolic-ref", "HEAD").decode().strip()
        self._fetch("origin", f"+HEAD:{branch}")

    def _fetch(self, *arguments: str, stdin: bytes = b"") -> None:
        """Fetch into the mirror, after deleting what a killed git process has left there."""
        for pattern in ("*.lock", "tmp_*"):  # leftovers of a killed git process
            for left in self._folder.rglob(pattern):
                left.unlink(missing_ok=True)
        # Contents are fetched by object id, so there are no common commits to negotiate.
        negotiation = "noop" if stdin else "consecutive"
        self._git.transfer(
            self._folder, f"--git-dir={self._folder}",
            "-c", f"fetch.negotiationAlgorithm={negotiation}", "fetch", "--no-tags",
            "--no-write-fetch-head", "--filter=blob:none", *arguments, stdin=stdin,
        )  # fmt: skip

    def work(
        self,
        start: dt.datetime,
        end: dt.datetime,
        pathspecs: tuple[str, ...],
        top_files: re.Pattern[str],
    ) -> Work | None:
        """Return the changes from ``start`` to before ``end``; fetch their contents in one request.

        A commit belongs to the period of its committer date. Return None if no added or modified
        file matches one of ``pathspecs``. Raise ItemUnavailable if the repository had no
        commit yet at ``end``. Raise SourceUnavailable if the site failed temporarily. Raise
        StorageError if the mirror is damaged.
        """
        before, head = self.span(start, end)
        if head is None:
            raise ItemUnavailable("not_yet_created", f"no commit before {end:%Y-%m-%d}")
        touches, oids = self._history(before, head.oid, pathspecs)
        if not oids:
            return None
        top_oids = self._top_files(head.oid, top_files)
        retrieved_at = self.fetch_blobs([*oids, *top_oids])
        changes = self._changes(before, head.oid, pathspecs)
        return Work(head, before is None, changes, touches, top_oids, retrieved_at)

    def span(self, start: dt.datetime, end: dt.datetime) -> tuple[str | None, Commit | None]:
        """Return the last first-parent commits before ``start`` (id only) and before ``end``."""
        # The last commit is the nearest to the branch's tip; None if there is no such commit.
        head = None
        output = self._git.local(
            self._folder, "log", "--branches", "--first-parent", f"--format={_COMMIT}"
        )
        for line in output.decode().splitlines():
            commit = _parse_commit(line)
            if head is None and commit.committed_at < end:
                head = commit
            if head is not None and commit.committed_at < start:
                return commit.oid, head
        return None, head

    def versions(self, pathspecs: tuple[str, ...]) -> list[Version]:
        """Return each change of the files on the main line, the oldest first."""
        # Names of moved files are a removal and an addition, in this order. A submodule in the
        # place of a file removes it. Needs no contents.
        found: list[Version] = []
        added: list[Version] = []  # additions of one commit, listed after its removals
        for commit, change, _ in self._log("--branches", "--reverse", "--", *pathspecs):
            if added and added[0].commit != commit:
                found += added
                added = []
            if change.new_oid == _NO_OID or change.mode == _SUBMODULE.decode():
                found.append(Version(change.path, None, change.mode, commit))
            else:
                added.append(Version(change.path, change.new_oid, change.mode, commit))
        return found + added

    def _log(self, *arguments: str) -> Iterator[tuple[Commit, Change, bool]]:
        """Yield each change of the commits of a log; True for one of a submodule, not a file."""
        output = self._git.local(
            self._folder, "log", "--first-parent", "--diff-merges=first-parent", "--no-renames",
            "--raw", "-z", "--no-abbrev", f"--format=%x01{_COMMIT}", *arguments,
        )  # fmt: skip
        tokens = iter(output.split(b"\0"))
        for token in tokens:
            meta = token.strip()
            if token.startswith(b"\x01"):
                commit = _parse_commit(token[1:].decode())
            elif meta:
                yield commit, _parse_change(meta, next(tokens)), _SUBMODULE in meta[:14]

    def file_at(self, commit: str, path: str) -> str | None:
        """Return the object id of a file at a commit; None if there is no such file."""
        entry = self._git.local(self._folder, "ls-tree", "-z", commit, "--", path)
        meta, _, _ = entry.decode(errors="backslashreplace").partition("\t")
        mode, _, oid = [*meta.split(" "), "", ""][:3]
        return oid if mode in REGULAR_MODES else None

    def _history(
        self, before: str | None, head: str, pathspecs: tuple[str, ...]
    ) -> tuple[dict[str, Commit], list[str]]:
        """Return the last first-parent commit that changed each path, and ids of file contents."""
        # The ids are those of all files that differ between ``before`` and ``head``, in both
        # versions. The list of ids is empty if no file was added or modified.
        commits = head if before is None else f"{before}..{head}"
        touches: dict[str, Commit] = {}
        ends: dict[str, tuple[str, str]] = {}  # path -> object id at ``before`` and at ``head``
        for commit, change, is_submodule in self._log(commits, "--", *pathspecs):
            if is_submodule:  # the object id is a commit of another repository
                continue
            touches.setdefault(change.path, commit)
            newest = ends.get(change.path, (change.old_oid, change.new_oid))[1]
            ends[change.path] = (change.old_oid, newest)
        oids = {oid for old, new in ends.values() if old != new for oid in (old, new)} - {_NO_OID}
        is_new = any(old != new != _NO_OID for old, new in ends.values())
        return touches, sorted(oids) if is_new else []

    def _changes(self, before: str | None, head: str, pathspecs: tuple[str, ...]) -> list[Change]:
        """Return the files added or modified between two commits, without renamed files."""
        # A new file counts as renamed if it shares half of its content with a removed file, and
        # both paths match ``pathspecs``. The contents must have been fetched.
        output = self._git.local(
            self._folder, "diff", "--raw", "-z", "--no-abbrev", "-M50%", "--diff-filter=AM",
            before or EMPTY_TREE, head, "--", *pathspecs,
        )  # fmt: skip
        tokens = output.split(b"\0")[:-1]
        return [_parse_change(*pair) for pair in zip(tokens[::2], tokens[1::2], strict=True)]

    def _top_files(self, commit: str, pattern: re.Pattern[str]) -> list[str]:
        """Return the object ids of top-level files at a commit whose names match a pattern."""
        oids = []
        for entry in self._git.local(self._folder, "ls-tree", "-z", commit).split(b"\0")[:-1]:
            meta, _, name = entry.decode(errors="backslashreplace").partition("\t")
            mode, _, oid = meta.split(" ")
            if mode in REGULAR_MODES and pattern.fullmatch(name):
                oids.append(oid)
        return oids

    def fetch_blobs(self, oids: Iterable[str]) -> dt.datetime:
        """Fetch file contents in one request, unless fetched before; return the fetch's time."""
        request = "".join(f"{oid}\n" for oid in sorted(set(oids))).encode()
        done = self._folder / f"blobs-{hashlib.sha256(request).hexdigest()}"
        if not done.exists():
            with self._git.alone():
                if not done.exists():  # another process may have fetched the contents meanwhile
                    asked_at = dt.datetime.now(dt.UTC).isoformat()
                    self._fetch("--stdin", "origin", stdin=request)
                    _write(done, asked_at)
        return _read_time(done)

    @contextlib.contextmanager
    def blobs(self) -> Iterator[BlobReader]:
        """Open a reader of the file contents that were fetched."""
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
    """Reads file contents one by one from a running ``git cat-file --batch``."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._feed = cast(IO[bytes], process.stdin)
        self._output = cast(IO[bytes], process.stdout)

    def read(self, oid: str) -> bytes | None:
        """Return a blob's bytes, or None if it is larger than MAX_BLOB_BYTES.

        Raise StorageError if the blob is not in the mirror.
        """
        self._feed.write(f"{oid}\n".encode())
        self._feed.flush()
        header = self._output.readline().split()
        is_found = len(header) == 3 and header[1] == b"blob"  # object id, kind, number of bytes
        if not is_found:
            raise damaged(self._folder, f"no contents for {oid}")
        num_bytes = int(header[2])
        left = num_bytes + 1  # git adds a newline after the contents
        if num_bytes <= MAX_BLOB_BYTES:
            return self._output.read(left)[:-1]
        # Read past a blob that is too large, in parts.
        while left > 0:
            left -= len(self._output.read(min(left, MAX_BLOB_BYTES)))
        return None


def quote_path(path: str) -> str:
    r"""Return a path of a mirror as it is in a URL."""
    # A mirror writes a byte that is not UTF-8 as ``\xff``; in a URL it is ``%ff``.
    return re.sub("%5Cx([89a-f][0-9a-f])", r"%\1", quote(path))


def _parse_commit(line: str) -> Commit:
    oid, committed, authored = line.split(" ")
    return Commit(oid, _moment(committed), _moment(authored))


def _parse_change(meta: bytes, path: bytes) -> Change:
    """Parse git's raw format: ``:old_mode new_mode old_oid new_oid status``, then the path."""
    _, mode, old_oid, new_oid, status = meta.decode().split(" ")
    return Change(path.decode(errors="backslashreplace"), status, mode, old_oid, new_oid)


def _moment(seconds: str) -> dt.datetime:
    """Convert seconds since 1970 to UTC; return the earliest datetime if out of range."""
    try:
        return dt.datetime.fromtimestamp(int(seconds), dt.UTC)
    except (ValueError, OverflowError, OSError):
        return dt.datetime.min.replace(tzinfo=dt.UTC)


def _read_time(file: Path) -> dt.datetime:
    return dt.datetime.fromisoformat(file.read_text())


def _write(file: Path, text: str) -> None:
    """Write a file atomically; the caller must hold the lock of ``Git.alone``."""
    new = Path(f"{file}.new")
    new.write_text(text)
    new.replace(file)
