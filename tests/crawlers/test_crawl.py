import dataclasses
import datetime as dt
import hashlib
import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from core.corpus.partition import (
    Partition,
    Seal,
    document_id,
    list_sealed,
    read_seal,
)
from core.corpus.sealing import accept_held, read_held
from core.corpus.tombstones import item_key, write_tombstone
from core.errors import (
    EmptyPartition,
    FutureMonth,
    PartitionHeld,
    SourceChanged,
    UnknownName,
    UsageError,
)
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers import registry
from crawlers.contract import DROP_REASONS, Repeat
from crawlers.crawling.crawl import crawl_partition
from crawlers.crawling.manifest import lack_of
from crawlers.registry import load_crawler
from crawlers.text.cleaning import CLEANER_VERSION
from crawlers.web.pacing import CircuitOpen
from simulator.server import Fault, Request, Response, Web
from tests.crawlers.conftest import prose, rows_of
from tests.forks import Forks, forking

MARCH = Month("2024-03")
TOY = Partition("toy", MARCH)
ROOT = Path(__file__).resolve().parents[2]
Crawl = Callable[..., Seal]

# A whole crawler, as somebody would add one: it reads a list of items, then each item's page.
CRAWLER = """
import datetime as dt

from core.errors import ItemUnavailable
from crawlers.contract import Document, Drop, SourceInfo

INFO = SourceInfo(
    name="toy", title="Toy", licence="MIT", language="en", category="test",
    sites={"toy": "http://127.0.0.1:9"},
)


def fetch_month(month, context):
    for item in context.fetcher.get("toy", "/items").json():
        try:
            page = context.fetcher.get("toy", f"/item/{item['id']}")
        except ItemUnavailable as error:
            yield Drop(item["id"], error.reason, str(error))
            continue
        yield Document(
            native_id=item["id"], version_id=item.get("version"), text=page.body.decode(),
            title=item.get("title", ""), url=page.url,
            event_time=dt.datetime.fromisoformat(item.get("time", "2024-03-10T00:00:00+00:00")),
            date_kind="created", text_as_of=page.retrieved_at, retrieved_at=page.retrieved_at,
            licence=item.get("licence", "CC0-1.0"), attribution="us", language=item.get("language"),
            extra=item.get("extra", {}), cluster_id=item.get("cluster"),
        )
"""


class ToySite:
    keys = ("toy",)
    robots: str | None = None

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.pages: dict[str, str | None] = {}
        self.is_down = False
        self.has_validators = False

    def add(self, id_: str, text: str | None = None, **item: Any) -> None:
        self.items.append({"id": id_, **item})
        self.pages[f"/item/{id_}"] = f"{id_}: {prose(id_)}" if text is None else text

    def add_all(self, *ids: str) -> None:
        for id_ in ids:
            self.add(id_)

    def respond(self, request: Request) -> Response:
        if request.path == "/items":
            return self._page(request, json.dumps(self.items).encode())
        text = self.pages[request.path]
        if self.is_down or text is None:
            return Response(403 if self.is_down else 404)
        return self._page(request, text.encode())

    def _page(self, request: Request, body: bytes) -> Response:
        if not self.has_validators:
            return Response(body=body)
        headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"'}
        is_known = request.headers.get("if-none-match") == headers["ETag"]
        return Response(304, headers) if is_known else Response(200, headers, body)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToySite]:
    folder = tmp_path / "more_crawlers"
    folder.mkdir()
    (folder / "toy.py").write_text(CRAWLER)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(registry, "OPEN", (*registry.OPEN, "toy"))
    yield ToySite()
    sys.modules.pop("toy", None)


@pytest.fixture
def crawl_settings(settings: Settings, web: Web) -> Settings:
    return settings.model_copy(update={"sites": web.urls})


@pytest.fixture
def crawl(store: Store, crawl_settings: Settings) -> Crawl:
    def run(month: Month = MARCH, settings: Settings = crawl_settings, **choices: Any) -> Seal:
        return crawl_partition("toy", month, store, settings, **choices)

    return run


def _dropped(store: Store) -> list[tuple[str, str]]:
    data = zstandard.decompress(store.read_bytes(f"{TOY.path}/dropped.jsonl.zst"))
    drops = [json.loads(line) for line in data.splitlines()]
    return [(drop["native_id"], drop["reason"]) for drop in drops]


