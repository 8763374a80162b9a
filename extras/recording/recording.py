"""Recordings: the responses of a source's sites to a small crawl, one file each.

A user with a network sends a recording with a bug report; tests replay it. It has no credentials.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import html
import itertools
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import quote, quote_plus, urlsplit

from core.corpus.permissions import require_permission
from core.corpus.questions import Question
from core.errors import MalformedInput, SourceChanged, SourceError, UnknownName, UsageError
from core.month import Month, Period, require_complete
from core.periods import parse_period
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors
from crawlers.contract import CrawlContext, Crawler, Item
from crawlers.crawling.manifest import code_version
from crawlers.git.binary import Git
from crawlers.questions.contract import (
    Found,
    QuestionContext,
    QuestionCrawler,
    QuestionSourceInfo,
    list_question_sources,
    load_question_crawler,
)
from crawlers.questions.crawl import require_token
from crawlers.registry import is_source, list_all_sources, load_crawler
from crawlers.web.exchange import HttpResponse
from crawlers.web.fetcher import Fetched, Fetcher
from extras.recording.packs import save_mirrors
from simulator.shapes import Difference, Shape, compare

REPOSITORIES = "repositories"  # folder of what git brought
INDEX_FILE = "recording.json"  # source, month, limit and base URLs of the sites
ROBOTS = "/robots.txt"
_HIDDEN = "[contact]"
# Credentials and addresses of the user; and what is about the transfer, as bodies are decompressed.
_LEFT_OUT = re.compile(
    "cookie|auth|token|secret|session|api-?key|client-ip|real-ip|forwarded|"
    "^(content-encoding|content-length|transfer-encoding|connection|keep-alive)$"
)
_README = """A recording of the sites of "{source}" ({title}), made by tidemark {version}.

Month: {month}. About {limit} documents were asked for.
HTTP exchanges: {num_exchanges}, in the order of the responses, in the files 0001.json and so on.
Items: {items}.
The crawl {end}

Each file holds the URL, status, headers, body and time of one response. Tokens, cookies, secret
parameters, the contact and all request headers are left out. The body is null for a downloaded
file, and empty where the crawler does not read it: of redirects and of most errors. Requests
without a response, and requests of git, are not in the recording. What git brought is in the folder
repositories, a pack of objects each; commits have the names and addresses of their authors.

