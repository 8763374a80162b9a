import bz2
import datetime as dt
from collections.abc import Callable, Iterator

import pytest

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import wikipedia_new
from crawlers.web.fetcher import Fetcher
from crawlers.wikipedia_new import DumpedCreation, list_creations
from simulator.server import Fault, Web, serve_sites
from simulator.sites.wikimedia import Dumps
from simulator.world import World

MONTH = Month("2017-03")
WORLD = World(2, MONTH - 1, MONTH + 1, stories_per_month=24)
Listing = Callable[..., list[DumpedCreation]]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_sites([Dumps(WORLD)]) as running:
        yield running


@pytest.fixture
def listing(settings: Settings, web: Web) -> Listing:
    own = settings.model_copy(update={"sites": web.urls})

    def run(database: str = "enwiki") -> list[DumpedCreation]:
        sites = {"wikimedia_dumps": "https://unused.example"}
        return list(list_creations(Fetcher(own, sites, 0, use_cache=False), database, MONTH))

    return run


def _row(page_id: str = "5", stamp: str = "2017-03-02 10:00:00.0", columns: int = 78) -> bytes:
    cells = [""] * columns
    at = {76: 26, 78: 28}.get(columns, 20)
    cells[:5] = ["enwiki", "1", "page", "create", stamp]
    cells[at], cells[at + 1], cells[at + 3], cells[at + 8] = page_id, r"A_b\tc", "0", "false"
    return "\t".join(cells).encode() + b"\n"


def _give(web: Web, body: bytes) -> None:
    web.faults.append(Fault("status", "wikimedia_dumps", r"tsv\.bz2", 1, 200, body=body))


@pytest.mark.parametrize("database", ["enwiki", "dewiki"])
def test_creations_of_the_month_alone_are_listed(database: str, listing: Listing) -> None:
    found = listing(database)
    assert len(found) > 24
    assert all(row.created_at in MONTH for row in found)
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
        (bz2.compress(_row(columns=60)), "got 60"),
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


@pytest.mark.long
def test_a_bomb_is_not_unpacked(
    listing: Listing, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wikipedia_new, "MAX_UNPACKED_BYTES", 2**22)
    _give(web, bz2.compress(_row() * 40_000))
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
