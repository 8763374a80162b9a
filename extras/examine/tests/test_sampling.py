import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Partition, Seal, list_sealed, read_documents
from core.month import Month, month_range
from core.storage.store import Store
from extras.examine.sampling import (
    LEAST_BYTES,
    MOST_BYTES,
    choose_sample,
    seal_sample,
    usable,
)
from tests.seals import Sealer, seal_images

FIRST = Month("2023-01")


def a_seal(source: str, month: Month | None, num_bytes: int = 10**9) -> Seal:
    name = f"{source}-{month}"
    return Seal(Partition(source, month), name, 100, num_bytes, (), {}, 1, name)


def seals(source: str, num_months: int) -> list[Seal]:
    return [a_seal(source, FIRST + number) for number in range(num_months)]


def test_the_quota_is_a_power_of_two_within_the_budget() -> None:
    for budget in (80_000, 100_000, 1_000_000, 10_000_000):
        sample = choose_sample(seals("a", 10), budget)
        assert sample.quota & (sample.quota - 1) == 0
        assert LEAST_BYTES <= sample.quota <= MOST_BYTES
        assert sample.quota * 10 <= budget
        assert sample.quota * 20 > budget or sample.quota == MOST_BYTES


def test_a_small_budget_takes_fewer_sources_then_fewer_months() -> None:
    some = [*seals("long", 40), *seals("longer", 50), *seals("short", 9), *seals("thin", 3)]
    assert choose_sample(some, 10**9).sources == ["long", "longer", "short"]  # thin: too few months
    assert choose_sample(some, LEAST_BYTES * 95).sources == ["long", "longer"]
    part = choose_sample(some, LEAST_BYTES * 60)  # ten months of the second source
    assert [each.partition.source for each in part.seals].count("long") == 10
    assert (part.quota, part.num_bytes) == (LEAST_BYTES, LEAST_BYTES * 60)
    few = choose_sample(some, LEAST_BYTES * 12)
    assert few.sources == ["longer"]
    assert len(few.months) == 12
    assert (few.months[0], few.months[-1]) == (FIRST, FIRST + 49)
    assert len(choose_sample(some, 1).months) == 8
    assert choose_sample(seals("thin", 3), 10**9).months == list(month_range(FIRST, FIRST + 2))


def test_only_texts_of_months_are_used(store: Store, seal: Sealer) -> None:
    seal("a", "2024-01")
    seal("a", None)
    seal("b", "2024-01", num=1)
    seal_images(store, Partition("c", Month("2024-01")), num_patches=3)
    assert [str(each.partition) for each in usable(list_sealed(store))] == ["a 2024-01"]


@pytest.fixture
def sampled(tmp_path: Path, store: Store, seal: Sealer) -> Callable[[int], list[str]]:
    """Seal a sample with a quota; return the texts."""
    seal("a", "2024-01", words="x" * 50, num=40)  # texts of 1 kB

    def sampled(quota: int) -> list[str]:
        sample = choose_sample(list_sealed(store), quota)
        target = Store(str(tmp_path / f"sample-{quota}"))
        seal_sample(sample, store, target)
        [sealed] = list_sealed(target)
        assert sealed.manifest["sample_of"] == list_sealed(store)[0].digest
        batches = read_documents(target, sealed, columns=["text"])
        return [text for batch in batches for text in batch["text"].to_pylist()]

    return sampled


def test_a_larger_sample_begins_with_the_smaller_one(
    sampled: Callable[[int], list[str]],
) -> None:
    small = sampled(LEAST_BYTES)
    large = sampled(4 * LEAST_BYTES)
    assert set(small) < set(large)
    assert LEAST_BYTES <= sum(map(len, small)) <= 1.5 * LEAST_BYTES
    assert sampled(LEAST_BYTES) == small


def test_long_documents_give_their_beginnings(tmp_path: Path, store: Store, seal: Sealer) -> None:
    """Newsletters of 20 kB are common, and a slow machine reads 4 kB a month."""
    seal("a", "2024-01", words="\u20ac" * LEAST_BYTES)  # three bytes a character
    sample = choose_sample(list_sealed(store), LEAST_BYTES)
    target = Store(str(tmp_path / "sample"))
    seal_sample(sample, store, target)
    [sealed] = list_sealed(target)
    whole = {row["document_id"]: row["text"] for row in rows_of(store, list_sealed(store)[0])}
    taken = rows_of(target, sealed)
    assert len(taken) == 2
    for row in taken:
        assert whole[row["document_id"]].startswith(row["text"])
        assert LEAST_BYTES // 2 - 3 < len(row["text"].encode()) <= LEAST_BYTES // 2
        assert row["num_bytes"] == len(row["text"].encode())
        assert row["num_chars"] == len(row["text"])
        assert row["sha256_text"] == hashlib.sha256(row["text"].encode()).hexdigest()


def rows_of(store: Store, sealed: Seal) -> list[dict[str, Any]]:
    return [row for batch in read_documents(store, sealed) for row in batch.to_pylist()]