def test_a_month_is_crawled_cleaned_and_sealed(
    crawl: Crawl, site: ToySite, web: Web, store: Store
) -> None:
    site.add("a", f"<b>A</b>\r\n{prose(1)}\x00", title="A\u200b title", extra={"n": 1})
    site.add("b", f"\tif a < b: '<b>'\n{prose(2)}\n", language="code:python", version="v2")
    site.add("c", cluster="group")
    seal = crawl(seed=7, limit=10)
    a, b, c = rows_of(store, seal)
    assert a["text"] == f"A\n{prose(1)}"
    assert b["text"] == f"\tif a < b: '<b>'\n{prose(2)}\n"
    assert (a["title"], json.loads(a["extra"]), b["extra"]) == ("A title", {"n": 1}, None)
    assert (a["version_id"], b["version_id"]) == (None, "v2")
    assert (a["cluster_id"], c["cluster_id"]) == ("a", "group")
    assert (a["language"], b["language"], a["category"]) == ("en", "code:python", "test")
    assert (a["licence"], a["date_kind"]) == ("CC0-1.0", "created")
    assert {row["month"] for row in (a, b, c)} == {MARCH.first_day}
    manifest = seal.manifest
    assert (manifest["requested"], manifest["kept"], manifest["dropped"]) == (3, 3, {})
    assert (manifest["seed"], manifest["limit"]) == (7, 10)
    assert manifest["base_urls"] == web.urls
    assert "tidemark/" in str(manifest["user_agent"])
    assert seal.regime == manifest["regime"] == f"cleaner-{CLEANER_VERSION}"
    assert manifest["window"] == {
        "start": "2024-03-01T00:00:00+00:00",
        "end": "2024-04-01T00:00:00+00:00",
    }
    assert manifest["requests"]["2xx"] >= 4  # type: ignore[index, call-overload]


def test_every_item_is_accounted_for(
    crawl: Crawl, site: ToySite, store: Store, crawl_settings: Settings
) -> None:
    site.add("kept")
    site.add("gone")
    site.pages["/item/gone"] = None
    site.add("blank", " \u200b<br>\n")
    site.add("short", "Not long.")
    site.add("long", "x" * 2000)
    site.add("early", time="2024-02-29T23:59:59+00:00")
    site.add("late", time="2024-04-01T00:00:00+00:00")
    site.add("first", time="2024-03-01T00:00:00+00:00")
    site.add("zone", time="2024-03-31T23:00:00-05:00")
    site.add("copy", f"kept: {prose('kept')}", time="2024-03-11T00:00:00+00:00")
    site.add("kept")
    settings = crawl_settings.model_copy(update={"max_document_bytes": 1000})
    seal = crawl(settings=settings)
    expected = [
        ("gone", "http_404"), ("blank", "empty"), ("short", "too_short"), ("long", "too_long"),
        ("early", "outside_month"), ("late", "outside_month"), ("zone", "outside_month"),
        ("kept", "repeated"), ("copy", "exact_dup"),
    ]  # fmt: skip
    assert _dropped(store) == expected
    assert [row["native_id"] for row in rows_of(store, seal)] == ["kept", "first"]
    assert seal.manifest["requested"] == 2 + len(expected)
    assert {reason for _, reason in expected} <= {*DROP_REASONS, "repeated"}
    assert sum(seal.manifest["dropped"].values()) == len(expected) - 1
    assert seal.manifest["repeated"] == 1
    assert not seal.is_partial


def test_a_sealed_month_asks_for_nothing(
    crawl: Crawl, site: ToySite, web: Web, crawl_settings: Settings
) -> None:
    site.add("a")
    seal = crawl()
    web.requests.clear()
    site.add("b")
    assert crawl() == seal
    past = {"corpus_as_of": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}
    assert crawl(settings=crawl_settings.model_copy(update=past)) == seal
    assert web.requests == []


def test_replace_fetches_anew(crawl: Crawl, site: ToySite, store: Store) -> None:
    site.add("a")
    first = crawl()
    site.add("b")
    second = crawl(replace=True)
    assert (first.num_documents, second.num_documents) == (1, 2)
    assert (first.version, second.version) == (1, 2)
    assert [row["native_id"] for row in rows_of(store, second)] == ["a", "b"]
    assert [row["native_id"] for row in rows_of(store, first)] == ["a"]
    assert read_seal(store, TOY) == second
    again = crawl(replace=True)
    assert (again.version, again.digest, again.sealed_at) == (2, second.digest, second.sealed_at)


