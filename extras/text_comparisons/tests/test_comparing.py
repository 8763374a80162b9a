import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core import progress
from core.corpus.partition import Partition, Seal, tables_of
from core.corpus.sealing import seal_partition
from core.errors import StorageError, UsageError
from core.month import Month, month_range
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import Store
from extras.text_comparisons import demo
from extras.text_comparisons.comparing import compare_texts, plan_comparisons
from extras.text_comparisons.difference import Against
from warehouse.database.writer import connected

FEBRUARY = Month("2024-02")
MARCH = Month("2024-03")
APRIL = Month("2024-04")


@pytest.fixture
def seal(store: Store) -> Callable[..., Seal]:
    def seal(source: str, month: Month | None, text: str = "the tide is out") -> Seal:
        partition = Partition(source, month)
        row = {"native_id": "p", "date_kind": "revised", "licence": "MIT", "text": text}
        return seal_partition(store, partition, tables_of([row], partition), replace=True)

    return seal


@pytest.fixture
def compare(settings: Settings, store: Store) -> Callable[..., int]:
    def compare(*sources: str, months: list[Month] | None = None, **options: Any) -> int:
        return compare_texts(plan_comparisons(store, sources, months, **options), settings)

    return compare


@pytest.fixture
def nobody_listens() -> Iterator[None]:
    yield
    progress.listen(None)


def pairs(store: Store, *arguments: Any) -> list[tuple[str, str]]:
    return [
        (str(each.later.partition), str(each.earlier.partition.month))
        for each in plan_comparisons(store, *arguments)
    ]


@pytest.fixture
def landed(peek: Any) -> Callable[[], dict[tuple[Month, Month], tuple[float | None, str]]]:
    def landed() -> dict[tuple[Month, Month], tuple[float | None, str]]:
        return {
            (Month.of(row["month"]), Month.of(row["other_month"])): (
                row["difference"], row["partition_digest"],
            )
            for row in peek("from internal.text_comparisons")
        }  # fmt: skip

    return landed


def test_months_are_compared_with_the_month_before_and_the_first(store: Store, seal: Any) -> None:
    for month in (FEBRUARY, MARCH, APRIL, Month("2024-06")):  # May is missing
        seal("wiki", month)
    seal("wiki", None)
    assert pairs(store, ["wiki"], None) == [
        ("wiki 2024-03", "2024-02"),
        ("wiki 2024-04", "2024-02"),
        ("wiki 2024-04", "2024-03"),
        ("wiki 2024-06", "2024-02"),
    ]
    assert pairs(store, ["wiki"], None, [Against.PREVIOUS]) == [
        ("wiki 2024-03", "2024-02"), ("wiki 2024-04", "2024-03"),
    ]  # fmt: skip
    # The first month is the source's first, for any requested months.
    assert pairs(store, ["wiki"], [APRIL, APRIL + 1], [Against.FIRST]) == [
        ("wiki 2024-04", "2024-02")
    ]
    assert pairs(store, ["wiki"], [FEBRUARY]) == []


def test_without_names_all_dated_text_is_compared(store: Store, seal: Any) -> None:
    for month in (FEBRUARY, MARCH):
        seal("wiki", month)
        seal("code/x", month)
        seal_image(store, month)
    seal("books", None)
    assert pairs(store, None, None) == [
        ("code/x 2024-03", "2024-02"), ("wiki 2024-03", "2024-02"),
    ]  # fmt: skip


def seal_image(store: Store, month: Month) -> None:
    partition = Partition("photos", month)
    row = {
        "native_id": "i", "date_kind": "given", "licence": "MIT", "media_kind": "image",
        "codec": "grey8", "width": 128, "height": 64, "media": b"\x7f" * 8192,
    }  # fmt: skip
    seal_partition(store, partition, tables_of([row], partition))


def test_what_has_no_months_of_text_is_refused(store: Store, seal: Any) -> None:
    seal_image(store, MARCH)
    seal("books", None)
    for source, says in (
        ("photos", "photos holds image; only months of text"),
        ("books", "books is undated"),
        ("nothing", "nothing of nothing is sealed; crawl"),
        ("bokks", "nothing of bokks is sealed; did you mean books[?] crawl"),
    ):
        with pytest.raises(UsageError, match=says):
            plan_comparisons(store, [source], None)


