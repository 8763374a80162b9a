import dataclasses
import datetime as dt
import weakref
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.cells.answers import Answer, AnswerCell, write_answers
from core.corpus.partition import Partition, tables_of
from core.corpus.questions import Question, list_questions, read_questions, seal_questions
from core.corpus.sealing import seal_partition
from core.errors import PartitionSealed, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from extras.retrieval import retrieving
from extras.retrieval.commands import statement
from extras.retrieval.retrieving import find_passages, known_at, retrieve
from models.options.protocols import get_answer_protocol, prompts_of
from tests.commands import *  # noqa: F403
from warehouse.database.writer import connected, writer_path
from warehouse.land.answers import land_answer_cells
from warehouse.read.query import query

OPENED = dt.datetime(2024, 3, 10, tzinfo=dt.UTC)
MARCH = Month("2024-03")
DAY = dt.timedelta(days=1)


def document(name: str, text: str, days: int, **fields: Any) -> dict[str, Any]:
    """Return a document that was written ``days`` days before the question opened."""
    written = OPENED - days * DAY
    return {
        "native_id": name, "event_time": written, "text_as_of": written, "date_kind": "created",
        "retrieved_at": OPENED + 30 * DAY, "title": name, "licence": "CC-BY-4.0", "text": text,
        **fields,
    }  # fmt: skip


def question(name: str, title: str, **fields: Any) -> Question:
    given: dict[str, Any] = {
        "question_id": name, "source": "toy", "title": title, "options": ("Yes", "No"),
        "answer_index": 0, "status": "resolved", "licence": "MIT", "opened_at": OPENED,
        "resolved_at": OPENED + 10 * DAY, "background": "Asked at the harbour.",
    }  # fmt: skip
    return Question(**{**given, **fields})


def seal_texts(store: Store, source: str, month: str, *documents: dict[str, Any]) -> None:
    partition = Partition(source, Month(month))
    seal_partition(store, partition, tables_of(documents, partition))


DIKE = question("dike", "Will the dike of Oosterhout hold?")
LEAKS = [
    document("later", "The dike of Oosterhout will not hold: it broke today.", -1),
    document("at once", "The dike of Oosterhout broke as the question opened.", 0),
    document("edited", "The dike of Oosterhout broke, says the edited page.", 40,
             text_as_of=OPENED + DAY),
    document("live page", "The dike of Oosterhout broke, says a page without versions.", 40,
             text_as_of=None),
    document("undated", "The dike of Oosterhout broke at some time.", 40, event_time=None),
    document("closed", "The dike of Oosterhout broke, in a closed text.", 40,
             licence="LicenseRef-closed"),
    document("dated by day", "The dike of Oosterhout broke, says a notice without a time.", 1,
             extra='{"date_precision": "day"}'),
]  # fmt: skip


@pytest.fixture
def planted(store: Store) -> Store:
    """A corpus in which the outcome is told only by texts that the question may not see."""
    seal_questions(store, "toy", MARCH, [DIKE, question("moon", "Moon?")], {"status": "complete"})
    seal_texts(
        store, "news", "2024-02",
        document("survey", "A survey found the dike of Oosterhout to be sound.", 20),
        document("copy", "The dike of Oosterhout is sound.", 12, cluster_id="survey"),
        document("weather", "Rain is expected.", 15),
        *LEAKS,
    )  # fmt: skip
    return store


@pytest.mark.smoke
def test_a_question_sees_what_was_known_before_it_opened(planted: Store) -> None:
    (found,), left_out = retrieve(planted, "toy", [], [], 3)
    (shown,) = read_questions(planted, found.seal)
    assert found.seal.source == shown.source == "toy:documents"
    assert shown.background is not None and shown.background.startswith("Asked at the harbour.")
    assert "is sound" in shown.background or "to be sound" in shown.background
    assert not any(word in shown.background for word in ("broke", "will not hold", "Rain"))
    assert found.num_without == 1  # no text is about the moon
    assert (shown.question_id, shown.options, shown.answer_index) == ("dike", ("Yes", "No"), 0)
    assert left_out == {
        "without the time of its version": 1,
        "without an open licence": 1,
        "newer than all questions": 5,
    }


