"""The part of MediaWiki's action API that the crawlers use; shared by the simulated wikis.

Protocol: https://www.mediawiki.org/wiki/API:Query, ``formatversion=2``. Responses hold few rows, so
that clients must follow the field ``continue``. Errors have status 200.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any, TypeVar

from core.json import JsonObject
from core.month import Month
from simulator.limits import LimitedSite
from simulator.server import Request, Response, as_json, as_utc, take_quirk
from simulator.wiki import Page, Revision, Wiki

MAX_ROWS = 20  # maximum number of list rows per response; the real API returns 500
MAX_TEXTS = 8  # maximum number of revisions with text per response; the real API stops at 8 MB
MAX_VALUES = 50  # maximum number of ids or titles per request, as in the real API

T = TypeVar("T")


class WikiSite(LimitedSite):
    """Base class of wiki sites: the API and the HTML pages."""

    keys: tuple[str, ...] = ()  # keys of this site in the ``sites`` setting
    # As on Wikimedia, robots.txt forbids the API to page crawlers; API clients need not obey it.
    robots: str | None = (
        "User-agent: *\n"
        "Allow: /w/api.php?action=mobileview&\nAllow: /w/load.php?\nAllow: /api/rest_v1/?doc\n"
        "Disallow: /w/\nDisallow: /api/\nDisallow: /trap/\nDisallow: /wiki/Special:\n"
    )

    def __init__(self, wiki: Wiki) -> None:
        super().__init__(wiki.world)
        self._wiki = wiki

    def respond_unlimited(self, request: Request) -> Response:
        """Respond to ``/w/api.php``; require a User-Agent header, as Wikimedia does."""
        if not request.headers.get("user-agent"):
            return Response(403, body=b"Please set a user-agent")
        if request.path != "/w/api.php":
            return Response(404)
        args = {name: values[-1] for name, values in request.query.items()}
        if int(args.get("maxlag", "99")) < 0:  # a negative value always gets a lag error
            return lagging(0.5)
        if take_quirk(self, "error_as_200"):
            return lagging(6.2, retry_after_s=1)
        try:
            return as_json(_Query(self, self._wiki, args).response())
        except _ApiError as error:
            return _error(error.code, str(error))
        except ValueError as error:
            return _error("badinteger", str(error))


def lagging(lag_s: float, retry_after_s: int = 5) -> Response:
    """Return MediaWiki's error if the database lags by more than the request's ``maxlag`` (s)."""
    text = f"Waiting for a database server: {lag_s} seconds lagged."
    return _error("maxlag", text, {"Retry-After": str(retry_after_s)}, {"lag": lag_s})


class _ApiError(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Query:
    def __init__(self, site: WikiSite, wiki: Wiki, args: dict[str, str]) -> None:
        self.site = site
        self.wiki = wiki
        self.args = args

    def response(self) -> JsonObject:
        """Return the response to the query; quirks add or leave out fields."""
        response = self._response()
        if take_quirk(self.site, "extra_fields"):
            response = {
                **response,
                "warnings": {"main": {"warnings": "New."}},
                "curtimestamp": "now",
            }
            response["query"] = {**response.get("query", {}), "interwiki": [{"prefix": "x"}]}
        if take_quirk(self.site, "missing_fields"):
            response = _without(
                response, {"parentid", "params", "batchcomplete", "minor", "redirect"}
            )
        return response

    def _response(self) -> JsonObject:
        """Return the response of the list or of the pages that the query names."""
        expected = {"action": "query", "format": "json", "formatversion": "2"}
        for name, value in expected.items():
            if self.args.get(name) != value:
                raise _ApiError("badvalue", f'Unrecognized value for parameter "{name}".')
        lists = {
            "logevents": self._log_events,
            "allrevisions": self._all_revisions,
            "categorymembers": self._category_members,
        }
        name = self.args.get("list", "")
        if name in lists:
            return lists[name]()
        if "titles" in self.args:
            return self._titles()
        if "revids" in self.args:
            return self._revisions_by_id()
        if "pageids" in self.args:
            return self._pages_by_id()
        return {"batchcomplete": True}

    def _values(self, name: str) -> list[str]:
        values = self.args[name].split("|")
        if len(values) > MAX_VALUES:
            raise _ApiError("toomanyvalues", f'Too many values supplied for parameter "{name}".')
        return values

    def _time(self, name: str, default: dt.datetime) -> dt.datetime:
        text = self.args.get(name)
        return dt.datetime.fromisoformat(text) if text else default

    def _limit(self, name: str) -> int:
        text = self.args.get(name, "10")
        return MAX_ROWS if text == "max" else min(int(text), MAX_ROWS)

    def _log_events(self) -> JsonObject:
        """Return the creations of pages between two moments."""
        if self.args.get("leaction") != "create/create" or self.args.get("ledir") != "newer":
            raise _ApiError("badvalue", "the simulated log lists creations only, oldest first")
        world = self.wiki.world
        start = self._time("lestart", world.first.start)
        end = self._time("leend", world.last.end)
        first = max(Month.of(start), world.first)
        last = min(Month.of(end), world.last)
        months = [first + n for n in range(max(0, last.months_since(first) + 1))]
        pages = [page for month in months for page in self.wiki.pages_created(month)]
        rows = [_log_row(page) for page in pages]
        rows = [row for row in rows if start <= dt.datetime.fromisoformat(row["timestamp"]) <= end]
        rows.sort(key=_log_key)
        rows, more = self._page_of(rows, _log_key, "le")
        return _paged("logevents", rows, "lecontinue", more)

    def _all_revisions(self) -> JsonObject:
        """Return the edits between two moments, grouped by page."""
        if self.args.get("arvnamespace") != "0" or self.args.get("arvdir") != "newer":
            raise _ApiError("badvalue", "the simulated list has articles only, oldest first")
        world = self.wiki.world
        start = self._time("arvstart", world.first.start)
        end = self._time("arvend", world.last.end)
        if start > end:
            raise _ApiError("badparams", "arvstart must be before arvend")
        months = {
            Month.of(start) + n for n in range(Month.of(end).months_since(Month.of(start)) + 1)
        }
        pages = {p.page_id: p for month in sorted(months) for p in self.wiki.pages_edited(month)}
        seen = [page for page in pages.values() if self._visible(page.page_id)]
        edits = [(row, page) for page in seen for row in page.revisions]
        edits = [edit for edit in edits if start <= edit[0].timestamp <= end]
        edits.sort(key=lambda edit: (edit[0].timestamp, edit[0].revision_id))
        edits, more = self._page_of(edits, lambda edit: _revision_key(edit[0]), "arv")
        groups: list[JsonObject] = []
        for revision, page in edits:
            if page.namespace:  # drafts count towards the limit, but are left out, as in MediaWiki
                continue
            if not groups or groups[-1]["pageid"] != page.page_id:
                groups.append({**_page_row(page), "revisions": []})
            row = self._revision_row(page, revision, self.args.get("arvprop", "ids").split("|"))
            groups[-1]["revisions"].append(row)
        return _paged("allrevisions", groups, "arvcontinue", more)

    def _category_members(self) -> JsonObject:
        """Return the pages of a category, by title."""
        title = self.args.get("cmtitle", "")
        if not title.startswith(("Category:", "Kategorie:")):
            raise _ApiError("invalidcategory", "The category name you entered is not valid.")
        members = [page for page in self.wiki.members(title) if page.oddity != "deleted"]
        members.sort(key=lambda page: page.title)
        members, more = self._page_of(members, lambda page: f"page|{page.page_id}", "cm")
        rows = [
            {key: row[key] for key in ("pageid", "ns", "title")} for row in map(_page_row, members)
        ]
        return _paged("categorymembers", rows, "cmcontinue", more)

    def _page_of(
        self, rows: list[T], key: Callable[[T], str], prefix: str
    ) -> tuple[list[T], str | None]:
        """Return one page of a list, and where the next begins; quirks empty or shift it."""
        begin = self.args.get(f"{prefix}continue")
        limit = self._limit(f"{prefix}limit")
        if rows and begin is None and take_quirk(self.site, "empty_page"):
            return [], key(rows[0])
        shown, more = _cut(rows, key, begin, limit)
        if more and len(shown) > 1 and take_quirk(self.site, "moving_items"):
            more = key(shown[-1])  # the next page repeats this row, as if a row had been inserted
        return shown, more

    def _titles(self) -> JsonObject:
        """Return pages by title, with normalised titles and redirects."""
        normalized = []
        redirects = []
        pages = []
        for asked in self._values("titles"):
            title = asked.replace("_", " ").strip()
            title = title[:1].upper() + title[1:]
            if title != asked:
                normalized.append({"fromencoded": False, "from": asked, "to": title})
            page, target = self.wiki.find(title)
            if page and target != title:
                redirects.append({"from": title, "to": target})
            pages.append(_page_row(page) if page else {"ns": 0, "title": title, "missing": True})
            language = self.args.get("lllang", "")
            name = self.wiki.title_in(language, page.title) if page else None
            if name:
                pages[-1]["langlinks"] = [{"lang": language, "title": name}]
        query = {"normalized": normalized, "redirects": redirects, "pages": pages}
        return {"batchcomplete": True, "query": {key: rows for key, rows in query.items() if rows}}

    def _pages_by_id(self) -> JsonObject:
        ids = [int(value) for value in self._values("pageids")]
        is_listing = any(f"rv{name}" in self.args for name in ("limit", "start", "end", "dir"))
        if not is_listing:
            return self._latest(ids)
        if len(ids) > 1:
            raise _ApiError("invalidparammix", "rvstart and the like may be used on one page only.")
        page = self._visible(ids[0])
        if page is None:
            return {"batchcomplete": True, "query": {"pages": [_missing(ids[0])]}}
        is_newer = self.args.get("rvdir") == "newer"
        bounds = "rvstart", "rvend"
        early, late = bounds if is_newer else bounds[::-1]
        oldest = self._time(early, page.revisions[0].timestamp)
        newest = self._time(late, page.revisions[-1].timestamp)
        rows = [row for row in page.revisions if oldest <= row.timestamp <= newest]
        rows = rows if is_newer else rows[::-1]
        rows, more = _cut(rows, _revision_key, self.args.get("rvcontinue"), self._limit("rvlimit"))
        found = _page_row(page)
        if rows:
            found["revisions"] = [self._revision_row(page, row) for row in rows]
        return _paged("pages", [found], "rvcontinue", more)

    def _latest(self, ids: list[int]) -> JsonObject:
        rows: list[JsonObject] = []
        found: list[tuple[JsonObject, Page]] = []
        for page_id in sorted(set(ids)):
            page = self._visible(page_id)
            rows.append(_page_row(page) if page else _missing(page_id))
            if page:
                found.append((rows[-1], page))
            if page and page.oddity == "disambiguation" and "pageprops" in self.args["prop"]:
                rows[-1]["pageprops"] = {"disambiguation": ""}
        found, more = _cut(
            found, lambda pair: f"{pair[1].page_id}|0", self.args.get("rvcontinue"), MAX_ROWS
        )
        for row, page in found:
            row["revisions"] = [self._revision_row(page, page.revisions[-1])]
        return _paged("pages", rows, "rvcontinue", more)

    def _revisions_by_id(self) -> JsonObject:
        ids = sorted({int(value) for value in self._values("revids")})
        pages: dict[int, JsonObject] = {}
        bad: dict[str, JsonObject] = {}
        found: list[tuple[JsonObject, Page, Revision]] = []
        for revision_id in ids:
            page = self.wiki.page_of_revision(revision_id)
            page = self._visible(page.page_id) if page else None
            versions = {row.revision_id: row for row in page.revisions} if page else {}
            if page and revision_id in versions:
                row = pages.setdefault(page.page_id, _page_row(page))
                found.append((row, page, versions[revision_id]))
                if page.oddity == "disambiguation" and "pageprops" in self.args["prop"]:
                    row["pageprops"] = {"disambiguation": ""}
            else:
                bad[str(revision_id)] = {"revid": revision_id, "missing": True}
        found, more = _cut(
            found, lambda each: str(each[2].revision_id), self.args.get("rvcontinue"), MAX_TEXTS
        )
        for row, page, revision in found:
            row.setdefault("revisions", []).append(self._revision_row(page, revision))
        response = _paged("pages", list(pages.values()), "rvcontinue", more)
        if bad:
            response["query"]["badrevids"] = bad
        return response

    def _visible(self, page_id: int) -> Page | None:
        page = self.wiki.page(page_id)
        return None if page is None or page.oddity == "deleted" else page

    def _revision_row(
        self, page: Page, revision: Revision, fields: list[str] | None = None
    ) -> JsonObject:
        """Return the wanted fields of a revision."""
        fields = fields or self.args.get("rvprop", "ids|timestamp|flags|comment|user").split("|")
        row: JsonObject = {}
        if "ids" in fields:
            index = page.revisions.index(revision)
            parent_id = page.revisions[index - 1].revision_id if index else 0
            row.update(revid=revision.revision_id, parentid=parent_id)
        if "flags" in fields:
            row["minor"] = revision.is_minor
        if "timestamp" in fields:
            row["timestamp"] = as_utc(revision.timestamp)
        if "content" in fields:
            slot: JsonObject = {"contentmodel": "wikitext", "contentformat": "text/x-wiki"}
            hidden = {"texthidden": True}
            slot.update({"content": revision.wikitext} if revision.wikitext else hidden)
            row["slots"] = {"main": slot}
        return row


def _log_row(page: Page) -> JsonObject:
    """Return the log entry of a page's creation."""
    timestamp = as_utc(page.revisions[0].timestamp)
    row: JsonObject = {"logid": page.page_id + 7, "type": "create", "action": "create"}
    row.update(timestamp=timestamp, params={}, ns=0)
    if page.oddity == "concealed":
        return {**row, "actionhidden": True, "suppressed": True}
    # ``pageid`` is the page that has the title now; ``logpage`` is the page that was created.
    is_gone = page.oddity in ("deleted", "moved")
    row.update(title=page.title.removeprefix("Draft:"), pageid=0 if is_gone else page.page_id)
    row.update(logpage=page.page_id, revid=page.revisions[0].revision_id)
    return row


