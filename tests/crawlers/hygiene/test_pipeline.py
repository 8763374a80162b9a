import datetime as dt
import functools
import io
import json
import random
import signal
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from core.corpus.partition import Partition, Seal, read_documents, tables_of
from core.corpus.sealing import Description, seal_partition
from core.errors import StorageError
from core.month import Month
from core.schemas.tables import DUPLICATES, DocumentRow
from core.schemas.validation import validate
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import DROP_REASONS, Drop, Failure, Repeat, SourceInfo
from crawlers.crawling.manifest import Ledger, Outcome
from crawlers.hygiene.duplicates import DUPLICATES_FILE
from crawlers.hygiene.pipeline import Hygiene
from crawlers.hygiene.sketches import SKETCH_FILE
from tests.crawlers.conftest import prose
from tests.forks import forking

INFO = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={})
VERSIONS = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={}, keeps_versions=True)
FEBRUARY, MARCH, APRIL = Month("2024-02"), Month("2024-03"), Month("2024-04")
NOTICE = "Sign up for our newsletter, and never miss a story."


def row(native_id: str, text: str | None = None, day: int = 10, **columns: Any) -> DocumentRow:
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
    words = prose(native_id, num_words).split(" ")
    words[num_words // 2] = "indeed"
    return " ".join(words)


class Sealed:
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

        def is_sealed(item: Outcome | Description) -> bool:
            return isinstance(item, Description) or self.ledger.keeps(item)

        with closing(hygiene.sift(iter(rows))) as sifted:
            contents = tables_of(filter(is_sealed, sifted), partition)
            self.seal: Seal = seal_partition(store, partition, contents, replace=True)
        self.counts = self.ledger.close()
        lines = zstandard.decompress(self.ledger.dropped_items()).splitlines()
        self.others = [json.loads(line) for line in lines]
        self.rows = [one for batch in read_documents(store, self.seal) for one in batch.to_pylist()]

    @property
    def kept(self) -> list[str]:
        return [one["native_id"] for one in self.rows]

    @property
    def drops(self) -> dict[str, str]:
        dropped = (one for one in self.others if one["outcome"] == "dropped")
        return {one["native_id"]: one["reason"] for one in dropped}

    @property
    def details(self) -> dict[str, str]:
        return {one["native_id"]: one["detail"] for one in self.others}


Sealing = Callable[..., Sealed]


@pytest.fixture
def no_spool(settings: Settings) -> Iterable[None]:
    yield
    assert list((settings.scratch / "hygiene").glob("*")) == []


@pytest.fixture
def seal(store: Store, settings: Settings) -> Sealing:
    return functools.partial(Sealed, store, settings)


pytestmark = pytest.mark.usefixtures("no_spool")


def test_a_clean_month_is_handed_on_as_it_came(seal: Sealing) -> None:
    rows = [row(f"n{number}", day=1 + number % 28) for number in range(600)]
    rows[7]["text"] = "\n".join(prose(f"long {n}", 1000) for n in range(200))
    found = seal(rows)
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
    assert (manifest["defects"]["texts"], manifest["defects"]["hole"]["texts"]) == (600, 0)


def test_the_defects_of_kept_prose_are_counted(seal: Sealing) -> None:
    rows = [row(f"n{number}") for number in range(20)]
    rows[3]["text"] += " The town () has {{towers}}. It is at , so it is."
    rows.append({**row("code"), "language": "code:python", "text": "x = [[1, {{}}]] ()\n" * 20})
    rows.append(row("numbers", "{{1}} " * 100))
    defects = seal(rows).seal.manifest["defects"]
    assert defects["texts"] == 20
    assert (defects["hole"]["texts"], defects["hole"]["places"]) == (1, 2)
    assert (defects["markup"]["texts"], defects["markup"]["places"]) == (1, 2)


def test_each_stage_drops_with_its_reason_and_all_are_counted(seal: Sealing) -> None:
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
    found = seal(rows)
    assert found.drops == {
        "gone": "http_404", "notice": "boilerplate", "german": "wrong_language",
        "numbers": "low_quality", "copy": "exact_dup", "near": "near_dup",
    }  # fmt: skip
    assert set(found.drops.values()) <= set(DROP_REASONS)
    assert found.kept == [*(f"n{number}" for number in range(10)), "original"]
    assert found.rows[0]["text"] == prose(0)
    assert found.ledger.requested == len(rows) == found.ledger.kept + len(found.others)
    assert found.seal.manifest["boilerplate"] == {
        "lines": 1, "most_frequent": [{"line": NOTICE, "texts": 11}], "texts_changed": 12,
    }  # fmt: skip


def test_the_earliest_of_duplicates_stays(seal: Sealing) -> None:
    rows = [
        row("late", prose("a"), day=20), row("early", prose("a"), day=2), row("mid", prose("a")),
        row("z", prose("b")), row("y", prose("b")),  # of one instant: by native id
        row("near late", near("c"), day=3), row("near early", prose("c", 200), day=1),
    ]  # fmt: skip
    found = seal(rows)
    assert found.kept == ["early", "y", "near early"]
    assert found.details["late"] == "same text as early"
    assert found.details["near late"].endswith("similar to near early")


@pytest.mark.long
@hypothesis_settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_the_order_of_items_changes_the_order_alone(seal: Sealing, rng: random.Random) -> None:
    texts = [prose(n, 200) for n in range(12)] + [near(str(n)) for n in range(6)] * 2
    rows = [
        row(f"n{n}", f"{text}\n{NOTICE}" if n % 2 else text, day=1 + n % 5)
        for n, text in enumerate(texts)
    ]
    straight = seal(rows)
    rng.shuffle(rows)
    shuffled = seal(rows)
    assert {one["native_id"]: one["text"] for one in shuffled.rows} == {
        one["native_id"]: one["text"] for one in straight.rows
    }
    assert shuffled.drops == straight.drops
    assert shuffled.seal.manifest["boilerplate"] == straight.seal.manifest["boilerplate"]


def test_earlier_months_are_compared_and_named(seal: Sealing) -> None:
    february = seal([row("a", prose("a", 200)), row("b", prose("b", 200))], FEBRUARY)
    later = seal([row("x", prose("x", 200))], APRIL)
    rows = [
        row("same", prose("a", 200), day=1), row("alike", near("b"), day=1),
        row("new", prose("new", 200)),
        row("half", prose("b", 100) + " " + prose("own", 110)),
        row("quote", prose("a", 160) + " " + prose("other", 60)),
    ]  # fmt: skip
    march = seal(rows)
    assert march.drops == {"same": "exact_dup", "alike": "near_dup"}
    assert march.details["same"] == "same text as a of 2024-02"
    assert march.details["alike"].endswith("similar to b of 2024-02")
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


def test_a_cluster_that_reaches_into_an_earlier_month_is_dropped_whole(seal: Sealing) -> None:
    words = prose("chain", 300).split(" ")
    links = [" ".join(words[start : start + 260]) for start in (0, 18, 36)]
    seal([row("first", links[0])], FEBRUARY)
    march = seal([row("b", links[1]), row("c", links[2]), row("own")])
    assert march.kept == ["own"]
    assert march.drops == {"b": "near_dup", "c": "near_dup"}


def test_other_sources_and_undated_texts_are_not_compared(seal: Sealing, store: Store) -> None:
    other = SourceInfo("other", "Other", "MIT", "en", "test", sites={})
    seal([row("a")], FEBRUARY, other)
    undated = Partition("toy", None)
    seal_partition(store, undated, tables_of([row("a", prose("a"))], undated))
    assert seal([row("a")]).kept == ["a"]


def test_later_finds_are_listed_and_stay_where_they_are(
    seal: Sealing, store: Store, settings: Settings, tmp_path: Path
) -> None:
    rows = [row("a", prose("a", 200)), row("b", prose("b", 200)), row("b2", near("b"), day=11)]
    alone = Sealed(Store(str(tmp_path / "alone")), settings, rows)
    later = [row("same", prose("a", 200)), row("alike", near("b")), row("own")]
    april = seal(later, APRIL)
    march = seal(rows)
    assert march.seal.digest == alone.seal.digest  # later months change nothing
    assert march.kept == ["a", "b"]
    sidecar = store.read_bytes(f"{march.seal.folder}/{DUPLICATES_FILE}")
    found = validate(pq.read_table(io.BytesIO(sidecar)), DUPLICATES).to_pylist()
    ids = {one["native_id"]: one["document_id"] for one in (*march.rows, *april.rows)}
    pairs = {(one["document_id"], one["duplicate_of_document_id"]): one for one in found}
    assert set(pairs) == {(ids["same"], ids["a"]), (ids["alike"], ids["b"])}
    same = pairs[ids["same"], ids["a"]]
    assert (same["source"], same["similarity"]) == ("toy", 1.0)
    assert (same["month"], same["duplicate_of_month"]) == (APRIL.first_day, MARCH.first_day)
    assert 0.8 <= pairs[ids["alike"], ids["b"]]["similarity"] < 1
    assert march.seal.manifest["later_duplicates"] == 2
    assert not store.exists(f"{april.seal.folder}/{DUPLICATES_FILE}")


def test_versions_are_no_duplicates_but_are_compared(seal: Sealing) -> None:
    january = seal([row("kept", "old " + prose("kept"))], FEBRUARY - 1, VERSIONS)
    old = [row("same", prose("s", 200)), row("changed", prose("c", 200)), row("gone")]
    february = seal(old, FEBRUARY, VERSIONS)
    new = [row("same", prose("s", 200)), row("changed", near("c")), row("kept"), row("new")]
    lined = [row(f"n{n}", f"{prose(n)}\n{NOTICE}") for n in range(10)]
    march = seal([*new, *lined, row("n10", f"{near('0')}\n{NOTICE}")], MARCH, VERSIONS)
    assert march.kept == ["same", "changed", "kept", "new", *(f"n{n}" for n in range(11))]
    assert all(one["text"].endswith(NOTICE) for one in march.rows[4:])  # no boilerplate
    found = {one["native_id"]: one["similarity_to_prev"] for one in march.rows}
    assert found["same"] == 1
    assert 0.8 < found["changed"] < 1
    assert (found["kept"], found["new"]) == (None, None)  # not in the month before
    assert march.seal.manifest["compared_with"] == {
        "2024-01": january.seal.digest, "2024-02": february.seal.digest,
    }  # fmt: skip
    shares = {one["native_id"]: one["seen_share"] for one in march.rows}
    assert (shares["same"], shares["new"]) == (1, 0)


def test_code_is_judged_by_its_own_rules(seal: Sealing) -> None:
    line = "from __future__ import annotations"
    rows = [
        row(f"n{n}", f"{line}\nx_{n} = {{{n}: [{n}, {n}], 2: 3}}\n" * 4, language="code:python")
        for n in range(10)
    ]
    found = seal(rows)
    assert [one["text"] for one in found.rows] == [one["text"] for one in rows]
    assert {one["language_score"] for one in found.rows} == {None}


def test_redaction_is_recorded_and_what_it_leaves_is_long_enough_or_falls(
    seal: Sealing, store: Store, settings: Settings
) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'MIIEpAIBAAKCAQEA' * 10}\n-----END PRIVATE KEY-----"
    rows = [
        row("a", f"{prose('a')} Write to jane@example.org or x@example.org."), row("b"),
        row("key", f"My key is here:\n{key}"), row("c", f"{prose('c')}\n{key}"),
    ]  # fmt: skip
    plain = seal(rows)
    assert "jane@example.org" in plain.rows[0]["text"]
    redacted = Sealed(store, settings.model_copy(update={"redact": True}), rows)
    assert (redacted.kept, redacted.drops) == (["a", "b", "c"], {"key": "too_short"})
    assert redacted.rows[0]["text"].endswith("Write to [EMAIL] or [EMAIL].")
    assert [json.loads(one["redactions"]) for one in redacted.rows] == [
        {"email": 2}, {}, {"secret": 1},
    ]  # fmt: skip
    manifest = redacted.seal.manifest
    assert (manifest["redact"], manifest["redactions"]) == (True, {"email": 2, "secret": 1})
    assert redacted.seal.digest != plain.seal.digest