def test_a_title_of_later_is_not_shown_and_finds_nothing(store: Store) -> None:
    """Sites give an old version of a page its present title."""
    seal_texts(
        store, "news", "2024-02",
        document("page", "A survey of Oosterhout.", 20, title="Breach of the dike of Oosterhout"),
        document("moved", "Rain.", 20, title="Breach of the dike of Oosterhout"),
    )  # fmt: skip
    later = question("later", DIKE.title, opened_at=OPENED + 40 * DAY)
    seal_questions(store, "toy", MARCH, [DIKE, later], {"status": "complete"})
    (found,), _ = retrieve(store, "toy", [], [], 3)
    early, late = (str(each.background) for each in read_questions(store, found.seal))
    assert early.endswith("asked:\n\n[1] 2024-02-19\nA survey of Oosterhout.")
    title = "Breach of the dike of Oosterhout"
    assert late.endswith(f"asked:\n\n[1] 2024-02-19 {title}\nA survey of Oosterhout.")


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: str(leak["native_id"]))
def test_no_leak_is_found_alone(store: Store, leak: dict[str, Any]) -> None:
    seal_questions(store, "toy", MARCH, [DIKE], {"status": "complete"})
    seal_texts(store, "news", "2024-02", leak)
    assert retrieve(store, "toy", [], [], 3)[0] == []


def test_the_same_story_on_two_sites_tells_no_outcome(planted: Store) -> None:
    """The other site repeats the survey after the opening, and adds how it ended."""
    story = "A survey found the dike of Oosterhout to be sound."
    seal_texts(
        planted, "press", "2024-02",
        document("before", story, 19),
        document("after", f"{story} Yet the dike broke.", -2),
        document("edited later", f"{story} Yet the dike broke.", 19, text_as_of=OPENED + DAY),
    )  # fmt: skip
    (found,), _ = retrieve(planted, "toy", [], [], 5)
    (shown,) = read_questions(planted, found.seal)
    assert "to be sound" in str(shown.background)
    assert "broke" not in str(shown.background)


def test_of_the_versions_of_a_page_one_is_shown(planted: Store) -> None:
    (found,), _ = retrieve(planted, "toy", [MARCH], ["news"], 3)
    (shown,) = read_questions(planted, found.seal)
    assert shown.background is not None
    assert "[1] 2024-0" in shown.background and "[2]" not in shown.background
    assert len(found.seal.manifest["documents"]) == 1  # type: ignore[arg-type]


def test_a_later_question_sees_more(planted: Store) -> None:
    later = question("later", "Will the dike of Oosterhout be mended?", opened_at=OPENED + 5 * DAY)
    seal_questions(planted, "toy", Month("2024-04"), [later], {"status": "complete"})
    found, _ = retrieve(planted, "toy", [], [], 5)
    (early,), (late,) = [read_questions(planted, each.seal) for each in found]
    assert "broke today" in str(late.background)
    assert "broke today" not in str(early.background)


def test_models_read_the_passages(planted: Store) -> None:
    (found,), _ = retrieve(planted, "toy", [], [], 3)
    (shown,) = read_questions(planted, found.seal)
    (prompt,) = prompts_of(shown, get_answer_protocol("letter"))
    assert "sound" in prompt.text and "Asked at the harbour." in prompt.text


def test_again_changes_nothing_and_other_texts_need_replace(planted: Store) -> None:
    (first,), _ = retrieve(planted, "toy", [], [], 3)
    (again,), _ = retrieve(planted, "toy", [], [], 3)
    assert again.seal == first.seal
    seal_texts(
        planted, "posts", "2024-02", document("post", "Oosterhout mends its dike: hold on.", 9)
    )
    with pytest.raises(PartitionSealed, match="--replace"):
        retrieve(planted, "toy", [], [], 3)
    (changed,), _ = retrieve(planted, "toy", [], [], 3, replace=True)
    assert changed.seal.digest != first.seal.digest


