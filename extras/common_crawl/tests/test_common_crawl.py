"""The source `common_crawl` on its simulated site: what is drawn, read, dated and left out."""

import datetime as dt
import gzip
import json
from collections import Counter

import pytest

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, UsageError
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Drop, Failure
from crawlers.registry import load_crawler
from crawlers.web.fetcher import Fetcher
from extras.common_crawl import common_crawl, index
from extras.common_crawl.index import Capture, Crawl, earlier_crawls, list_crawls, read_stamp
from extras.common_crawl.simulator.archive import UNLISTED, CapturedPage, CrawlArchive
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl as RunCrawl
from tests.crawlers.conftest import by_id, count_drops, documents_of, reasons_of

MONTH = Month("2024-02")
WORLD = World(5, MONTH - 1, MONTH + 1, stories_per_month=8)
ARCHIVE = CrawlArchive(WORLD)
SITE_KINDS = (CrawlArchive,)
LEFT_OUT = {"denied": "permission", "empty": "empty", "misplaced": "damaged", "damaged": "damaged"}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A month of the simulated site has some eight blocks."""
    monkeypatch.setattr(index, "NUM_DRAWS", 30)


def listed() -> list[CapturedPage]:
    """Return the month's captures that the index says are English pages."""
    return [page for page in ARCHIVE.of_month(MONTH) if page.oddity not in UNLISTED]


def page_of(document: Document) -> CapturedPage:
    [page] = [
        each
        for each in listed()
        if each.url == document.native_id and each.captured == document.event_time
    ]
    return page


def first_of(url: str) -> dt.datetime:
    return min(ARCHIVE.first_seen(page) for page in listed() if page.url == url)


def ranges_of(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if target.endswith("cluster.idx")]


@pytest.mark.smoke
def test_pages_of_the_month_are_read_from_their_records(crawl: RunCrawl) -> None:
    items = crawl()
    found = by_id(items)
    urls = {page.url for page in listed() if page.oddity not in LEFT_OUT}
    assert len({ARCHIVE.own[each.extra["crawl"]] for each in found.values()}) == 2
    assert found.keys() <= urls
    assert len(found) >= 0.8 * len(urls)
    for document in found.values():
        page = page_of(document)
        assert document.text == page.text
        assert document.title == page.story.title
        assert document.event_time == document.text_as_of == page.captured
        assert document.date_kind == "captured"
        assert document.licence == "LicenseRef-unknown"
        assert document.cluster_id == f"site{page.number % 8}.example"


def test_a_page_has_the_time_of_its_first_sight(crawl: RunCrawl) -> None:
    kinds = Counter[int]()
    for document in documents_of(crawl()):
        first = first_of(document.native_id)
        assert document.extra["first_seen"] == first.isoformat()
        kinds[first.year] += 1
    assert kinds.keys() == {2021, 2022, 2023, 2024}


def test_what_the_index_rules_out_is_not_requested(crawl: RunCrawl) -> None:
    asked = {each.native_id for each in documents_of(crawl())} | reasons_of(crawl()).keys()
    unlisted = {page.url for page in ARCHIVE.of_month(MONTH) if page.oddity in UNLISTED}
    assert unlisted and not asked & unlisted


def test_reasons_of_pages_that_are_left_out(crawl: RunCrawl) -> None:
    pages = {page.url: page for page in listed()}
    reasons = {pages[url].oddity: reason for url, reason in reasons_of(crawl()).items()}
    assert reasons == LEFT_OUT


def test_denied_hosts_are_not_requested(crawl: RunCrawl, own: Settings) -> None:
    """A denied host counts with its subdomains."""
    denied = own.model_copy(update={"denied_hosts": ("example", "bbc.co.uk")})
    assert count_drops(crawl(own=denied)).keys() == {"permission"}


def test_of_the_subset_new_no_earlier_crawl_has_a_page(
    crawl: RunCrawl, own: Settings, web: Web
) -> None:
    crawler = load_crawler("common_crawl:new")
    fetcher = Fetcher(own, crawler.INFO.sites, 0, use_cache=False)
    items = list(crawler.fetch_month(MONTH, CrawlContext(own, fetcher)))
    documents = documents_of(items)
    assert documents
    for document in documents:
        assert first_of(document.native_id) >= MONTH.start
        assert "first_seen" not in document.extra
    seen = [each for each in items if isinstance(each, Drop) and each.reason == "outside_month"]
    assert seen and all(first_of(each.native_id) < MONTH.start for each in seen)


