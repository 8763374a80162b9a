from __future__ import annotations

import datetime as dt
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.corpus import Partition, Seal, read_documents, tables_of
from core.errors import StorageError
from core.forgetting import find_documents, forget_in_sidecars, forget_texts
from core.month import Month
from core.sealing import seal_partition
from core.settings import Settings
from core.storage import Store
from crawlers.contract import DROP_REASONS, Drop, Failure, Repeat, SourceInfo
from crawlers.hygiene.other_months import DUPLICATES_FILE, read_duplicates
from crawlers.hygiene.pipeline import Hygiene
from crawlers.hygiene.sketches import SKETCH_FILE
from crawlers.manifest import Ledger, Outcome, Row

from .conftest import prose

ROOT = Path(__file__).resolve().parents[2]
INFO = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={})
VERSIONS = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={}, keeps_versions=True)
FEBRUARY, MARCH, APRIL = Month("2024-02"), Month("2024-03"), Month("2024-04")
NOTICE = "Sign up for our newsletter, and never miss a story."


def row(native_id: str, text: str | None = None, day: int = 10, **columns: Any) -> Row:
    """A cleaned document, as a crawl makes it."""
    return {
        "native_id": native_id,
        "version_id": None,
        "cluster_id": None,
        "event_time": dt.datetime(2024, 3, day, tzinfo=dt.UTC),
        "date_kind": "created",
        "text_as_of": dt.datetime(2024, 3, day, tzinfo=dt.UTC),
        "retrieved_at": dt.datetime(2024, 6, 1, tzinfo=dt.UTC),
        "url": "https://example.org/",
        "title": native_id,
        "category": "test",
        "language": "en",
        "licence": "MIT",
        "attribution": "us",
        "extra": None,
        "text": prose(native_id) if text is None else text,
        **columns,
    }


