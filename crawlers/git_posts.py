"""Dated texts of public git repositories: blogs, proposals, minutes, notices.

Each file of ``crawlers/git/posts`` describes a repository, which is a source of its own, such as
``git_posts:rust_blog``. All months come from one partial clone (``crawlers/git/mirror.py``).

A document belongs to the month of its day. Its path or header states the day, or it is the day on
which its file came onto the main line (first parents). The text is that of the last commit before
the month's end. A document may be added after its month. It is read as first added, if that was at
most ``lag_days`` after the month. Later documents never count. So the day of the crawl does not
change a month. A text that was in the repository longer than ``EARLIEST`` before its month does not
count, as it could be read before its day. Nor does a file that is removed before the month's end.
Committers can set the dates of commits freely. robots.txt is not checked, since GitHub offers
repositories to programs by git.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.errors import ItemUnavailable, UsageError
from core.month import Month, Period
from crawlers.contract import CrawlContext, Document, Item, SourceInfo, missing_item
from crawlers.git.binary import Git
from crawlers.git.entries import Entry, find_day, make_day, read_entries
from crawlers.git.mirror import REGULAR_MODES, BlobReader, Commit, Version, open_mirror, quote_path
from crawlers.text.code import decode_text, read_readme

SITES = {"github": "https://github.com"}
EARLIEST = dt.timedelta(days=92)  # a scheduled post is in the repository before its day
LATE = dt.timedelta(days=7)  # a landed document that comes later counts on the day it came

# First and last lines of headers.
_FENCES = {"---": ("---", "..."), "+++": ("+++",), "```toml": ("```",), "```yaml": ("```",)}
_MAX_HEADER_LINES = 200
_MAX_FIELD = 300  # characters
_BLOCK = re.compile(r"[>|][-+\d]{0,2}")  # in YAML, the value is in the lines below
_HEADING = re.compile(r"^#{1,3}[ \t]++(.{1,300})$", re.MULTILINE)


def _describe(name: str, entry: Entry) -> SourceInfo:
    return SourceInfo(
        name=f"git_posts:{name}",
        title=entry.title,
        licence=entry.licence,
        language=entry.language,
        category=entry.category,
        sites=SITES,
        request_interval_s=2.0,
        first_month=Month(entry.first_month),
        lag_days=entry.lag_days,
        whole_months=None,
    )


INFO = SourceInfo(
    name="git_posts",
    title="Dated texts of git repositories",
    licence="LicenseRef-each-repository",
    language="en",
    category="blog",
    sites=SITES,
    request_interval_s=2.0,
    whole_months=None,
    parts={name: _describe(name, entry) for name, entry in read_entries().items()},
)


@dataclass(frozen=True)
class _Candidate:
    """A file that may be a document of the month, in the version that counts."""

    native_id: str
    version: Version
    came: Commit  # the commit that brought the file


def fetch_month(month: Period, context: CrawlContext) -> Iterator[Item]:
    """Yield the documents of a repository; ``context.subset`` is its name."""
    entry = read_entries().get(context.subset or "")
    if entry is None:
        raise UsageError("git_posts: name a repository, such as git_posts:rust_blog")
    until = month.end + dt.timedelta(days=entry.lag_days)
    is_again = context.fetcher.revalidates
    mirror = open_mirror(_git(context), entry.repository, until, is_again)
    _, head = mirror.span(month.start, month.end)
    if head is None:
        raise ItemUnavailable("not_yet_created", f"no commit before {month.end:%Y-%m-%d}")
    candidates = list(_find_candidates(entry, mirror.versions(tuple(entry.folders)), month, until))
    licence_oid = mirror.file_at(head.oid, entry.licence_file)
    wanted = [each.version.oid for each in candidates if each.version.oid]
    retrieved_at = mirror.fetch_blobs([*wanted, *filter(None, [licence_oid])])
    with mirror.blobs() as blobs:
        licence = (blobs.read(licence_oid) or b"") if licence_oid else b""
        is_free = re.search(entry.licence_says, licence.decode(errors="replace")) is not None
        visit = _Visit(entry, month, blobs, is_free, retrieved_at)
        listed = [each for each in candidates if visit.is_of_month(each)]
        yield from context.sample(listed, lambda each: each.native_id, visit.read)


def _git(context: CrawlContext) -> Git:
    """Return the git client of GitHub; the setting of the request interval overrides INFO's."""
    settings = context.settings
    pace_s = settings.request_interval_s
    pace_s = INFO.request_interval_s if pace_s is None else pace_s
    agent = f"tidemark (+{settings.contact}) git"
    return Git(settings.scratch / "git", context.fetcher.base_url("github"), agent, pace_s)