def test_an_empty_month_passes(store: Store, settings: Settings) -> None:
    hygiene = Hygiene(Partition("toy", MARCH), INFO, store, settings)
    outcomes: list[Outcome] = [Drop("a", "empty", ""), Repeat("b", "")]
    assert list(hygiene.sift(iter(outcomes)))[:-1] == outcomes
    assert list(hygiene.sift(iter([row("a", "1 " * 60)]))) != []


def test_texts_without_words_are_handled(seal: Sealing) -> None:
    code: dict[str, Any] = {"language": "code:text"}
    rows = [row("blank", " \n" * 80, **code), row("blank2", "\t\n" * 80, **code), row("own")]
    seal(rows, FEBRUARY)
    march = seal([*rows, row("new")])
    assert march.drops == dict.fromkeys(("blank", "blank2", "own"), "exact_dup")


def test_the_spool_is_deleted_when_the_crawl_fails(store: Store, settings: Settings) -> None:
    def items() -> Iterable[DocumentRow]:
        yield row("a")
        raise RuntimeError("the site is gone")

    hygiene = Hygiene(Partition("toy", MARCH), INFO, store, settings)
    with pytest.raises(RuntimeError, match="gone"):
        list(hygiene.sift(items()))
    half = Hygiene(Partition("toy", MARCH), INFO, store, settings).sift(iter([row("a"), row("b")]))
    next(iter(half))
    half.close()