def test_a_sample_reads_no_more_blocks_than_it_needs(crawl: RunCrawl, web: Web) -> None:
    small = crawl(limit=2)
    num_few = len(ranges_of(web))
    assert len(documents_of(small)) == 2
    whole = crawl()
    assert num_few <= 6 < len(ranges_of(web)) - num_few
    kept = [each.native_id for each in documents_of(whole)]
    assert [each.native_id for each in documents_of(small)] == kept[:2]


def test_the_seed_draws_the_pages(crawl: RunCrawl) -> None:
    def of(seed: int) -> list[str]:
        return [each.native_id for each in documents_of(crawl(limit=3, seed=seed))]

    assert of(1) == of(1)
    assert len({tuple(of(seed)) for seed in range(4)}) > 1


def test_a_month_without_a_crawl_says_so(crawl: RunCrawl) -> None:
    [item] = crawl(month=Month("2022-01"))
    assert isinstance(item, Drop) and item.reason == "no_source"


def test_without_stated_times_a_crawl_has_the_weeks_up_to_that_of_its_name(
    own: Settings, web: Web
) -> None:
    body = b'[{"id": "CC-MAIN-2015-11"}, {"id": "CC-MAIN-2009-2010"}'
    fetcher = Fetcher(own, common_crawl.INFO.sites, 0, use_cache=False)
    web.faults.append(Fault("status", "common_crawl", "collinfo", 1, 200, {}, body + b"]"))
    [found] = list_crawls(fetcher)
    assert found.end == dt.datetime(2015, 3, 16, tzinfo=dt.UTC)
    assert found.end - found.start == dt.timedelta(days=28)
    odd = body + b', {"id": "CC-MAIN-2014-99"}]'
    web.faults.append(Fault("status", "common_crawl", "collinfo", 1, 200, {}, odd))
    with pytest.raises(SourceChanged, match="year and week"):
        list_crawls(fetcher)


def crawls_in(*days: str) -> list[Crawl]:
    times = [dt.datetime.fromisoformat(day).replace(tzinfo=dt.UTC) for day in days]
    return [
        Crawl(day, time, time + dt.timedelta(days=14))
        for day, time in zip(days, times, strict=True)
    ]


def test_of_each_earlier_year_the_first_crawl_is_asked_and_all_of_the_last_one() -> None:
    crawls = crawls_in(
        "2021-03-01", "2021-06-01", "2022-01-05", "2023-01-02", "2023-04-01", "2023-12-01",
        "2024-02-20", "2024-04-12",
    )  # fmt: skip
    capture = Capture(crawls[-2], "https://a.example/", crawls[-2].start, "", 0, 1, "eng")
    assert [each.name for each in earlier_crawls(crawls, capture)] == [
        "2021-03-01", "2022-01-05", "2023-01-02", "2023-04-01", "2023-12-01",
    ]  # fmt: skip


@pytest.mark.parametrize("text", [None, "", "2024", "20240230000000", "2024030212000x"])
def test_a_time_that_is_none(text: str | None) -> None:
    assert read_stamp(text) is None


@pytest.mark.parametrize(
    ("request_", "reason"),
    [("/warc/", "damaged_answer"), (r"-index\?", "http_5xx"), ("cdx-", "damaged_answer")],
)
def test_an_answer_that_is_wrong_is_a_failure_of_one_item(
    crawl: RunCrawl, web: Web, request_: str, reason: str
) -> None:
    """A server that sends whole files would send 1 GB; nothing of it is read."""
    web.faults.append(Fault("status", "common_crawl", request_, 5, 200, {}, b"x"))
    failures = [each for each in crawl() if isinstance(each, Failure)]
    assert [each.reason for each in failures] == [reason]


