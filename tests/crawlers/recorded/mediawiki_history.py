"""Columns of two snapshots of the mediawiki_history dumps; rows of these columns are made here."""

import bz2
import datetime as dt
from pathlib import Path

from core.month import Month
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from crawlers.wikipedia_new import DUMPS_SITE, FOLDER, DumpedCreation, list_creations
from simulator.server import Request, Response
from tests.crawlers.recorded import Case, Replay, replay

MONTH, SNAPSHOT = Month("2017-03"), "2026-08"
FILE = f"{SNAPSHOT}.enwiki.{MONTH}.tsv.bz2"
EVENT = {"wiki_db": "enwiki", "event_timestamp": "2017-03-02 10:00:00.0", "event_log_id": "77"}
PAGE = {
    "page_id": "53", "page_title_historical": "A_b", "page_title": "C_d", "page_namespace": "118",
    "page_namespace_historical": "0", "page_is_redirect": "false", "page_is_deleted": "false",
}  # fmt: skip


def read_columns(path: Path) -> list[str]:
    """Return the columns' names; those that the recording only counts are ``""``."""
    *names, others = path.read_text(encoding="utf-8").splitlines()
    return [*names, *[""] * int(others.split()[2])]


def is_a_creation(path: Path, settings: Settings) -> None:
    columns = read_columns(path)
    kinds = {("revision", "create"), ("page", "create"), ("user", "create"), ("page", "move")}
    lines = []
    for entity, kind in sorted(kinds):
        cells = {**EVENT, "event_entity": entity, "event_type": kind}
        cells |= PAGE if entity != "user" else {}
        lines.append("\t".join(cells.get(name, "") for name in columns))
    packed = bz2.compress("".join(f"{line}\n" for line in lines).encode())
    pages = {
        FOLDER: f'<a href="{SNAPSHOT}/">{SNAPSHOT}/</a>'.encode(),
        f"{FOLDER}{SNAPSHOT}/enwiki/": f'<a href="{FILE}">{FILE}</a>'.encode(),
        f"{FOLDER}{SNAPSHOT}/enwiki/{FILE}": packed,
    }

    def respond(request: Request) -> Response | None:
        return Response(body=pages[request.path]) if request.path in pages else None

    with replay(settings, Replay((DUMPS_SITE,), respond)) as (own, _):
        found = list_creations(Fetcher(own, own.sites, 0), "enwiki", MONTH)
    moment = dt.datetime(2017, 3, 2, 10, tzinfo=dt.UTC)
    assert found == [DumpedCreation(53, "A b", moment, is_deleted=False)]


CASES = [
    Case(f"mediawiki_history/columns_{name}.txt", is_a_creation)
    for name in ("76_snapshot_2026-03", "78_snapshot_2026-08")
]