_KILLED = """
import datetime as dt, json, os, signal
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import SourceInfo
from crawlers.hygiene.pipeline import Hygiene
from tests.forks import serve

def rows(row, while_it_comes):
    times = {name: dt.datetime(2024, 3, 10, tzinfo=dt.UTC) for name, value in row.items()
             if value == "time"}
    for number in range(600):
        yield {**row, **times, "native_id": f"n{number}", "text": f"x{number} = 1\\n" * 20}
    if while_it_comes:
        os.kill(os.getpid(), signal.SIGKILL)

def work(job):
    home, while_it_comes, row = job
    info = SourceInfo("toy", "Toy", "MIT", "en", "test", sites={})
    partition = Partition("toy", Month("2024-03"))
    for _ in Hygiene(partition, info, Store(home), Settings(home=home)).sift(
        rows(row, while_it_comes)
    ):
        os.kill(os.getpid(), signal.SIGKILL)

serve(work)
"""


def test_a_killed_run_leaves_a_spool_that_the_next_one_deletes(
    seal: Sealing, settings: Settings
) -> None:
    folder = settings.scratch / "hygiene"
    times = dict.fromkeys(("event_time", "text_as_of", "retrieved_at"), "time")
    code = {**row("a"), **times, "language": "code:text"}  # which needs no model of languages
    with forking(_KILLED, {}) as forks:
        for while_it_comes in (True, False):
            job = [str(settings.home), while_it_comes, code]
            assert forks.run(job) == -signal.SIGKILL
            assert len(list(folder.glob("*/rows.arrow"))) == 1, while_it_comes
            seal([row("a")])
            assert list(folder.iterdir()) == [], while_it_comes