@pytest.mark.parametrize("source", ["none", "toy:documents"])
def test_questions_that_are_not_there(planted: Store, source: str) -> None:
    retrieve(planted, "toy", [], [], 3)
    with pytest.raises(UsageError, match="no questions of"):
        retrieve(planted, source, [], [], 3)


def test_the_best_passages_are_those_of_a_full_sort(store: Store) -> None:
    """Of 40 passages in 8 clusters, a question sees the best of the three best clusters."""
    words = ["dike", "Oosterhout", "hold", "harbour", "town"]
    texts = [" ".join(words[place % 5 :]) + " filler" * (place * 7 % 13) for place in range(40)]
    seal_texts(store, "news", "2024-02", *(
        document(f"text {place}", text, 20 + place, cluster_id=f"c{place % 8}", title="")
        for place, text in enumerate(texts)
    ))  # fmt: skip
    asked = [dataclasses.replace(DIKE, question_id=str(number)) for number in range(3)]
    seal_questions(store, "toy", MARCH, asked, {"status": "complete"})
    found = find_passages(store, asked, [], 40).passages[asked[0]]
    three = find_passages(store, asked, [], 3).passages
    assert len(found) == 8 and len({each.cluster_id for each in found}) == 8
    assert all(three[each] == found[:3] for each in asked)