def near(native_id: str, num_words: int = 200) -> str:
    """The prose of an id with one word of 200 changed."""
    words = prose(native_id, num_words).split(" ")
    words[num_words // 2] = "indeed"
    return " ".join(words)


class Sealed:
    """One month sealed from rows."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        rows: Iterable[Any],
        month: Month = MARCH,
        info: SourceInfo = INFO,
    ) -> None:
        partition = Partition(info.name, month)
        self.ledger, hygiene = Ledger(partition), Hygiene(partition, info, store, settings)
        describe: dict[str, object] = {}

        def tables() -> Iterable[pa.Table]:
            yield from tables_of(self.ledger.sift(hygiene.sift(iter(rows))), partition)
            describe.update(hygiene.describe)

        self.seal: Seal = seal_partition(
            store, partition, tables(), describe, replace=True, beside=hygiene.beside
        )
        self.counts = self.ledger.close()
        self.rows = [one for batch in read_documents(store, self.seal) for one in batch.to_pylist()]

    @property
    def kept(self) -> list[str]:
        return [one["native_id"] for one in self.rows]

    @property
    def drops(self) -> dict[str, str]:
        return {one.native_id: one.reason for one in self.ledger.others if isinstance(one, Drop)}


@pytest.fixture
def no_spool(settings: Settings) -> Iterable[None]:
    yield
    left = [path for path in (settings.scratch / "hygiene").glob("*")]
    assert left == []


pytestmark = pytest.mark.usefixtures("no_spool")


def test_a_clean_month_is_handed_on_as_it_came(store: Store, settings: Settings) -> None:
    rows = [row(f"n{number}", day=1 + number % 28) for number in range(600)]
    rows[7]["text"] = "\n".join(prose(f"long {n}", 1000) for n in range(200))
    found = Sealed(store, settings, rows)
    assert found.kept == [one["native_id"] for one in rows]
    for sealed, given_row in zip(found.rows, rows, strict=True):
        assert {key: sealed[key] for key in given_row if key != "cluster_id"} == {
            key: value for key, value in given_row.items() if key != "cluster_id"
        }
        assert sealed["language_score"] > 0.5
        assert sealed["seen_share"] is None  # no month before
        assert sealed["flags"] == []
        assert sealed["redactions"] is None
    manifest = found.seal.manifest
    assert manifest["compared_with"] == {}
    assert manifest["boilerplate"] == {"lines": 0, "most_frequent": [], "texts_changed": 0}
    assert (manifest["redact"], manifest["redactions"]) == (False, {})


def test_each_stage_drops_with_its_reason_and_all_are_counted(
    store: Store, settings: Settings
) -> None:
    rows = [
        *(row(f"n{number}", f"{prose(number)}\n{NOTICE}") for number in range(10)),
        row("notice", f"{NOTICE}\n{NOTICE}\nOnly that."),
        row("german", "Der Rat trat am Dienstagabend zusammen und beschloss nach langer Debatte, "
            "die alte Brücke noch im Herbst zu reparieren."),
        row("numbers", " ".join(map(str, range(200)))),
        Drop("gone", "http_404", ""),
        Failure("slow", "timeout", ""),
        Repeat("n1", "came before"),
        row("copy", f"{prose(3)}\n{NOTICE}", day=11),
        row("near", near("n"), day=11),
        row("original", prose("n", 200), day=9),
    ]  # fmt: skip
    found = Sealed(store, settings, rows)
    assert found.drops == {
        "gone": "http_404", "notice": "boilerplate", "german": "wrong_language",
        "numbers": "low_quality", "copy": "exact_dup", "near": "near_dup",
    }  # fmt: skip
    assert set(found.drops.values()) <= set(DROP_REASONS)
    assert found.kept == [*(f"n{number}" for number in range(10)), "original"]
    assert found.rows[0]["text"] == prose(0)
    assert found.ledger.requested == len(rows) == found.ledger.kept + len(found.ledger.others)
    assert found.seal.manifest["boilerplate"] == {
        "lines": 1, "most_frequent": [{"line": NOTICE, "texts": 11}], "texts_changed": 12,
    }  # fmt: skip


def test_the_earliest_of_duplicates_stays(store: Store, settings: Settings) -> None:
    rows = [
        row("late", prose("a"), day=20), row("early", prose("a"), day=2), row("mid", prose("a")),
        row("z", prose("b")), row("y", prose("b")),  # of one instant: by native id
        row("near late", near("c"), day=3), row("near early", prose("c", 200), day=1),
    ]  # fmt: skip
    found = Sealed(store, settings, rows)
    assert found.kept == ["early", "y", "near early"]
    details = {one.native_id: one.detail for one in found.ledger.others}
    assert details["late"] == "same text as early"
    assert details["near late"].endswith("similar to near early")


@hypothesis_settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_the_order_of_items_changes_the_order_alone(
    store: Store, settings: Settings, rng: random.Random
) -> None:
    texts = [prose(n, 200) for n in range(12)] + [near(str(n)) for n in range(6)] * 2
    rows = [
        row(f"n{n}", f"{text}\n{NOTICE}" if n % 2 else text, day=1 + n % 5)
        for n, text in enumerate(texts)
    ]
    straight = Sealed(store, settings, rows)
    rng.shuffle(rows)
    shuffled = Sealed(store, settings, rows)
    assert {one["native_id"]: one["text"] for one in shuffled.rows} == {
        one["native_id"]: one["text"] for one in straight.rows
    }
    assert shuffled.drops == straight.drops
    assert shuffled.seal.manifest["boilerplate"] == straight.seal.manifest["boilerplate"]


def test_earlier_months_are_compared_and_named(store: Store, settings: Settings) -> None:
    february = Sealed(
        store, settings, [row("a", prose("a", 200)), row("b", prose("b", 200))], FEBRUARY
    )
    later = Sealed(store, settings, [row("x", prose("x", 200))], APRIL)
    rows = [
        row("same", prose("a", 200), day=1), row("alike", near("b"), day=1),
        row("new", prose("new", 200)),
        row("half", prose("b", 100) + " " + prose("own", 110)),
        row("quote", prose("a", 160) + " " + prose("other", 60)),
    ]  # fmt: skip
    march = Sealed(store, settings, rows)
    assert march.drops == {"same": "exact_dup", "alike": "near_dup"}
    details = {one.native_id: one.detail for one in march.ledger.others}
    assert details["same"] == "same text as a of 2024-02"
    assert details["alike"].endswith("similar to b of 2024-02")
    assert march.seal.manifest["compared_with"] == {"2024-02": february.seal.digest}
    assert later.seal.manifest["compared_with"] == {"2024-02": february.seal.digest}
    shares = {one["native_id"]: one["seen_share"] for one in march.rows}
    assert shares["new"] == 0
    # 88 of 198 13-grams, and 148 of 208; one in 8 is looked at.
    assert 0.25 < shares["half"] < 0.65
    assert 0.5 < shares["quote"] < 0.9
    flags = {one["native_id"]: one["flags"] for one in march.rows}
    assert flags["new"] == []
    assert flags["quote"] == ["seen_before"]


def test_a_cluster_that_reaches_into_an_earlier_month_is_dropped_whole(
    store: Store, settings: Settings
) -> None:
    words = prose("chain", 300).split(" ")
    links = [" ".join(words[start : start + 260]) for start in (0, 18, 36)]
    Sealed(store, settings, [row("first", links[0])], FEBRUARY)
    march = Sealed(store, settings, [row("b", links[1]), row("c", links[2]), row("own")])
    assert march.kept == ["own"]
    assert march.drops == {"b": "near_dup", "c": "near_dup"}


def test_other_sources_and_undated_texts_are_not_compared(store: Store, settings: Settings) -> None:
    other = SourceInfo("other", "Other", "MIT", "en", "test", sites={})
    Sealed(store, settings, [row("a")], FEBRUARY, other)
    undated = Partition("toy", None)
    seal_partition(store, undated, tables_of([row("a", prose("a"))], undated))
    assert Sealed(store, settings, [row("a")]).kept == ["a"]


def test_later_finds_are_listed_and_stay_where_they_are(store: Store, settings: Settings) -> None:
    april = Sealed(
        store,
        settings,
        [row("same", prose("a", 200)), row("alike", near("b")), row("own")],
        APRIL,
    )
    march = Sealed(store, settings, [row("a", prose("a", 200)), row("b", prose("b", 200))])
    assert march.kept == ["a", "b"]
    found = read_duplicates(store).to_pylist()
    ids = {one["native_id"]: one["document_id"] for one in (*march.rows, *april.rows)}
    pairs = {(one["document_id"], one["duplicate_of_document_id"]): one for one in found}
    assert set(pairs) == {(ids["same"], ids["a"]), (ids["alike"], ids["b"])}
    same = pairs[ids["same"], ids["a"]]
    assert (same["source"], same["similarity"]) == ("toy", 1.0)
    assert (same["month"], same["duplicate_of_month"]) == (APRIL.first_day, MARCH.first_day)
    assert 0.8 <= pairs[ids["alike"], ids["b"]]["similarity"] < 1
    assert march.seal.manifest["later_duplicates"] == 2
    assert read_duplicates(store, "toy").num_rows == 2
    assert read_duplicates(store, "another").num_rows == 0


def test_what_a_month_holds_does_not_depend_on_the_months_after_it(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    rows = [row("a", prose("a", 200)), row("b", near("a"), day=11)]
    alone = Sealed(Store(str(tmp_path / "alone")), settings, rows)
    Sealed(store, settings, [row("a", prose("a", 200))], APRIL)
    assert Sealed(store, settings, rows).seal.digest == alone.seal.digest


def test_versions_are_no_duplicates_but_are_compared(store: Store, settings: Settings) -> None:
    january = Sealed(store, settings, [row("kept", "old " + prose("kept"))], FEBRUARY - 1, VERSIONS)
    old = [row("same", prose("s", 200)), row("changed", prose("c", 200)), row("gone")]
    february = Sealed(store, settings, old, FEBRUARY, VERSIONS)
    new = [row("same", prose("s", 200)), row("changed", near("c")), row("kept"), row("new")]
    march = Sealed(store, settings, new, MARCH, VERSIONS)
    assert march.kept == ["same", "changed", "kept", "new"]
    found = {one["native_id"]: one["similarity_to_prev"] for one in march.rows}
    assert found["same"] == 1
    assert 0.8 < found["changed"] < 1
    assert (found["kept"], found["new"]) == (None, None)  # not in the month before
    assert march.seal.manifest["compared_with"] == {
        "2024-01": january.seal.digest, "2024-02": february.seal.digest,
    }  # fmt: skip
    shares = {one["native_id"]: one["seen_share"] for one in march.rows}
    assert (shares["same"], shares["new"]) == (1, 0)


def test_versions_keep_the_lines_that_they_share(store: Store, settings: Settings) -> None:
    rows = [row(f"n{n}", f"{prose(n)}\n{NOTICE}") for n in range(10)]
    rows += [row("alike", f"{near('0')}\n{NOTICE}")]
    found = Sealed(store, settings, rows, MARCH, VERSIONS)
    assert all(one["text"].endswith(NOTICE) for one in found.rows)
    assert len(found.rows) == 11


def test_code_is_judged_by_its_own_rules(store: Store, settings: Settings) -> None:
    line = "from __future__ import annotations"
    rows = [
        row(f"n{n}", f"{line}\nx_{n} = {{{n}: [{n}, {n}], 2: 3}}\n" * 4, language="code:python")
        for n in range(10)
    ]
    found = Sealed(store, settings, rows)
    assert [one["text"] for one in found.rows] == [one["text"] for one in rows]
    assert {one["language_score"] for one in found.rows} == {None}


def test_redaction_is_recorded(store: Store, settings: Settings) -> None:
    rows = [row("a", f"{prose('a')} Write to jane@example.org or x@example.org."), row("b")]
    plain = Sealed(store, settings, rows)
    assert "jane@example.org" in plain.rows[0]["text"]
    redacted = Sealed(store, settings.model_copy(update={"redact": True}), rows)
    first, second = redacted.rows
    assert first["text"].endswith("Write to [EMAIL] or [EMAIL].")
    assert json.loads(first["redactions"]) == {"email": 2}
    assert json.loads(second["redactions"]) == {}
    manifest = redacted.seal.manifest
    assert (manifest["redact"], manifest["redactions"]) == (True, {"email": 2})
    assert redacted.seal.digest != plain.seal.digest


def test_what_redaction_leaves_is_long_enough_or_falls(store: Store, settings: Settings) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA' * 10}\n-----END PRIVATE KEY-----"
    rows = [row("a", f"My key is here:\n{key}"), row("b", f"{prose('b')}\n{key}")]
    redacted = Sealed(store, settings.model_copy(update={"redact": True}), rows)
    assert (redacted.kept, redacted.drops) == (["b"], {"a": "too_short"})
    assert redacted.seal.manifest["redactions"] == {"secret": 1}


def test_an_empty_month_passes(store: Store, settings: Settings) -> None:
    hygiene = Hygiene(Partition("toy", MARCH), INFO, store, settings)
    outcomes: list[Outcome] = [Drop("a", "empty", ""), Repeat("b", "")]
    assert list(hygiene.sift(iter(outcomes))) == outcomes
    assert list(hygiene.sift(iter([row("a", "1 " * 60)]))) != []


def test_texts_without_words_are_handled(store: Store, settings: Settings) -> None:
    code: dict[str, Any] = {"language": "code:text"}
    rows = [row("blank", " \n" * 80, **code), row("blank2", "\t\n" * 80, **code), row("own")]
    Sealed(store, settings, rows, FEBRUARY)
    march = Sealed(store, settings, [*rows, row("new")])
    assert march.drops == {"blank": "exact_dup", "blank2": "exact_dup", "own": "exact_dup"}


def test_the_spool_is_deleted_when_the_crawl_fails(store: Store, settings: Settings) -> None:
    def items() -> Iterable[Row]:
        yield row("a")
        raise RuntimeError("the site is gone")

    hygiene = Hygiene(Partition("toy", MARCH), INFO, store, settings)
    with pytest.raises(RuntimeError, match="gone"):
        list(hygiene.sift(items()))
    half = Hygiene(Partition("toy", MARCH), INFO, store, settings).sift(iter([row("a"), row("b")]))
    next(iter(half))
    half.close()


@pytest.mark.parametrize("when", ["while it comes", "while it is handed on"])
def test_a_killed_run_leaves_a_spool_that_the_next_one_deletes(
    store: Store, settings: Settings, when: str
) -> None:
    code = f"""
import datetime as dt, os, sys
from core.corpus import Partition
from core.forgetting import find_documents, forget_in_sidecars, forget_texts
from core.month import Month
from core.sealing import seal_partition
from core.settings import Settings
from core.storage import Store
from crawlers.contract import SourceInfo
from crawlers.hygiene.pipeline import Hygiene
row = {row("a")!r}.copy
time = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
def rows():
    for number in range(600):
        yield row() | dict(native_id=str(number), text=str(number) + row()["text"])
    if {when == "while it comes"}:
        os.kill(os.getpid(), 9)
info = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={{}})
home = sys.argv[1]
hygiene = Hygiene(Partition("toy", Month("2024-03")), info, Store(home), Settings(home=home))
for outcome in hygiene.sift(rows()):
    os.kill(os.getpid(), 9)