def _find_candidates(
    entry: Entry, versions: Iterable[Version], month: Period, until: dt.datetime
) -> Iterator[_Candidate]:
    """Yield the files that are in the repository at the month's end, or come until ``until``."""
    came: dict[str, Commit] = {}
    current: dict[str, dict[str, Version]] = {}  # by id, then by path; the newest last
    for version in versions:
        path_match = re.fullmatch(entry.match, version.path)
        if path_match is None or version.commit.committed_at >= until:
            continue
        native_id = f"{entry.repository}:{path_match.groupdict().get('id') or version.path}"
        is_first = native_id not in came
        if version.oid:
            came.setdefault(native_id, version.commit)
        if is_first or version.commit.committed_at < month.end:
            versions_by_path = current.setdefault(native_id, {})
            versions_by_path.pop(version.path, None)
            if version.oid:
                versions_by_path[version.path] = version
    for native_id in sorted(came):
        if not current[native_id]:
            continue  # all its files are removed
        version = list(current[native_id].values())[-1]
        candidate = _Candidate(native_id, version, came[native_id])
        day = _stated_day(entry, candidate, "")
        is_recent = candidate.came.committed_at >= month.start - EARLIEST
        is_possible = day is None or _day_of(entry, candidate, day) in month
        if is_recent and is_possible:
            yield candidate


def _stated_day(entry: Entry, candidate: _Candidate, header: str) -> dt.date | None:
    """Return the day by the first rule that gives one; without a header, by the first rule."""
    for rule in entry.date:
        kind, _, name = rule.partition(":")
        if kind == "field":
            if not header:
                return None
            day = find_day(_field(header, name))
        elif kind == "commit":
            day = candidate.came.committed_at.date()
        else:
            path = re.fullmatch(entry.match, candidate.version.path)
            parts = path.groupdict() if path else {}
            day = None
            if parts.get("year") and parts.get("month") and parts.get("day"):
                day = make_day(parts["year"], parts["month"], parts["day"])
        if day is not None:
            return day
    return None


def _day_of(entry: Entry, candidate: _Candidate, stated: dt.date) -> dt.datetime:
    """Return the moment whose month is the document's: its stated day, or when its file came."""
    moment = dt.datetime.combine(stated, dt.time(), dt.UTC)
    came = candidate.came.committed_at
    if entry.date[0] == "commit" or (entry.is_landed and came - moment > LATE):
        return came
    return moment