def test_the_passages_of_the_corpus_are_not_kept(
    planted: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = weakref.WeakSet[retrieving.Passage]()
    most = 0

    class Counted(retrieving.Passage):
        __hash__ = object.__hash__  # type: ignore[assignment]

        def __post_init__(self) -> None:
            nonlocal most
            alive.add(self)
            most = max(most, len(alive))

    texts = [document(f"d{place}", f"The dike is {'high ' * place}", 30) for place in range(200)]
    seal_texts(planted, "posts", "2024-02", *texts)
    monkeypatch.setattr(retrieving, "Passage", Counted)
    (found,), _ = retrieve(planted, "toy", [], [], 3)
    assert len(found.seal.manifest["documents"]["dike"]) == 3  # type: ignore[index]
    assert most < 20


def test_a_takedown_removes_passages_and_answers(planted: Store, settings: Settings) -> None:
    forget = pytest.importorskip("extras.takedown.forgetting").forget
    has_rows = pytest.importorskip("extras.takedown.rows").has_rows
    moon = question("moon", "Rain expected?")
    seal_questions(planted, "toy", MARCH, [DIKE, moon], {"status": "complete"})
    (former,), _ = retrieve(planted, "toy", [], ["news"], 1)
    seal_texts(
        planted, "posts", "2024-02", document("post", "Will the dike of Oosterhout hold?", 9)
    )
    (found,), _ = retrieve(planted, "toy", [], [], 1, replace=True)
    assert found.seal.path != former.seal.path
    used = found.seal.manifest["documents"]
    assert isinstance(used, dict)
    cell = AnswerCell("m", "r1", "toy:documents", MARCH, found.seal.digest, "letter", "a1")
    asked = read_questions(planted, found.seal)
    answers = [Answer(each.question_id, (0.7, 0.3), 0) for each in asked]
    write_answers(planted, cell, asked, answers)
    land_answer_cells(settings, [(cell, found.seal)])
    keys = {("toy:documents", "dike")}
    assert has_rows(writer_path(settings), [], keys)
    forget(settings, used["dike"], "asked to")
    assert not has_rows(writer_path(settings), [], keys)
    (seal,) = list_questions(planted, "toy:documents")
    assert [each.question_id for each in read_questions(planted, seal)] == ["moon"]
    assert (seal.digest, seal.num_questions) == (found.seal.digest, 1)
    assert planted.list("questions/source=toy*documents/*/*.parquet") == [seal.path]
    with planted.open(cell.path) as file:
        assert pq.read_table(file)["question_id"].to_pylist() == ["moon"]
    for table in ("forecast_questions", "forecast_answers"):
        found_ids = query(settings, f"select question_id from {table}").to_pylist()
        assert found_ids == [{"question_id": "moon"}], table
    assert forget(settings, used["dike"], "asked to").releases == ()


def test_a_takedown_of_a_former_passage_deletes_former_files(
    planted: Store, settings: Settings
) -> None:
    forget = pytest.importorskip("extras.takedown.forgetting").forget
    (former,), _ = retrieve(planted, "toy", [], ["news"], 1)
    seal_texts(
        planted, "posts", "2024-02", document("post", "Will the dike of Oosterhout hold?", 9)
    )
    (found,), _ = retrieve(planted, "toy", [], [], 1, replace=True)
    (gone,) = former.seal.manifest["documents"]["dike"]  # type: ignore[index]
    assert planted.exists(former.seal.path)
    forget(settings, [gone], "asked to")
    assert not planted.exists(former.seal.path)
    assert read_questions(planted, found.seal), "the present passages stay"


def test_texts_that_are_not_there(planted: Store) -> None:
    with pytest.raises(UsageError, match="no texts are sealed of these sources; did you mean news"):
        retrieve(planted, "toy", [], ["nwes"], 3)
    with pytest.raises(UsageError, match="documents; did you mean toy[?] see"):
        retrieve(planted, "toyy", [], [], 3)


def test_a_text_is_known_when_its_version_is() -> None:
    row = {**document("a", "text", 4), "extra": None}
    assert known_at(row) == OPENED - 4 * DAY
    of_a_day = {**row, "extra": '{"date_precision": "day"}'}
    assert known_at(of_a_day) == OPENED - 2.5 * DAY
    assert known_at({**of_a_day, "text_as_of": OPENED - DAY}) == OPENED - DAY
    assert known_at({**row, "text_as_of": None}) == OPENED + 30 * DAY
    assert known_at({**row, "text_as_of": None, "retrieved_at": None}) is None


def test_commands(tidemark: Any, planted: Store) -> None:
    ran = tidemark("forecast", "retrieve", "--source", "toy").expect(0, "without an open licence")
    assert "questions of toy:documents 2024-03: 1 question, 1 without a passage" in ran.out
    tidemark("forecast", "effect").expect(2)


def test_the_effect_is_paired_and_after_the_cutoff(settings: Settings) -> None:
    answers = {  # question: right without, right with documents
        "a": (True, True), "b": (False, True), "c": (False, True), "d": (True, False),
        "e": (False, False), "f": (False, True), "old": (False, True),
    }  # fmt: skip
    with connected(settings) as connection:  # a copy: to make all views takes ten seconds
        connection.execute("insert into models (model, cutoff) values ('m', '2023-12-01')")
        for name, pair in answers.items():
            opened = "2023-06-01" if name == "old" else "2024-03-01"
            for source, is_right in zip(("toy", "toy:documents"), pair, strict=True):
                connection.execute(
                    "insert into forecast_questions (source, question_id, month, opened, "
                    "num_options, answer_index, status) values (?, ?, '2024-04-01', ?, 2, 0, "
                    "'resolved')", [source, name, opened],
                )  # fmt: skip
                connection.execute(
                    "insert into forecast_answers (model, source, question_id, protocol, "
                    "chosen_index, is_parsed, is_correct) values ('m', ?, ?, 'letter', ?, true, ?)",
                    [source, name, 0 if is_right else 1, is_right],
                )
        (row,) = connection.sql(statement()).to_arrow_table().to_pylist()
    assert (row["num_questions"], row["num_better"], row["num_worse"]) == (6, 3, 1)
    assert row["accuracy"] == pytest.approx(2 / 6)
    assert row["difference"] == pytest.approx(2 / 6)
    # Wilson's ends of 4 of 6 and of 2 of 6, and phi = (1 * 1 - 3 * 1) / 8, by hand.
    below = 4 / 6 - 0.29999
    above = 0.90323 - 4 / 6
    phi = -2 / 8
    low = 2 / 6 - (below**2 + below**2 - 2 * phi * below * below) ** 0.5
    high = 2 / 6 + (above**2 + above**2 - 2 * phi * above * above) ** 0.5
    assert row["difference_low"] == pytest.approx(low, abs=1e-3)
    assert row["difference_high"] == pytest.approx(high, abs=1e-3)