def test_a_spool_in_use_is_left_alone(seal: Sealing, store: Store, settings: Settings) -> None:
    first = Hygiene(Partition("toy", MARCH), INFO, store, settings).sift(
        iter([row(f"n{n}") for n in range(3)])
    )
    got = [next(first)]
    seal([row("a")], APRIL)
    got += list(first)
    assert [one["native_id"] for one in got if isinstance(one, dict)] == ["n0", "n1", "n2"]


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "foreign", "empty"])
def test_a_sketch_that_is_missing_or_damaged_is_made_anew(
    seal: Sealing, store: Store, damage: str
) -> None:
    rows = [row(f"n{n}", prose(n, 200), day=1 + n % 20) for n in range(40)]
    february = seal(rows, FEBRUARY)
    path = f"{february.seal.folder}/{SKETCH_FILE}"
    data = store.read_bytes(path)
    if damage == "foreign":
        seal([row("x")], FEBRUARY - 1)
        other = f"corpus/source=toy/month=2024-01/{SKETCH_FILE}"
        store.write_bytes(path, store.read_bytes(other))
    elif damage == "missing":
        store.delete(path)
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        store.write_bytes(path, {"cut": data[:middle], "flipped": flipped, "empty": b""}[damage])
    march = seal([*rows[:20], row("own")])
    assert march.kept == ["own"]
    assert set(march.drops.values()) == {"exact_dup"}
    assert store.read_bytes(path) == data


def test_a_manifest_that_tells_of_other_texts_is_a_storage_error(
    seal: Sealing, store: Store
) -> None:
    february = seal([row("a"), row("b")], FEBRUARY)
    path = f"{february.seal.folder}/manifest.json"
    manifest = json.loads(store.read_bytes(path))
    store.write_bytes(path, json.dumps({**manifest, "num_documents": 20}).encode())
    with pytest.raises(StorageError, match="2024-02: its texts are not those .*20 documents"):
        seal([row("c")])


def test_sealing_anew_takes_the_files_beside_with_it(seal: Sealing, store: Store) -> None:
    seal([row("a", prose("a", 200))], APRIL)
    march = seal([row("a", prose("a", 200))])
    assert store.exists(f"{march.seal.folder}/{DUPLICATES_FILE}")
    march = seal([row("b")])
    assert not store.exists(f"{march.seal.folder}/{DUPLICATES_FILE}")
    assert store.exists(f"{march.seal.folder}/{SKETCH_FILE}")
