from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from core.corpus.partition import Partition, tables_of
from core.corpus.sealing import Description, seal_partition
from core.month import Month, month_range
from core.storage.store import Store
from crawlers.crawling.checks import CrawlResult, find_reasons_to_hold

JULY = Partition("toy", Month("2024-07"))


def _manifest(kept: int, **fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "kind": "crawl", "limit": None, "max_bytes": None, "languages": ("en",), "kept": kept,
        "status": "complete", "dropped": {}, "failed": {},
    }  # fmt: skip
    return {**base, **fields}


def _tables(partition: Partition, num: int, num_bytes: int) -> Iterator[pa.Table]:
    rows = [
        {"native_id": f"n{i}", "date_kind": "created", "licence": "MIT", "text": "x" * num_bytes}
        for i in range(num)
    ]
    return tables_of(rows, partition)


def _seal(store: Store, month: str, num: int, num_bytes: int = 100, **fields: Any) -> None:
    partition = Partition("toy", Month(month))
    tables = _tables(partition, num, num_bytes)
    seal_partition(store, partition, [*tables, Description(_manifest(num, **fields))], replace=True)


def _reasons(store: Store, num: int, num_bytes: int = 100, **fields: Any) -> list[str]:
    crawled = CrawlResult(num, num * num_bytes, _manifest(num, **fields))
    return find_reasons_to_hold(store, JULY, crawled)


def _half_a_year(store: Store, num: int = 60, **fields: Any) -> None:
    for month in month_range(Month("2024-01"), Month("2024-06")):
        _seal(store, str(month), num, **fields)


@pytest.mark.parametrize(
    ("num", "num_bytes", "expected"),
    [
        (60, 100, []),
        (20, 100, []),
        (180, 100, []),
        (19, 100, ["19 documents", "1,900 bytes"]),
        (181, 100, ["181 documents", "18,100 bytes"]),
        (60, 33, ["1,980 bytes"]),
        (60, 301, ["18,060 bytes"]),
    ],
)
def test_size_may_drift_by_a_factor_of_three(
    store: Store, num: int, num_bytes: int, expected: list[str]
) -> None:
    _half_a_year(store)
    reasons = _reasons(store, num, num_bytes)
    assert [reason.partition(", and")[0] for reason in reasons] == expected
    assert all("6 months (2024-01 to 2024-06)" in reason for reason in reasons)


def test_the_median_is_of_the_nearest_earlier_months(store: Store) -> None:
    _seal(store, "2023-12", 1000)
    _half_a_year(store)
    _seal(store, "2024-08", 1000)
    assert _reasons(store, 60) == []
    _seal(store, "2024-06", 1000)  # one odd month, and its version before, count for nothing
    assert _reasons(store, 60) == []


def test_young_sources_have_no_drift(store: Store) -> None:
    _seal(store, "2024-05", 60)
    _seal(store, "2024-06", 60)
    assert _reasons(store, 1) == []
    _seal(store, "2024-04", 60)
    assert len(_reasons(store, 1)) == 2


@pytest.mark.parametrize(
    "otherwise", [{"limit": 5}, {"max_bytes": 10}, {"languages": ("en", "de")}, {"kind": "import"}]
)
def test_months_that_were_crawled_otherwise_tell_nothing(
    store: Store, otherwise: dict[str, Any]
) -> None:
    _half_a_year(store, **otherwise)
    assert _reasons(store, 1) == []
    _half_a_year(store, num=61)
    assert len(_reasons(store, 1)) == 2


def test_a_handful_of_documents_is_no_drift(store: Store) -> None:
    _half_a_year(store, num=3)
    assert _reasons(store, 9) == []
    assert len(_reasons(store, 10)) == 2


