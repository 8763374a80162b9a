"""The pages of a list of titles: found once, then known by their ids.

A title may come to mean another page; an id stays with its page, whatever becomes of the title. The
file beside the corpus says which page each title stood for, and when that was asked. Titles that
are new in the list are asked for and added; what is in the file is never asked for again.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.errors import MalformedInput
from core.storage import Store
from crawlers import mediawiki
from crawlers.mediawiki import MediaWiki, rows_of, take


@dataclass(frozen=True)
class KeptPage:
    """Which page a title stood for.

    Attributes:
        title: as in the list (English).
        language: of the wiki that the page is in.
        page_id: there.
        page_title: its own title there, redirects followed.
        resolved_at: when that was asked; ISO 8601, UTC.
    """

    title: str
    language: str
    page_id: int
    page_title: str
    resolved_at: str


def resolve(
    wiki: MediaWiki, english: MediaWiki, titles: Sequence[str], store: Store, path: str
) -> dict[str, KeptPage | None]:
    """Return the page of each title, from the file where it is there; None if there is none.

    Args:
        wiki: whose pages are wanted.
        english: the wiki whose titles they are.
        titles: in English.
        store: holds the file.
        path: of the file, in the store.

    Raises:
        MalformedInput: the file is damaged.
        SourceUnavailable, AccessRefused, SourceChanged: see ``MediaWiki``.
    """
    language = wiki.edition.language
    known = _read(store, path)
    missing = [title for title in titles if (language, title) not in known]
    if missing:
        found = _ask(wiki, english, missing)
        # Another month may have been crawled meanwhile: what it wrote down stays.
        known = {**{(page.language, page.title): page for page in found}, **_read(store, path)}
        if found:
            rows = [dataclasses.asdict(known[key]) for key in sorted(known)]
            text = json.dumps({"pages": rows}, ensure_ascii=False, indent=1) + "\n"
            store.write_bytes(path, text.encode())
    return {title: known.get((language, title)) for title in titles}


def _read(store: Store, path: str) -> dict[tuple[str, str], KeptPage]:
    if not store.exists(path):
        return {}
    try:
        pages = [KeptPage(**row) for row in json.loads(store.read_bytes(path))["pages"]]
        if not all(isinstance(page.page_id, int) for page in pages):
            raise ValueError("a page_id is no number")
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedInput(
            f"{store.url(path)} is not the list of pages that a crawl wrote ({error}); "
            "restore it from a backup, or delete it to have the titles looked up again"
        ) from error
    return {(page.language, page.title): page for page in pages}


def _ask(wiki: MediaWiki, english: MediaWiki, titles: Sequence[str]) -> Iterable[KeptPage]:
    local = {title: title for title in titles}
    if wiki.edition != english.edition:
        local = _titles_in(english, titles, wiki.edition.language)
    pages, asked_at = _look_up(wiki, list(local.values()))
    resolved_at = asked_at.isoformat(timespec="seconds")
    return [
        KeptPage(title, wiki.edition.language, *page, resolved_at)
        for title, name in local.items()
        if (page := pages[name])
    ]


def _titles_in(english: MediaWiki, titles: Sequence[str], language: str) -> dict[str, str]:
    """Return what the same pages are called in another language, where they are there."""
    target: dict[str, str] = {}
    names: dict[str, str] = {}
    for batch in mediawiki.batches(titles, mediawiki.BATCH):
        params: Mapping[str, str | int] = {"titles": mediawiki.join(batch), "redirects": 1}
        for piece, _ in english.query(prop="langlinks", lllang=language, lllimit="max", **params):
            target |= _renamings(piece)
            for page in rows_of(piece, "pages"):
                for link in rows_of(page, "langlinks"):
                    names[take(page, "title", str)] = take(link, "title", str)
    return {title: names[end] for title in titles if (end := _follow(title, target)) in names}


def _look_up(
    wiki: MediaWiki, titles: Sequence[str]
) -> tuple[dict[str, tuple[int, str] | None], dt.datetime]:
    """Return id and own title of each title's page, redirects followed, and when that was."""
    target: dict[str, str] = {}
    pages: dict[str, tuple[int, str] | None] = {}
    asked_at = dt.datetime.now(dt.UTC)
    for batch in mediawiki.batches(titles, mediawiki.BATCH):
        params: Mapping[str, str | int] = {"titles": mediawiki.join(batch), "redirects": 1}
        for piece, answered_at in wiki.query(prop="info", **params):
            asked_at = answered_at
            target |= _renamings(piece)
            for page in rows_of(piece, "pages"):
                title = take(page, "title", str)
                is_gone = page.get("missing") or page.get("invalid")
                pages[title] = None if is_gone else (take(page, "pageid", int), title)
    return {title: pages.get(_follow(title, target)) for title in titles}, asked_at


def _renamings(piece: Mapping[str, object]) -> dict[str, str]:
    rows = [*rows_of(piece, "normalized"), *rows_of(piece, "redirects")]
    return {take(row, "from", str): take(row, "to", str) for row in rows}


def _follow(title: str, target: Mapping[str, str]) -> str:
    passed = {title}
    while (following := target.get(title)) is not None and following not in passed:
        passed.add(following)
        title = following
    return title