@dataclass(frozen=True)
class _Visit:
    """Reads the candidates of one month and converts them to documents."""

    entry: Entry
    month: Period
    blobs: BlobReader
    is_free: bool  # the licence file states the licence
    retrieved_at: dt.datetime

    def is_of_month(self, candidate: _Candidate) -> bool:
        """Return True if the document's day is in the month, or it came in it without a day."""
        try:
            header, _ = self._split(candidate)
        except ItemUnavailable:
            return candidate.came.committed_at in self.month
        day = _stated_day(self.entry, candidate, header)
        if day is None:
            return candidate.came.committed_at in self.month
        return _day_of(self.entry, candidate, day) in self.month

    def read(self, candidate: _Candidate) -> Iterator[Item]:
        """Yield the document, or the reason why it is not kept."""
        try:
            yield self._document(candidate)
        except ItemUnavailable as error:
            yield missing_item(candidate.native_id, error)

    def _split(self, candidate: _Candidate) -> tuple[str, str]:
        """Return a file's header and its text."""
        content = self.blobs.read(candidate.version.oid or "")
        if content is None:
            raise ItemUnavailable("too_large", candidate.version.path)
        return split_header(decode_text(content), self.entry.header)

    def _document(self, candidate: _Candidate) -> Document:
        """Convert a candidate to a document; raise ItemUnavailable if it is not kept."""
        entry = self.entry
        version = candidate.version
        if not self.is_free:
            raise ItemUnavailable("licence", f"{entry.licence_file} does not state it")
        if version.mode not in REGULAR_MODES:
            raise ItemUnavailable("unsafe_path", f"a link (mode {version.mode}), not a file")
        header, text = self._split(candidate)
        if entry.document_says and not re.search(entry.document_says, f"{header}\n{text}"):
            raise ItemUnavailable("licence", f"the text does not state {entry.licence}")
        day = _stated_day(entry, candidate, header)
        if day is None:
            raise ItemUnavailable("no_date", f"no day by {', '.join(entry.date)}")
        page = f"{entry.repository}/blob/{version.commit.oid}/{quote_path(version.path)}"
        return Document(
            native_id=candidate.native_id,
            version_id=version.oid,
            text=_plain(version.path, text),
            title=_title(header, text) or version.path,
            url=f"{SITES['github']}/{page}",
            event_time=_day_of(entry, candidate, day),
            date_kind="committed" if entry.date[0] == "commit" else "published",
            text_as_of=version.commit.committed_at,
            retrieved_at=self.retrieved_at,
            licence=entry.licence,
            attribution=entry.attribution,
            language=entry.language,
            category=entry.category,
            is_plain=True,
            extra={
                "commit": version.commit.oid,
                "came_at": candidate.came.committed_at.isoformat(),
                "stated_day": day.isoformat(),
            },
        )


def split_header(text: str, kind: str) -> tuple[str, str]:
    """Return the header of a file and the text below it; the header may be empty.

    A header is between two lines of ``---`` or ``+++``, in a fence of TOML or YAML, or an object of
    JSON. One of YAML may end with ``...``. Of the kind ``mail`` it is ``Name: value`` up to the
    first blank line. One of over 200 lines is text.
    """
    if kind == "none":
        return "", text
    unified = text.replace("\r\n", "\n").lstrip("\n")
    if kind == "front" and unified.startswith("{"):
        return _split_json(unified)
    lines = unified.split("\n")
    begin, ends = (0, ("",)) if kind == "mail" else (1, _FENCES.get(lines[0].strip(), ()))
    for number, line in enumerate(lines[begin:_MAX_HEADER_LINES], begin):
        if line.strip() in ends:
            return "\n".join(lines[begin:number]), "\n".join(lines[number + 1 :])
    return "", text


def _split_json(text: str) -> tuple[str, str]:
    """Return the object of JSON that a text begins with, and the lines below it."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return "", text
    header = text[:end]
    rest, _, below = text[end:].partition("\n")
    if rest.strip() or header.count("\n") >= _MAX_HEADER_LINES:
        return "", text
    return header, below


def _field(header: str, name: str) -> str:
    """Return a field of a header in YAML, TOML, JSON or of mail; empty if there is none."""
    # An indented field is ignored, because it belongs to another field. A name may be quoted.
    if header.startswith("{"):
        return _field_of_json(header, name)
    pattern = (
        rf"^(?P<quote>[\"']?){re.escape(name)}(?P=quote)[ \t]*[:=](?P<value>.{{1,{_MAX_FIELD}}})$"
    )
    found = re.search(pattern, header, re.MULTILINE | re.IGNORECASE)
    return found["value"].strip().strip("\"'") if found else ""


def _field_of_json(header: str, name: str) -> str:
    """Return a string field of a JSON header by its name in any case; empty if there is none."""
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError):  # a header of mail, or a mapping of YAML in one line
        return ""
    for key, value in fields.items():
        if key.lower() == name.lower() and isinstance(value, str) and len(value) <= _MAX_FIELD:
            return value.strip()
    return ""


def _title(header: str, text: str) -> str:
    """Return the title that the header states, else the first heading; empty without either."""
    stated = _field(header, "title")
    if stated and not _BLOCK.fullmatch(stated):
        return stated
    heading = _HEADING.search(text)
    return heading[1].strip() if heading else ""


def _plain(path: str, text: str) -> str:
    return read_readme("text.rst" if path.endswith((".rst", ".txt")) else "text.md", text.encode())