def _page_row(page: Page) -> JsonObject:
    row: JsonObject = {"pageid": page.page_id, "ns": page.namespace, "title": page.title}
    return {**row, "redirect": True} if page.oddity == "redirect" else row


def _missing(page_id: int) -> JsonObject:
    return {"pageid": page_id, "missing": True}


def _log_key(row: JsonObject) -> str:
    return f"{re.sub('[^0-9]', '', row['timestamp'])}|{row['logid']}"


def _revision_key(revision: Revision) -> str:
    return f"{revision.timestamp:%Y%m%d%H%M%S}|{revision.revision_id}"


def _cut(
    rows: list[T], key: Callable[[T], str], begin: str | None, limit: int
) -> tuple[list[T], str | None]:
    """Return the rows from ``begin`` on, at most ``limit``, and the key of the next row."""
    if begin is not None:
        keys = [key(row) for row in rows]
        if begin not in keys:
            raise _ApiError("badcontinue", "Invalid continue param.")
        rows = rows[keys.index(begin) :]
    return rows[:limit], key(rows[limit]) if len(rows) > limit else None


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items() if key not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value


def _paged(name: str, rows: list[JsonObject], parameter: str, more: str | None) -> JsonObject:
    response: JsonObject = {"query": {name: rows}}
    if more is None:
        return {"batchcomplete": True, **response}
    return {"continue": {parameter: more, "continue": "||"}, **response}


def _error(
    code: str, text: str, headers: dict[str, str] | None = None, data: JsonObject | None = None
) -> Response:
    error = {"code": code, "text": text, **({"data": data} if data else {})}
    return as_json({"errors": [error], "docref": "See /w/api.php"}, headers=headers)