Licence of the source: {licence}.
The texts keep the rights of their authors, whatever the licence of the source or of tidemark is.
"""


def record(
    source: str, month: Period, folder: Path, store: Store, settings: Settings, limit: int
) -> str:
    """Crawl about ``limit`` documents or questions; store the responses; return how it ended.

    Neither the cache nor the data root is changed. If the crawl fails, the responses so far are
    kept, since they may show the fault. Repositories of git are fetched to a temporary folder.

    Raises:
        UsageError: the folder has files, the source lacks the month, or its pages need a browser.
        AccessRefused: the source needs a permission, and none is in force; nothing is requested.
        TokenRefused: the source needs a token that the settings lack; nothing is requested.
    """
    fetcher = _open(source, month, store, settings)
    info = load(source).INFO
    languages = settings.languages.get(source, ())
    sites = {key: fetcher.base_url(key) for key in info.all_sites(languages)}
    recorder = _Recorder(folder, fetcher, settings)
    recorder.begin({"source": source, "month": str(month), "limit": limit, "sites": sites})
    counts: Counter[str] = Counter()
    end = "was interrupted, or met an error of tidemark itself."
    scratch = Path(tempfile.mkdtemp(prefix="tidemark-recording-"))
    own = settings.model_copy(update={"work_dir": scratch})
    try:
        for item in fetch_items(source, month, own, fetcher, limit):
            counts[type(item).__name__] += 1
        end = "came to its end."
    except SourceError as error:
        end = f"ended with: {recorder.hide(str(error))}"
    finally:
        if any(scratch.glob("git/*")):
            git = Git(scratch, "http://localhost", "", 0)  # for its local commands only
            save_mirrors(git, scratch / "git", folder / REPOSITORIES)
        shutil.rmtree(scratch, ignore_errors=True)
        facts = {"source": source, "title": info.title, "licence": info.licence, "month": month}
        recorder.end({**facts, "limit": limit, "end": end, "items": _spell(counts)})
    return f"{recorder.num_exchanges} exchanges ({_spell(counts)}); the crawl {end}"


def _open(source: str, month: Period, store: Store, settings: Settings) -> Fetcher:
    """Return a fetcher without a cache, after the checks of a crawl."""
    info = load(source).INFO
    require_complete(month)
    lack = info.lacks(month)
    if lack:
        raise UsageError(f"{source} {month}: {lack}")
    if isinstance(info, QuestionSourceInfo) and info.in_browser:
        raise UsageError(f"{source} is read in a browser, and its pages are not recorded")
    require_permission(store, source, info.permission)
    if isinstance(info, QuestionSourceInfo):
        require_token(info, settings)
    return info.open_fetcher(settings, settings.languages.get(source, ()), use_cache=False)


def load(source: str) -> Crawler | QuestionCrawler:
    """Import the crawler of a source of documents or of questions, or raise UnknownName."""
    if is_source(source):
        return load_crawler(source)
    if source in list_question_sources():
        return load_question_crawler(source)
    raise UnknownName("source", source, sorted([*list_all_sources(), *list_question_sources()]))


def fetch_items(
    source: str, month: Period, settings: Settings, fetcher: Fetcher, limit: int
) -> Iterator[Item | Found]:
    """Yield the items of a small crawl; of questions, the first ``limit`` and what precedes."""
    crawler = load(source)
    languages = settings.languages.get(source, ())
    if not isinstance(crawler.INFO, QuestionSourceInfo):
        context = CrawlContext(settings, fetcher, limit=limit, languages=languages)
        yield from cast(Crawler, crawler).fetch_month(month, context)
        return
    walk = cast(QuestionCrawler, crawler).fetch_questions(
        [Month(str(month))], QuestionContext(settings, fetcher)
    )
    num_questions = 0
    for _, found in walk:
        yield found
        num_questions += isinstance(found, Question)
        if num_questions >= limit:
            return


@dataclass(frozen=True)
class RecordingIndex:
    """The index file of a recording, which tells what the recording is of."""

    source: str
    month: Period
    limit: int  # number of documents or questions
    sites: Mapping[str, str]  # base URL by key of the site


def read_recording(folder: Path) -> tuple[RecordingIndex, list[tuple[int, Fetched]]]:
    """Return the index of a recording, and its responses with their status, in order.

    Raise MalformedInput if a file is missing or malformed.
    """
    path = folder / INDEX_FILE
    try:
        stated = json.loads(path.read_text("utf-8"))
        index = RecordingIndex(
            source=str(stated["source"]),
            month=parse_period(stated["month"]),
            limit=int(stated["limit"]),
            sites={str(key): str(url) for key, url in stated["sites"].items()},
        )
        responses = []
        for path in sorted(folder.glob("[0-9]*.json")):
            entry = json.loads(path.read_text("utf-8"))
            body = entry["body"] or ""
            raw = base64.b64decode(body) if entry["body_as"] == "base64" else body.encode()
            moment = dt.datetime.fromisoformat(entry["retrieved_at"])
            headers = {str(name): str(value) for name, value in entry["headers"].items()}
            responses.append((int(entry["status"]), Fetched(entry["url"], headers, raw, moment)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UsageError) as error:
        raise MalformedInput(
            f"{path} is not of a recording ({type(error).__name__}: {error}); make one with "
            "`tidemark sources record`"
        ) from error
    return index, responses


class _Enough(BaseException):  # no handler of a crawler may catch it
    pass


def compare_live(folder: Path, store: Store, settings: Settings) -> list[Difference]:
    """Repeat the first request of a recording, and compare the shapes of the responses.

    The source's crawler makes the request; it is stopped at the response. Only robots.txt is
    requested before. Raise the errors of ``record``, SourceChanged if the recording has no such
    response, and MalformedInput.
    """
    index, responses = read_recording(folder)
    source = index.source
    month = index.month
    fetcher = _open(source, month, store, settings)
    found: list[HttpResponse] = []

    def note(response: HttpResponse, _: bool) -> None:
        if urlsplit(response.fetched.url).path != ROBOTS and not 300 <= response.status < 400:
            found.append(response)
            raise _Enough

    fetcher.record(note)
    with contextlib.suppress(_Enough):
        for _ in fetch_items(source, month, settings, fetcher, index.limit):
            pass
    if not found:
        raise SourceChanged(f"{source}: the crawl of {month} got no response but robots.txt")
    status = found[0].status
    live = found[0].fetched
    kind = f"{source} {urlsplit(live.url).path}"
    alike = _alike(responses, live)
    if status != 200 or not alike:
        what = f"answers {status}" if status != 200 else f"is not in the recording {folder}"
        raise SourceChanged(f"{kind} {what}; make a new recording")
    recorded = Shape()
    true = Shape()
    for each in alike:
        recorded.add(each)
    true.add(live)
    return list(compare({kind: recorded}, {kind: true}))


def _alike(responses: Sequence[tuple[int, Fetched]], live: Fetched) -> list[Fetched]:
    """Return the responses 200 of the same path and query; if there are none, of the same path."""
    there = urlsplit(live.url)
    alike = [
        (urlsplit(response.url), response)
        for status, response in responses
        if status == 200 and urlsplit(response.url).path == there.path
    ]
    same = [response for parts, response in alike if parts.query == there.query]
    return same or [response for _, response in alike]


def _spell(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "none"


class _Recorder:
    def __init__(self, folder: Path, fetcher: Fetcher, settings: Settings) -> None:
        self._folder = folder
        self._hide_tokens = fetcher.hide
        self._numbers = itertools.count(1)
        contact = settings.operator_contact or ""
        forms = {contact, quote(contact), quote(contact, safe=""), quote_plus(contact)}
        forms |= {html.escape(contact), json.dumps(contact)[1:-1]} - {""}
        pattern = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
        self._contact = re.compile(pattern, re.IGNORECASE) if contact else None
        fetcher.record(self.note)

    @property
    def num_exchanges(self) -> int:
        return sum(1 for _ in self._folder.glob("[0-9]*.json"))

    def begin(self, index: Mapping[str, object]) -> None:
        """Make the folder of a recording, and write its index."""
        with explain_disk_errors(str(self._folder)):
            if self._folder.exists() and (self._folder.is_file() or any(self._folder.iterdir())):
                raise UsageError(f"{self._folder} is not empty; name a new folder with --out")
            self._folder.mkdir(parents=True, exist_ok=True)
        self._write(INDEX_FILE, json.dumps(index, indent=1))

    def end(self, facts: Mapping[str, object]) -> None:
        more = {"version": code_version(), "num_exchanges": self.num_exchanges}
        self._write("README.txt", _README.format_map({**facts, **more}))

    def note(self, response: HttpResponse, is_download: bool) -> None:
        """Store a response; fetchers call this from several threads."""
        fetched = response.fetched
        number = next(self._numbers)
        headers = {
            name: self.hide(value)
            for name, value in fetched.headers.items()
            if not _LEFT_OUT.search(name)
        }
        entry = {
            "url": self.hide(fetched.url),
            "status": response.status,
            "headers": headers,
            "retrieved_at": fetched.retrieved_at.isoformat(),
            **self._body(None if is_download else fetched.body),
        }
        self._write(f"{number:04}.json", json.dumps(entry, ensure_ascii=False, indent=1))

    def hide(self, text: str) -> str:
        text = self._hide_tokens(text)
        return self._contact.sub(_HIDDEN, text) if self._contact else text

    def _body(self, body: bytes | None) -> dict[str, str | None]:
        """Return a body as text, or else in Base64."""
        if body is None:
            return {"body_as": "text", "body": None}
        try:
            return {"body_as": "text", "body": self.hide(body.decode())}
        except UnicodeDecodeError:
            return {"body_as": "base64", "body": base64.b64encode(body).decode()}

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        with explain_disk_errors(str(path)):
            path.write_text(text, encoding="utf-8", newline="")