""".replace("datetime.datetime", "dt.datetime").replace("datetime.timezone", "dt.timezone")
    home = settings.home
    done = subprocess.run([sys.executable, "-c", code, home], cwd=ROOT)
    assert done.returncode == -9
    folder = settings.scratch / "hygiene"
    assert len(list(folder.glob("*/rows.arrow"))) == 1
    Sealed(store, settings, [row("a")])
    assert list(folder.iterdir()) == []


def test_a_spool_in_use_is_left_alone(store: Store, settings: Settings) -> None:
    first = Hygiene(Partition("toy", MARCH), INFO, store, settings).sift(
        iter([row(f"n{n}") for n in range(3)])
    )
    got = [next(first)]
    Sealed(store, settings, [row("a")], APRIL)
    got += list(first)
    assert [one["native_id"] for one in got if isinstance(one, dict)] == ["n0", "n1", "n2"]


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "foreign", "empty"])
def test_a_sketch_that_is_missing_or_damaged_is_made_anew(
    store: Store, settings: Settings, damage: str
) -> None:
    rows = [row(f"n{n}", prose(n, 200), day=1 + n % 20) for n in range(40)]
    february = Sealed(store, settings, rows, FEBRUARY)
    path = f"{february.seal.folder}/{SKETCH_FILE}"
    data = store.read_bytes(path)
    if damage == "foreign":
        Sealed(store, settings, [row("x")], FEBRUARY - 1)
        other = f"corpus/source=toy/month=2024-01/{SKETCH_FILE}"
        store.write_bytes(path, store.read_bytes(other))
    elif damage == "missing":
        store.delete(path)
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        store.write_bytes(path, {"cut": data[:middle], "flipped": flipped, "empty": b""}[damage])
    march = Sealed(store, settings, [*rows[:20], row("own")])
    assert march.kept == ["own"]
    assert set(march.drops.values()) == {"exact_dup"}
    assert store.read_bytes(path) == data


def test_a_manifest_that_tells_of_other_texts_is_a_storage_error(
    store: Store, settings: Settings
) -> None:
    february = Sealed(store, settings, [row("a"), row("b")], FEBRUARY)
    path = f"{february.seal.folder}/manifest.json"
    manifest = json.loads(store.read_bytes(path))
    store.write_bytes(path, json.dumps({**manifest, "num_documents": 20}).encode())
    with pytest.raises(StorageError, match="2024-02: its texts are not those .*20 documents"):
        Sealed(store, settings, [row("c")])


def test_sealing_anew_takes_the_files_beside_with_it(store: Store, settings: Settings) -> None:
    Sealed(store, settings, [row("a", prose("a", 200))], APRIL)
    march = Sealed(store, settings, [row("a", prose("a", 200))])
    assert store.exists(f"{march.seal.folder}/{DUPLICATES_FILE}")
    march = Sealed(store, settings, [row("b")])
    assert not store.exists(f"{march.seal.folder}/{DUPLICATES_FILE}")
    assert store.exists(f"{march.seal.folder}/{SKETCH_FILE}")
    assert read_duplicates(store).num_rows == 0


def test_a_forgotten_document_is_no_longer_compared(store: Store, settings: Settings) -> None:
    rows = [row("a", prose("a", 200)), row("b", prose("b", 200))]
    february = Sealed(store, settings, rows, FEBRUARY)
    id_ = february.rows[0]["document_id"]
    forget_texts(store, find_documents(store, [id_]))
    forget_in_sidecars(store, ["toy"], [id_])
    march = Sealed(store, settings, [row("near", near("a")), row("other", near("b"))])
    assert march.kept == ["near"]
    assert march.drops == {"other": "near_dup"}