def test_shares_of_drops_and_failures_are_bounded(store: Store) -> None:
    assert _reasons(store, 10, dropped={"too_short": 90}) == []
    [reason] = _reasons(store, 10, dropped={"too_short": 90, "licence": 1})
    assert reason == "91 of 101 items dropped (90 too_short, 1 licence), more than 90 %"
    assert (
        _reasons(store, 10, dropped={"sample_cap": 900, "outside_month": 500, "deleted": 500}) == []
    )
    assert _reasons(store, 10, failed={"timeout": 10}, status="partial") == []
    [reason] = _reasons(store, 10, failed={"timeout": 11}, status="partial")
    assert reason == "11 of 21 items failed (11 timeout), more than 50 %"
    assert _reasons(store, 1, failed={"timeout": 8}, status="partial") == []  # of nine in all


def test_a_partial_crawl_does_not_take_the_place_of_one_that_got_more(store: Store) -> None:
    _seal(store, "2024-07", 50, status="partial")
    assert _reasons(store, 50, status="partial") == []
    [reason] = _reasons(store, 49, status="partial")
    assert reason == "partial, with 49 documents, and version 1 has 50"
    assert _reasons(store, 49) == []  # complete: the missing items no longer exist


def _defects(num_texts: int, holes: int, markup: int = 0, places: int = 0) -> dict[str, Any]:
    """Return a manifest's counts for texts of 1,000 characters; ``places`` are those of holes."""
    chars = 1000 * num_texts
    counts = {"hole": (holes, places or holes), "markup": (markup, markup)}
    return {
        "texts": num_texts,
        "chars": chars,
        **{
            name: {
                "texts": texts,
                "places": found,
                "share_of_texts": texts / num_texts,
                "per_million_chars": 1e6 * found / chars,
            }
            for name, (texts, found) in counts.items()
        },
    }


def test_more_defects_than_in_earlier_months_hold_a_month(store: Store) -> None:
    _half_a_year(store, defects=_defects(60, 1))
    [share, rate] = _reasons(store, 60, defects=_defects(60, 12))
    assert share == (
        "hole: 12 of 60 texts, share_of_texts 0.2, and the median of 6 months is 0.0166667"
    )
    assert rate.startswith("hole: 12 of 60 texts, per_million_chars 200, and the median of 6")
    [reason, _] = _reasons(store, 60, defects=_defects(60, 1, markup=30))
    assert reason.startswith("markup: 30 of 60 texts")


@pytest.mark.parametrize(
    ("usual", "found"),
    [
        ((60, 1), (60, 4)),  # few texts
        ((60, 0), (60, 2)),
        ((60, 10), (60, 25)),  # less than three times as many
        ((1000, 2), (1000, 15)),  # a small share of the texts
        ((1000, 100), (1000, 100, 0, 280)),
        ((60, 6), (9, 9)),  # too few texts at all
        ((9, 0), (60, 40)),
        ((60, 30), (60, 0)),  # an improvement
    ],
)
def test_noise_of_defects_holds_no_month(
    store: Store, usual: tuple[int, ...], found: tuple[int, ...]
) -> None:
    _half_a_year(store, defects=_defects(*usual))
    assert _reasons(store, 60, defects=_defects(*found)) == []


def test_many_more_places_in_as_many_texts_hold_a_month(store: Store) -> None:
    _half_a_year(store, defects=_defects(100, 80))
    [reason] = _reasons(store, 60, defects=_defects(100, 80, places=400))
    assert "per_million_chars 4000, and the median of 6 months is 800" in reason


def test_a_month_with_as_many_defects_before_excuses_them(store: Store) -> None:
    _half_a_year(store, defects=_defects(60, 1))
    _seal(store, "2024-03", 60, defects=_defects(60, 20))
    assert _reasons(store, 60, defects=_defects(60, 20)) == []


def test_months_without_counts_of_defects_tell_nothing_of_them(store: Store) -> None:
    _half_a_year(store)
    _seal(store, "2024-05", 60, defects=_defects(60, 0))
    _seal(store, "2024-06", 60, defects=_defects(60, 0))
    assert _reasons(store, 60, defects=_defects(60, 60)) == []
    _seal(store, "2024-04", 60, defects=_defects(60, 0))
    assert len(_reasons(store, 60, defects=_defects(60, 60))) == 2
    assert _reasons(store, 60) == []
