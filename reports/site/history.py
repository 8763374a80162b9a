"""Former publications: their pages stay addressable, and the differences make the feed.

``report/state.json`` has the facts that the next publication is compared with. The feed is
``report/changes.json`` (JSON Feed 1.1) and ``report/changes.atom`` (RFC 4287), newest first.
``report/months/<YYYY-MM>/`` is the site as it was when that month was the newest.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from core.corpus.partition import MANIFEST
from core.errors import StorageError
from core.progress import counted
from core.storage.store import Store
from reports.site.context import is_control
from reports.site.figure import Row
from reports.site.findings import listed

STATE = "state.json"
FEED = "changes.json"
ATOM = "changes.atom"
# Links of a page at the root to what is not kept with it, and the same from months/<YYYY-MM>/.
_LINKS = {
    "../warehouse.duckdb": "../../../warehouse.duckdb",
    "../releases/": "../../../releases/",
    "site.duckdb": "../../site.duckdb",
    "months/": "../",
}
MAX_CHANGES = 500  # entries that the feed keeps


@dataclass(frozen=True)
class Change:
    """One entry of the feed."""

    month: str  # newest month of the publication, YYYY-MM
    at: str  # time of the publication, UTC
    kind: str  # model, rank, cutoff, month, held, alarm
    text: str
    page: str  # address relative to the site's root

    @property
    def id(self) -> str:
        """Return a digest that is the same for the same entry of the same month."""
        return hashlib.sha256(f"{self.month}/{self.kind}/{self.text}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Publication:
    """The facts of one publication that the next one is compared with."""

    month: str
    board: Mapping[str, Mapping[str, Any]]  # by model: rank_low, rank_high, cutoff
    documents: Mapping[str, int]  # by source and month, as ``source/YYYY-MM``
    alarms: Sequence[str] = ()
    held: Sequence[str] = ()  # months that failed a check, as ``source/YYYY-MM``

    @classmethod
    def of(cls, month: str, board: Sequence[Row], documents: Mapping[str, int],
           alarms: Sequence[str], held: Sequence[str] = ()) -> Publication:  # fmt: skip
        """Return the facts of the rows of ``queries/board.sql``."""
        kept = {
            row["model"]: {
                "rank_low": row["rank_low"],
                "rank_high": row["rank_high"],
                "cutoff": str(row["estimated_cutoff"] or "")[:7],
            }
            for row in board
        }
        return cls(month, kept, dict(documents), tuple(alarms), tuple(held))


def held_months(store: Store) -> list[str]:
    """Return the months whose newest crawl failed a check, as ``source/YYYY-MM``."""
    found = [path.split("/") for path in store.list(f"corpus/source=*/month=*/held/{MANIFEST}")]
    return sorted(f"{parts[1][len('source=') :]}/{parts[2][len('month=') :]}" for parts in found)


def read_state(store: Store, root: str) -> Publication | None:
    """Return the facts of the current publication; None without one, or if its file is damaged."""
    path = f"{root}/{STATE}"
    try:
        return Publication(**json.loads(store.read_bytes(path))) if store.exists(path) else None
    except (ValueError, TypeError):
        return None


def read_changes(store: Store, root: str) -> list[Change]:
    """Return the entries of the current feed; none if there is no feed, or its file is damaged."""
    path = f"{root}/{FEED}"
    try:
        feed = json.loads(store.read_bytes(path)) if store.exists(path) else {"items": []}
        return [Change(**item["_tidemark"]) for item in feed["items"]]
    except (ValueError, TypeError, KeyError):
        return []


def keep_former(store: Store, root: str, former: Publication | None, month: str) -> None:
    """Copy the current site to ``months/<month>/``, if the new publication has a later month."""
    if former is None or former.month >= month:
        return
    kept = f"{root}/months/"
    for path in store.list(f"{root}/**/*"):
        if path.startswith(kept) or path.endswith(".duckdb"):
            continue
        try:
            content = store.read_bytes(path)
        except StorageError as error:
            if isinstance(error.__cause__, IsADirectoryError):
                continue
            raise
        content = _two_folders_down(content) if path.endswith(".html") else content
        store.write_bytes(f"{kept}{former.month}/{path.removeprefix(f'{root}/')}", content)


def _two_folders_down(page: bytes) -> bytes:
    """Return a kept page whose links to what is not kept lead to the current site."""
    for former, kept in _LINKS.items():
        page = page.replace(f'href="{former}'.encode(), f'href="{kept}'.encode())
    return page


def differences(
    former: Publication | None, current: Publication, at: dt.datetime
) -> Iterator[Change]:
    """Yield what changed since the former publication, most important first."""
    stamp = at.astimezone(dt.UTC).isoformat(timespec="seconds")

    def change(kind: str, text: str, page: str = "index.html") -> Change:
        return Change(current.month, stamp, kind, text, page)

    if former is None:
        sources = {name.rpartition("/")[0] for name in current.documents}
        controls = sum(map(is_control, current.board))
        parts = [(len(current.board) - controls, "model"), (controls, "compressor")]
        names = " and ".join(counted(number, name) for number, name in parts if number)
        models = f"{names} on " if names else ""
        text = f"First publication: {models}{counted(len(sources), 'source')}, up to"
        yield change("month", f"{text} {current.month}.")
        return
    for alarm in current.alarms:
        if alarm not in former.alarms:
            yield change("alarm", alarm, "data.html")
    yield from (change("held", text, "data.html") for text in _held_changes(former, current))
    new = sorted(set(current.board) - set(former.board))
    if new:
        yield change("model", f"New on the board: {listed(new)}.")
    gone = sorted(set(former.board) - set(current.board))
    if gone:
        yield change("model", f"No longer on the board: {listed(gone)}.")
    yield from (change("rank", text) for text in _rank_changes(former.board, current.board))
    yield from (change("cutoff", text) for text in _cutoff_changes(former.board, current.board))
    added = sorted(set(current.documents) - set(former.documents))
    if added:
        number = sum(current.documents[name] for name in added)
        yield change("month", f"{number:,} documents of {listed(added)} are new.", "data.html")


def _held_changes(former: Publication, current: Publication) -> Iterator[str]:
    """Yield which months are newly held back, and which are no longer."""
    held = sorted(set(current.held) - set(former.held))
    if held:
        yield f"Held back, since a check failed: {listed(held)}."
    freed = sorted(set(former.held) - set(current.held))
    if freed:
        yield f"No longer held back: {listed(freed)}."


def _cutoff_changes(
    former: Mapping[str, Mapping[str, Any]], current: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield the models whose measured cutoff changed; arguments are facts by model."""
    for model in sorted(set(former) & set(current)):
        before = former[model]["cutoff"]
        after = current[model]["cutoff"]
        if before != after:
            yield f"Measured cutoff of {model}: {after or 'none'} (before: {before or 'none'})."