def test_a_crawl_that_drops_nearly_all_is_held_back_until_it_is_accepted(
    crawl: Crawl, site: ToySite, store: Store
) -> None:
    site.add("good")
    for number in range(19):
        site.add(f"short{number}", "too short")
    with pytest.raises(PartitionHeld, match="19 of 20 items dropped .19 too_short."):
        crawl()
    assert read_seal(store, TOY) is None
    with pytest.raises(PartitionHeld):  # not reviewed, and the site is unchanged
        crawl()
    seal = accept_held(store, TOY, "such is the site")
    assert (seal.num_documents, seal.manifest["status"]) == (1, "complete")
    assert len(_dropped(store)) == 19
    assert crawl() == seal


def test_a_better_crawl_takes_the_place_of_what_is_held(
    crawl: Crawl, site: ToySite, store: Store
) -> None:
    for number in range(20):
        site.add(f"item{number}", "too short" if number else None)
    with pytest.raises(PartitionHeld):
        crawl()
    for number in range(20):
        site.pages[f"/item/item{number}"] = f"{number}: {prose(number)}"
    seal = crawl(replace=True)
    assert seal.num_documents == 20
    assert read_held(store, TOY) is None


@pytest.mark.parametrize("by", ["document", "item"])
def test_what_is_forgotten_is_not_crawled_again(
    crawl: Crawl, by: str, site: ToySite, store: Store
) -> None:
    site.add("a", version="1")
    site.add("b", version="1")
    forgotten = document_id("toy", "a", "1") if by == "document" else item_key("toy", "a")
    write_tombstone(store, forgotten, "asked")
    seal = crawl()
    assert [row["native_id"] for row in rows_of(store, seal)] == ["b"]
    assert seal.manifest["dropped"] == {"forgotten": 1}
    assert _dropped(store) == [(item_key("toy", "a"), "forgotten")]
    site.items[0]["version"] = "2"
    seal = crawl(replace=True)
    ids = {"document": ["a", "b"], "item": ["b"]}[by]
    assert [row["native_id"] for row in rows_of(store, seal)] == ids


def test_a_crawl_that_was_stopped_goes_on_from_the_cache(
    crawl: Crawl, site: ToySite, web: Web, store: Store
) -> None:
    site.add_all(*"abc")
    site.items.insert(2, {"id": "odd", "time": "yesterday"})
    site.pages["/item/odd"] = prose("odd")
    with pytest.raises(ValueError, match="yesterday"):
        crawl()
    assert list_sealed(store) == []
    assert store.list(f"{TOY.path}/*") == []
    # The cached list still has the odd item; replace would request it again.
    fetched = [path for _, _, path in web.requests]
    with pytest.raises(ValueError, match="yesterday"):
        crawl()
    again = [path for _, _, path in web.requests][len(fetched) :]
    assert not {"/items", "/item/a", "/item/b"} & set(again)
    del site.items[2]
    seal = crawl(replace=True)
    assert [row["native_id"] for row in rows_of(store, seal)] == ["a", "b", "c"]


_KILLED = """
import os, sys
from tests.forks import serve
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers import contract, registry
from crawlers.crawling.crawl import crawl_partition

class Killing(contract.Fetcher):
    left = 0

    def get(self, *arguments, **options):
        if not Killing.left:
            os.kill(os.getpid(), 9)
        Killing.left -= 1
        return super().get(*arguments, **options)

contract.Fetcher = Killing

def crawl(job):
    sys.path.append(job["folder"])
    registry.OPEN += ("toy",)
    Killing.left = job["pages"]
    settings = Settings(home=job["home"], request_interval_s=0, sites={"toy": job["url"]})
    crawl_partition("toy", Month("2024-03"), Store(settings.home), settings)

serve(crawl)
"""


@pytest.fixture(scope="module")
def killed_crawls() -> Iterator[Forks]:
    with forking(_KILLED, {}) as forks:
        yield forks