def record_of(page: CapturedPage, **changes: tuple[bytes, bytes]) -> bytes:
    """Return a page's packed record after replacements in what it packs."""
    data = gzip.decompress(page.record)
    for old, new in changes.values():
        assert old in data
        data = data.replace(old, new, 1)
    return gzip.compress(data, mtime=0)


@pytest.fixture
def captured() -> tuple[CapturedPage, Capture]:
    page = next(each for each in listed() if not each.oddity)
    crawl = Crawl("CC-MAIN-2024-10", page.captured, page.captured)
    return page, Capture(crawl, page.url, page.captured, "x.warc.gz", 0, 1, "eng")


def test_a_whole_record_is_read(captured: tuple[CapturedPage, Capture]) -> None:
    page, capture = captured
    assert common_crawl._record_of(page.record, capture).headers["warc-target-uri"] == page.url


@pytest.mark.parametrize(
    "stated", [b"Content-Length: 1", b"Content-Length: 9", b"Content-Length: x"]
)
def test_a_record_of_another_length_than_it_states_is_dropped(
    captured: tuple[CapturedPage, Capture], stated: bytes
) -> None:
    page, capture = captured
    packed = record_of(page, length=(b"Content-Length: ", stated))
    with pytest.raises(ItemUnavailable) as caught:
        common_crawl._record_of(packed, capture)
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_record_that_ends_early_is_dropped(
    captured: tuple[CapturedPage, Capture], share: float
) -> None:
    """The packed bytes are whole, so only the record's own length tells."""
    page, capture = captured
    data = gzip.decompress(page.record)
    cut = gzip.compress(data[: int(share * len(data))], mtime=0)
    with pytest.raises(ItemUnavailable) as caught:
        common_crawl._record_of(cut, capture)
    assert caught.value.reason == "damaged"


def test_an_index_of_another_month_gives_no_page(
    crawl: RunCrawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of crawls has wrong times, so the blocks are of captures of another month."""
    rows = [{"id": "CC-MAIN-2024-06", "from": "2024-03-08T00:00:00", "to": "2024-03-20T00:00:00"}]
    assert any(name == rows[0]["id"] for name in ARCHIVE.own)
    body = json.dumps(rows).encode()
    web.faults.append(Fault("status", "common_crawl", "collinfo", 99, 200, {}, body))
    items = crawl(month=MONTH + 1)
    web.faults.clear()
    assert not documents_of(items)


def test_a_wrong_range_is_refused(crawl: RunCrawl, web: Web) -> None:
    headers = {"Content-Range": "bytes 0-9/100"}
    web.faults.append(Fault("status", "common_crawl", "/warc/", 5, 206, headers, bytes(10)))
    failures = [each for each in crawl() if isinstance(each, Failure)]
    assert [each.reason for each in failures] == ["damaged_answer"]
    assert "asked for bytes" in failures[0].detail


def test_a_list_of_blocks_in_another_form_is_tried_again(crawl: RunCrawl, web: Web) -> None:
    body = b"a line\nanother line\nand one more\n"
    headers = {"Content-Range": f"bytes 0-{len(body) - 1}/{len(body)}"}
    web.faults.append(Fault("status", "common_crawl", "cluster", 5, 206, headers, body))
    with pytest.raises(ItemFailed, match=r"cluster\.idx .*busy"):
        crawl()


@pytest.mark.parametrize("line", [b"odd", b"com,a)/ 2024\tcdx-00000.gz\t0\t99999999\t1"])
def test_a_block_in_another_form_is_a_change(own: Settings, line: bytes) -> None:
    [crawled] = crawls_in("2024-03-01")
    cluster = index._Cluster(crawled, Fetcher(own, common_crawl.INFO.sites, 0))
    with pytest.raises(SourceChanged, match=r"cluster\.idx has the line"):
        cluster._block(line)


def test_half_months_are_refused() -> None:
    with pytest.raises(UsageError, match="no crawl in many half-months"):
        load_crawler("common_crawl:half-month")


def test_a_record_that_unpacks_to_too_much_is_dropped() -> None:
    with pytest.raises(ItemUnavailable, match="more follow") as caught:
        index.unpack_member(gzip.compress(bytes(index.MAX_UNPACKED_BYTES + 1)), "x")
    assert caught.value.reason == "too_large"
