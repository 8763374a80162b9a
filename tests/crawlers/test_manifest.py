import dataclasses
import json
import pickle
import re

import pytest
import zstandard

from core.corpus.partition import Partition
from core.errors import EmptyPartition, TidemarkError
from core.month import Month
from crawlers.contract import Drop, Failure, Regime, Repeat
from crawlers.crawling.manifest import Ledger, cleaned_regime
from crawlers.registry import list_sources, load_crawler
from crawlers.text.cleaning import CLEANER_VERSION

MARCH = Partition("wikipedia", Month("2024-03"))


def test_a_ledger_counts_everything() -> None:
    ledger = Ledger(MARCH)
    outcomes = [
        {"text": "a"},
        Drop("1", "http_404"),
        Drop("2", "too_short", "3 characters"),
        {"text": "b"},
        Drop("3", "too_short"),
        Failure("4", "http_5xx"),
        Repeat("1"),
    ]
    assert list(filter(ledger.keeps, outcomes)) == [{"text": "a"}, {"text": "b"}]
    assert ledger.close() == {
        "status": "partial",
        "ended_early": None,
        "requested": 7,
        "kept": 2,
        "dropped": {"too_short": 2, "http_404": 1},
        "failed": {"http_5xx": 1},
        "repeated": 1,
    }


@pytest.mark.parametrize(
    ("month", "change"),
    [("2025-04", ""), ("2025-05", "losses+"), ("2025-09", "losses+"), ("2025-10", "payloads+")],
)
def test_a_regime_names_the_last_change_and_the_cleaner(month: str, change: str) -> None:
    regimes = (
        Regime(Month("2025-05"), "losses", "items are missing"),
        Regime(Month("2025-10"), "payloads", "items are shorter"),
    )
    info = dataclasses.replace(load_crawler("hackernews").INFO, regimes=regimes)
    label = cleaned_regime(info.regime_of(Month(month)))
    assert label == f"{change}cleaner-{CLEANER_VERSION}"


@pytest.mark.parametrize("source", list_sources())
def test_declared_regimes_are_dated_in_order(source: str) -> None:
    regimes = load_crawler(source).INFO.regimes
    firsts = [regime.first for regime in regimes]
    assert firsts == sorted(set(firsts))
    assert all(re.fullmatch(r"[a-z0-9-]+", regime.label) for regime in regimes)


def test_dropped_items_are_kept_with_their_reasons() -> None:
    ledger = Ledger(MARCH)
    list(filter(ledger.keeps, [Drop("1", "http_404", "x" * 10_000), Drop("é\ud800", "empty")]))
    stored = zstandard.decompress(ledger.dropped_items()).decode().splitlines()
    first, second = map(json.loads, stored)
    assert (first["native_id"], first["reason"]) == ("1", "http_404")
    assert len(first["detail"]) < 1000
    assert second == {"native_id": "é\ud800", "outcome": "dropped", "reason": "empty", "detail": ""}
    assert zstandard.decompress(Ledger(MARCH).dropped_items()) == b""


def test_dropped_items_are_held_compressed() -> None:
    former, ledger = Ledger("a set"), Ledger(MARCH)
    for number in range(20_000):
        former.pass_over(Drop(str(number), "no_date", "x" * 200))
    ledger.begin_with(former)
    ledger.pass_over(Drop("last", "empty"))
    assert ledger.count(Drop) == {"no_date": 20_000, "empty": 1}
    assert len(pickle.dumps(former)) < 2**21
    lines = zstandard.decompress(ledger.dropped_items()).splitlines()
    assert b'"19999"' in lines[19_999] and b'"last"' in lines[20_000]


def test_an_empty_month_is_an_error_with_counts() -> None:
    ledger = Ledger(MARCH)
    list(filter(ledger.keeps, [Drop("1", "too_short"), Drop("2", "too_short")]))
    with pytest.raises(EmptyPartition, match=r"wikipedia 2024-03.*2 requested.*'too_short': 2"):
        ledger.close()
    with pytest.raises(EmptyPartition, match="0 requested, 0 kept, dropped: none"):
        Ledger(MARCH).close()


def test_an_item_that_is_lost_is_an_error() -> None:
    ledger = Ledger(MARCH)
    list(filter(ledger.keeps, [{"text": "a"}]))
    ledger.requested += 1
    with pytest.raises(TidemarkError, match="items were lost .*2 requested, 1 kept"):
        ledger.close()