def test_what_is_landed_is_not_made_again(
    settings: Settings, landed: Any, seal: Any, compare: Any, dump: Any
) -> None:
    seal("wiki", FEBRUARY, "abcd")
    seal("wiki", MARCH, "bcde")
    seal("wiki", APRIL, "cdef")
    assert compare("wiki", months=[MARCH]) == 1
    assert compare("wiki") == 2
    before = dump(settings)
    assert compare("wiki") == 0
    assert dump(settings) == before
    found = {key: value for key, (value, _) in landed().items()}
    # 3 of 4 characters are in common, 2 of 4 with the month before that: 1 - 6 / 8, 1 - 4 / 8.
    assert found == {(MARCH, FEBRUARY): 0.25, (APRIL, MARCH): 0.25, (APRIL, FEBRUARY): 0.5}


def test_a_changed_partition_is_compared_again(
    settings: Settings, landed: Any, seal: Any, compare: Any
) -> None:
    for month, text in ((FEBRUARY, "abcd"), (MARCH, "bcde"), (APRIL, "cdef")):
        seal("wiki", month, text)
    assert compare("wiki") == 3
    old = landed()
    changed = seal("wiki", MARCH, "wxyz")
    assert compare("wiki") == 2  # as the later and as the earlier one
    new = landed()
    assert new[MARCH, FEBRUARY] == (1.0, changed.digest)
    assert new[APRIL, MARCH][0] == 1.0
    unchanged = APRIL, FEBRUARY
    assert new[unchanged] == old[unchanged]
    assert len(new) == 3


def test_another_version_of_the_computation_is_made_again(
    settings: Settings, seal: Any, compare: Any
) -> None:
    seal("wiki", FEBRUARY)
    seal("wiki", MARCH)
    assert compare("wiki") == 1
    with connected(settings) as connection:
        connection.execute("update internal.text_comparisons set version = 0")
    assert compare("wiki") == 1
    assert compare("wiki") == 0


@pytest.mark.long
@pytest.mark.usefixtures("nobody_listens")
def test_a_killed_run_ends_as_an_undisturbed_one(
    settings: Settings, landed: Any, tmp_path: Path, seal: Any, compare: Any, dump: Any
) -> None:
    months = list(month_range(FEBRUARY, FEBRUARY + 3))
    for number, month in enumerate(months):
        seal("wiki", month, "abcdefgh"[number:])

    def kill(step: str, done: int, *_: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    progress.listen(kill)
    with pytest.raises(KeyboardInterrupt):
        compare("wiki")
    progress.listen(None)
    assert len(landed()) == 2
    assert compare("wiki") == 3
    shutil.copytree(Path(settings.home) / "corpus", tmp_path / "elsewhere" / "corpus")
    elsewhere = settings.model_copy(update={"home": str(tmp_path / "elsewhere")})
    plan = plan_comparisons(Store(elsewhere.home), ["wiki"], None)
    assert compare_texts(plan, elsewhere) == 5
    assert dump(settings) == dump(elsewhere)


def test_a_damaged_partition_stops_and_what_landed_stays(
    settings: Settings, landed: Any, store: Store, seal: Any, compare: Any
) -> None:
    seal("wiki", FEBRUARY)
    seal("wiki", MARCH)
    damaged = seal("wiki", APRIL)
    store.write_bytes(damaged.parts[0], b"no Parquet")
    with pytest.raises(StorageError, match="wiki 2024-04 again with --replace"):
        compare("wiki")
    assert list(landed()) == [(MARCH, FEBRUARY)]


def test_names_are_no_sql(settings: Settings, seal: Any, compare: Any, ask: Any) -> None:
    name = "x'; drop table internal.text_comparisons; --"
    seal(name, FEBRUARY)
    seal(name, MARCH)
    assert compare(name) == 1
    [row] = ask("from text_difference")
    assert (row["source"], row["method"], row["difference_from_previous"]) == (name, "articles", 0)


def test_a_demo_without_the_source_compares_nothing(settings: Settings, seal: Any) -> None:
    """Formerly, the demo ended with an error if the extra of that source was deleted."""
    seal("news", MARCH)
    demo.land_for_demo(settings)


def test_the_demo_has_the_differences_of_a_monitored_source(
    settings: Settings, seal: Callable[..., Seal], peek: Any
) -> None:
    assert demo in import_parts("demo")
    for month in (FEBRUARY, MARCH, APRIL):
        seal(demo.SOURCE, month, f"the tide of {month}")
    seal("news", MARCH)
    demo.land_for_demo(settings)
    rows = peek("select source, month, other_month from internal.text_comparisons order by month")
    days = [each.first_day for each in (FEBRUARY, MARCH, APRIL)]
    assert [tuple(row.values()) for row in rows] == [
        (demo.SOURCE, days[1], days[0]), (demo.SOURCE, days[2], days[1]),
    ]  # fmt: skip