@pytest.mark.parametrize("pages", [0, 1, 4, 6])
def test_a_killed_crawl_ends_like_one_that_was_not(
    site: ToySite,
    web: Web,
    crawl_settings: Settings,
    tmp_path: Path,
    killed_crawls: Forks,
    pages: int,
) -> None:
    site.add_all(*"abcdef")
    undisturbed = crawl_partition("toy", MARCH, Store(str(tmp_path / "other")), crawl_settings)
    home, folder = str(tmp_path / "killed"), str(tmp_path / "more_crawlers")
    job = {"folder": folder, "home": home, "url": web.urls["toy"], "pages": pages}
    assert killed_crawls.run(job) == -signal.SIGKILL
    killed = Store(home)
    assert list_sealed(killed) == []
    before = len(web.requests)
    settings = crawl_settings.model_copy(update={"home": home})
    seal = crawl_partition("toy", MARCH, killed, settings)
    assert seal.digest == undisturbed.digest
    assert list((settings.scratch / "hygiene").iterdir()) == []  # the killed run left a file
    asked = [path for _, _, path in web.requests[before:] if path != "/robots.txt"]
    assert len(asked) == 7 - pages  # the list and six pages, less what the killed run had
    assert (
        rows_of(killed, seal)[0]["text"]
        == rows_of(Store(str(tmp_path / "other")), undisturbed)[0]["text"]
    )


def test_an_empty_month_is_never_sealed(crawl: Crawl, site: ToySite, store: Store) -> None:
    site.add("a", "short")
    site.add("b", "short, too")
    with pytest.raises(EmptyPartition, match=r"toy 2024-03.*'too_short': 2"):
        crawl()
    assert read_seal(store, TOY) is None
    assert store.list(f"{TOY.path}/*") == []


def test_an_empty_month_leaves_the_old_one_in_place(
    crawl: Crawl, site: ToySite, store: Store
) -> None:
    site.add("a")
    seal = crawl()
    site.items.clear()
    with pytest.raises(EmptyPartition):
        crawl(replace=True)
    assert read_seal(store, TOY) == seal
    assert len(rows_of(store, seal)) == 1


def test_a_site_that_refuses_us_stops_the_crawl(crawl: Crawl, site: ToySite, store: Store) -> None:
    for number in range(30):
        site.add(f"i{number}")
    site.is_down = True
    with pytest.raises(CircuitOpen, match="10 requests in a row were refused"):
        crawl()
    assert list_sealed(store) == []


def test_a_partial_month_is_completed_by_the_next_crawl(
    crawl: Crawl, site: ToySite, web: Web, store: Store
) -> None:
    for name in ("one", "two", "three"):
        site.add(name)
    web.faults.append(Fault("status", "toy", "/item/two", 1, 501))
    first = crawl()
    assert [row["native_id"] for row in rows_of(store, first)] == ["one"]
    assert first.is_partial
    assert "/item/two answered 501" in str(lack_of(first))
    web.requests.clear()
    whole = crawl()
    assert not whole.is_partial
    assert lack_of(whole) is None
    assert [row["native_id"] for row in rows_of(store, whole)] == ["one", "two", "three"]
    assert [path for _, _, path in web.requests] == ["/item/two", "/item/three"]
    web.requests.clear()
    assert crawl() == whole
    assert web.requests == []


def test_a_partial_month_that_stays_partial_is_left_alone(
    crawl: Crawl, site: ToySite, web: Web, store: Store, crawl_settings: Settings
) -> None:
    for name in ("one", "two", "three"):
        site.add(name)
    web.faults.append(Fault("status", "toy", "/item/two", 99, 501))
    seal = crawl()
    before = {path: store.sha256(path) for path in store.list(f"{TOY.path}/*")}
    assert crawl() == seal
    shutil.rmtree(crawl_settings.scratch / "http-cache")
    web.faults.append(Fault("status", "toy", "/item/one", 99, 501))  # less than before
    assert crawl() == seal
    web.faults.append(Fault("status", "toy", "/items", 99, 501))  # nothing at all
    assert crawl() == seal
    assert {path: store.sha256(path) for path in store.list(f"{TOY.path}/*")} == before


def test_a_partial_month_is_completed_with_the_sample_it_was_begun_with(
    crawl: Crawl, site: ToySite, web: Web
) -> None:
    site.add_all("one", "two")
    web.faults.append(Fault("status", "toy", "/item/two", 1, 501))
    first = crawl(limit=2, seed=7)
    assert first.is_partial
    whole = crawl()
    assert (whole.manifest["limit"], whole.manifest["seed"]) == (2, 7)
    again = crawl(replace=True)
    assert (again.manifest["limit"], again.manifest["seed"]) == (None, 0)


