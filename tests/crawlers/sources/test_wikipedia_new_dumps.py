import bz2
import datetime as dt
from collections.abc import Callable
from typing import cast

import pytest

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import wikipedia_new
from crawlers.web.fetcher import Fetcher
from crawlers.wikipedia_new import DumpedCreation, list_creations
from simulator.server import Fault, Request, Web
from simulator.sites.wikimedia import Dumps as Site
from simulator.world import World

MONTH = Month("2017-03")
WORLD = World(2, MONTH - 1, MONTH + 1, stories_per_month=24)
Listing = Callable[..., list[DumpedCreation]]


@pytest.fixture
def listing(own: Settings) -> Listing:
    def run(database: str = "enwiki") -> list[DumpedCreation]:
        sites = {"wikimedia_dumps": "https://unused.example"}
        return list(list_creations(Fetcher(own, sites, 0, use_cache=False), database, MONTH))

    return run


def _row(page_id: str = "5", stamp: str = "2017-03-02 10:00:00.0", columns: int = 78) -> bytes:
    cells = [""] * columns
    at = {76: 26, 78: 28}.get(columns, 20)
    cells[:4] = ["enwiki", "page", "create", stamp]
    if columns != 76:  # with event_log_id
        cells[:5] = ["enwiki", "1", "page", "create", stamp]
    cells[at], cells[at + 1], cells[at + 3], cells[at + 8] = page_id, r"A_b\tc", "0", "false"
    return "\t".join(cells).encode() + b"\n"


def _give(web: Web, body: bytes) -> None:
    web.faults.append(Fault("status", "wikimedia_dumps", r"tsv\.bz2", 1, 200, body=body))


@pytest.mark.parametrize("num_columns", [76, 78])
@pytest.mark.parametrize("database", ["enwiki", "dewiki"])
def test_creations_of_the_month_alone_are_listed(
    database: str, num_columns: int, listing: Listing, web: Web
) -> None:
    cast(Site, web.sites["wikimedia_dumps"]).num_columns = num_columns
    found = listing(database)
    assert len(found) > 24
    assert all(row.created_at and row.created_at in MONTH for row in found)
    assert sum(row.is_deleted for row in found) == 1


@pytest.mark.parametrize("columns", [76, 78])
def test_both_known_schemas_are_read(columns: int, listing: Listing, web: Web) -> None:
    _give(web, bz2.compress(_row(columns=columns)))
    moment = dt.datetime(2017, 3, 2, 10, tzinfo=dt.UTC)
    assert listing() == [DumpedCreation(5, "A b\tc", moment, False)]


def test_a_file_of_several_streams_is_read_to_its_end(listing: Listing, web: Web) -> None:
    parts = [_row(str(n)) for n in range(1, 9)]
    whole = b"".join(parts)
    _give(web, b"".join(bz2.compress(whole[n : n + 100]) for n in range(0, len(whole), 100)))
    assert [row.page_id for row in listing()] == list(range(1, 9))


def test_a_cut_transfer_is_resumed(listing: Listing, web: Web) -> None:
    whole = listing()
    site = web.sites["wikimedia_dumps"]
    body = site.respond(Request("GET", web.requests[-1][2], {}, {}, b"")).body
    cut = {"Content-Length": str(len(body)), "Connection": "close"}
    for end in (0, 10, len(body) // 2):
        web.faults.append(Fault("status", "wikimedia_dumps", "bz2", 1, 200, cut, body[:end]))
        assert listing() == whole


def test_a_creation_without_a_time_is_listed_for_a_drop(listing: Listing, web: Web) -> None:
    _give(web, bz2.compress(_row("6", stamp="") + _row().replace(b"A_b", b"A\0\xff")))
    assert [(row.page_id, row.title, bool(row.created_at)) for row in listing()] == [
        (6, "A b\tc", False), (5, "A\0\ufffd\tc", True),
    ]  # fmt: skip


def test_other_namespaces_are_creations_of_no_article(listing: Listing, web: Web) -> None:
    _give(web, bz2.compress(b"".join(_row().replace(b"\t0\t", b"\t%b\t" % n) for n in [b"1", b""])))
    assert listing() == []


def test_the_month_is_half_open(listing: Listing, web: Web) -> None:
    stamps = ["2017-02-28 23:59:59.0", "2017-03-01 00:00:00.0", "2017-03-31 23:59:59.0"]
    rows = [_row(str(n), stamp) for n, stamp in enumerate([*stamps, "2017-04-01 00:00:00.0"], 1)]
    _give(web, bz2.compress(b"".join(rows)))
    assert [row.page_id for row in listing()] == [2, 3]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (bz2.compress(_row())[:-9], "ends early"),
        (b"", "ends early"),
        (b"<html>busy</html>", "bzip2"),
        (bz2.compress(_row()) + b"rubbish", "bzip2"),
        (bz2.compress(b""), "none of 0 events"),
        (bz2.compress(_row(columns=60)), "got 60"),
        (bz2.compress(_row(columns=77)), "76 or 78 columns expected, got 77"),
        (bz2.compress(_row() + _row()[:90]), "columns expected, got"),
        (bz2.compress(_row().replace(b"page\t", b"\t")), "revision or user expected in column 3"),
        (
            bz2.compress(_row(columns=76).replace(b"enwiki\t", b"enwiki\t9\t")[:-2] + b"\n"),
            "expected in column 2 of 76, got b'9'",
        ),
        (bz2.compress(_row().replace(b"create", b"move")), "none of 1 events is the creation"),
        (bz2.compress(_row().replace(b"\t0\t", b"\tno\t")), "namespace 'no'"),
        (bz2.compress(_row(stamp="0001-01-01T00:00:00+14:00")), "a time zone"),
        (bz2.compress(_row(page_id="9" * 5000)), "of 5000 digits"),
        (bz2.compress(_row(stamp="yesterday")), "yesterday"),
        (bz2.compress(_row(page_id="x")), "invalid literal"),
        (bz2.compress(b"x" * 3 * 2**20), "a line of more"),
    ],
)
def test_a_damaged_dump_is_no_month_without_articles(
    body: bytes, what: str, listing: Listing, web: Web
) -> None:
    _give(web, body)
    with pytest.raises(SourceChanged, match=what):
        listing()


def test_a_bomb_is_not_unpacked(
    listing: Listing, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikipedia_new, "MAX_UNPACKED_BYTES", 2**18)
    _give(web, bz2.compress(_row() * 2_500))
    with pytest.raises(SourceUnavailable, match="unpacks to over"):
        listing()


def test_a_dump_that_is_gone_says_what_it_was_for(listing: Listing, web: Web) -> None:
    web.faults.append(Fault("status", "wikimedia_dumps", r"tsv\.bz2", 1, 404))
    with pytest.raises(SourceUnavailable, match="before the creation log"):
        listing()


def test_an_empty_folder_is_no_empty_month(listing: Listing, web: Web) -> None:
    web.faults.append(Fault("status", "wikimedia_dumps", "enwiki/$", 1, 200, body=b"<html></html>"))
    with pytest.raises(SourceUnavailable, match="has no file with 2017-03"):
        listing()