def _rank_changes(
    former: Mapping[str, Mapping[str, Any]], current: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield which models can newly be told apart, and which no longer; arguments are by model."""
    both = sorted(model for model in set(former) & set(current) if not is_control(model))
    now_apart = []
    now_alike = []
    for one, other in itertools.combinations(both, 2):
        were_apart = _are_apart(former[one], former[other])
        are_apart = _are_apart(current[one], current[other])
        if are_apart and not were_apart:
            is_better = current[one]["rank_high"] < current[other]["rank_low"]
            better, worse = (one, other) if is_better else (other, one)
            now_apart.append(f"{better} is better than {worse}")
        elif were_apart and not are_apart:
            now_alike.append(f"{one} and {other}")
    if now_apart:
        yield f"Can now be told apart: {listed(now_apart)}."
    if now_alike:
        yield f"Can no longer be told apart: {listed(now_alike)}."


def _are_apart(one: Row, other: Row) -> bool:
    if None in (one["rank_low"], other["rank_low"]):
        return False
    return bool(one["rank_high"] < other["rank_low"] or other["rank_high"] < one["rank_low"])


def state_file(publication: Publication) -> bytes:
    """Return the content of ``state.json``."""
    return (json.dumps(asdict(publication), indent=1) + "\n").encode()


def feed_title(is_simulated: bool) -> str:
    """Return the title of the feeds."""
    title = "tidemark: what changed"
    return f"SIMULATED: {title}" if is_simulated else title


def json_feed(changes: Sequence[Change], address: str, title: str) -> bytes:
    """Return the feed as JSON Feed; ``changes.atom.j2`` is the same as Atom.

    ``address`` is the public one of the site's root; without it, addresses are relative.
    """
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": title,
        "feed_url": f"{address}{FEED}",
        "items": [
            {
                "id": change.id,
                "url": f"{address}{change.page}",
                "title": change.text,
                "content_text": change.text,
                "date_published": change.at,
                "tags": [change.kind, change.month],
                "_tidemark": asdict(change),
            }
            for change in changes
        ],
    }
    return (json.dumps(feed, ensure_ascii=False, indent=1) + "\n").encode()