def test_a_partial_month_is_whole_once_what_failed_is_known_to_be_gone(
    crawl: Crawl, site: ToySite, web: Web
) -> None:
    site.add_all("one", "two")
    web.faults.append(Fault("status", "toy", "/item/two", 1, 501))
    first = crawl()
    site.pages["/item/two"] = None
    whole = crawl()
    assert (whole.digest, whole.is_partial) == (first.digest, False)
    assert whole.manifest["dropped"] == {"http_404": 1}


def test_replace_asks_whether_a_page_has_changed(crawl: Crawl, site: ToySite, store: Store) -> None:
    site.add_all("one", "two")
    site.has_validators = True
    crawl()
    site.pages["/item/two"] = f"Another text. {prose('another')}"
    seal = crawl(replace=True)
    assert [row["text"][:3] for row in rows_of(store, seal)] == ["one", "Ano"]
    assert seal.manifest["requests"]["304"] == 2  # type: ignore[index]
    assert seal.manifest["requests"]["2xx"] == 1  # type: ignore[index]


def test_reparse_asks_for_nothing_that_is_there(
    crawl: Crawl, site: ToySite, web: Web, crawl_settings: Settings
) -> None:
    site.add_all("one", "two")
    first = crawl()
    site.pages["/item/two"] = f"Another text. {prose('another')}"
    web.requests.clear()
    settings = crawl_settings.model_copy(update={"max_document_bytes": 10**6})
    again = crawl(settings=settings, reparse=True)
    assert web.requests == []
    assert (again.digest, again.manifest["max_document_bytes"]) == (first.digest, 10**6)
    [lost] = [p for p in (settings.scratch / "http-cache").rglob("*.zst")
              if b"/item/two" in zstandard.decompress(p.read_bytes())]  # fmt: skip
    lost.unlink()
    crawl(settings=settings, reparse=True)
    assert [path for _, _, path in web.requests] == ["/item/two"]


@pytest.mark.parametrize(
    ("body", "error"), [(b"<h1>Back soon</h1>", SourceChanged), (b"[]", EmptyPartition)]
)
def test_what_a_site_says_in_error_is_not_read_again(
    body: bytes, error: type[Exception], crawl: Crawl, site: ToySite, web: Web
) -> None:
    site.add("a")
    web.faults.append(Fault("status", "toy", "/items", 1, 200, {}, body))
    with pytest.raises(error):
        crawl()
    assert crawl().num_documents == 1


def test_an_item_may_be_called_a_repeat_before_it_comes(
    crawl: Crawl, site: ToySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("a")
    crawler = load_crawler("toy")
    fetch_month = crawler.fetch_month
    monkeypatch.setattr(
        crawler, "fetch_month", lambda *given: itertools.chain([Repeat("a")], fetch_month(*given))
    )
    manifest = crawl().manifest
    assert (manifest["kept"], manifest["repeated"]) == (1, 1)


def test_months_and_names_are_checked_before_anything_is_asked(
    crawl: Crawl, web: Web, store: Store, crawl_settings: Settings
) -> None:
    with pytest.raises(FutureMonth, match="2999-01 is not over"):
        crawl(Month("2999-01"))
    with pytest.raises(UsageError, match="toy 2016-12: toy begins with 2017-01"):
        crawl(Month("2016-12"))
    for name in ("nothing", "http", "contract", "os", "../toy", ""):
        with pytest.raises(UnknownName, match="toy"):
            crawl_partition(name, MARCH, store, crawl_settings)
    assert web.requests == []
    assert not os.path.exists(store.root)  # noqa: PTH110


def test_no_document_is_without_a_licence(
    crawl: Crawl, site: ToySite, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add("own")
    site.add("none", licence=" ")
    own, none = rows_of(store, crawl())
    assert (own["licence"], none["licence"]) == ("CC0-1.0", "MIT")  # the source's
    toy = load_crawler("toy")
    monkeypatch.setattr(toy, "INFO", dataclasses.replace(toy.INFO, licence=""))
    site.pages["/item/none"] = prose("another text: the same would be no new version")
    _, none = rows_of(store, crawl(replace=True))
    assert none["licence"] == "LicenseRef-unknown"
