import dataclasses
import datetime as dt
import re
from typing import Any

import pytest

from core.corpus.partition import Partition, tables_of
from core.corpus.questions import Question, list_questions, read_questions
from core.corpus.sealing import seal_partition
from core.errors import PartitionSealed, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from extras.real_tasks.finding import (
    find_code,
    find_facts,
    find_leads,
    is_other,
    tells_answer,
    words_between,
)
from extras.real_tasks.making import make_tasks
from extras.real_tasks.spelling import spellings
from tests.commands import *  # noqa: F403

MARCH = Month("2024-03")
TOWNS = ["Oosterhout", "Vlissingen", "Terneuzen", "Harlingen", "Delfzijl", "Zierikzee"]


def document(name: str, text: str, **fields: Any) -> dict[str, Any]:
    return {
        "native_id": name, "event_time": dt.datetime(2024, 3, 9, tzinfo=dt.UTC), "title": name,
        "date_kind": "created", "licence": "CC-BY-4.0", "language": "en", "text": text, **fields,
    }  # fmt: skip


def filler(place: int) -> str:
    """Return a long sentence that no other place has."""
    return (
        f"The {'ab' * (place + 1)} office keeps a record of each ship, of its load and of the tide "
        "at which it came in, so that the town may see in a later year how the trade went."
    )


def report(place: int, **fields: Any) -> dict[str, Any]:
    """Return a document with one fact: the town in which a ship was seen."""
    text = (
        f"Ship {'abcdefgh'[place]} is grey. {filler(place)} It was last seen near {TOWNS[place]}."
    )
    return document(f"report {place}", **{"text": text, **fields})


def seal(store: Store, *documents: dict[str, Any], source: str = "news") -> None:
    partition = Partition(source, MARCH)
    seal_partition(store, partition, tables_of(documents, partition), replace=True)


def tasks_of(store: Store, kind: str, source: str = "news") -> list[Question]:
    seals = list_questions(store, f"{source}:task-{kind}")
    return [question for each in seals for question in read_questions(store, each)]


def right(question: Question) -> str:
    assert question.answer_index is not None
    return question.options[question.answer_index]


@pytest.mark.smoke
def test_facts_of_four_documents_are_each_others_options(store: Store) -> None:
    seal(store, *(report(place) for place in range(4)))
    make_tasks(store, [], [], 10)
    asked = tasks_of(store, "cloze")
    assert {right(each) for each in asked} == set(TOWNS[:4])
    for each in asked:
        assert set(each.options) == set(TOWNS[:4])
        place = TOWNS.index(right(each))
        begin = f"Ship {'abcdefgh'[place]} is grey. {filler(place)}"
        assert each.background == f"{begin} It was last seen near"
        assert (each.status, each.opened_at.date()) == ("resolved", dt.date(2024, 3, 9))
        assert right(each) not in each.title


def test_equal_seeds_give_equal_tasks_and_others_give_others(store: Store) -> None:
    seal(store, *(report(place) for place in range(6)))
    (first,) = make_tasks(store, [], [], 10)
    assert make_tasks(store, [], [], 10) == [first]
    with pytest.raises(PartitionSealed, match="--replace"):
        make_tasks(store, [], [], 10, seed=1)
    (other,) = make_tasks(store, [], [], 10, seed=1, replace=True)
    assert other.digest != first.digest
    assert {each.answer_index for each in tasks_of(store, "cloze")} != {0}


LEAKS = {
    "the answer stands in the prompt": {"text": f"At Delfzijl: {filler(8)} It sailed to Delfzijl."},
    "earlier months had the text": {"seen_share": 0.9},
    "the licence is closed": {"licence": "LicenseRef-closed"},
    "there is no date": {"event_time": None, "date_kind": "none"},
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_a_planted_leak_is_not_asked(store: Store, leak: dict[str, Any]) -> None:
    seal(store, *(report(place) for place in range(4)), report(4, **leak))
    make_tasks(store, [], [], 10)
    assert {right(each) for each in tasks_of(store, "cloze")} == set(TOWNS[:4])


def test_an_option_that_the_text_has_is_no_wrong_option(store: Store) -> None:
    """The fifth text names two other towns, so it has no three wrong options among five."""
    text = f"It left Oosterhout for Vlissingen. {filler(9)} It was last seen near Delfzijl."
    seal(store, *(report(place) for place in range(4)), document("fifth", text))
    make_tasks(store, [], [], 10)
    for each in tasks_of(store, "cloze"):
        if right(each) == "Delfzijl":
            pytest.fail(f"asked with {each.options}")


def test_copies_give_each_other_no_option(store: Store) -> None:
    """A copy of a text with another fact would be a second right option."""
    line = "The lamp on the outer pier was lit by the keeper of the western tower that night."
    texts = [
        document(f"copy {place}", f"{line} {filler(9)} It was last seen near {TOWNS[place]}.")
        for place in range(2)
    ]
    seal(store, *texts, *(report(place) for place in range(2, 5)))
    make_tasks(store, [], [], 10)
    asked = tasks_of(store, "cloze")
    assert TOWNS[0] in {right(each) for each in asked}
    for each in asked:
        is_copy = right(each) in TOWNS[:2]
        assert not (is_copy and set(TOWNS[:2]) <= set(each.options))


def test_the_same_story_on_two_sites_tells_no_answer(store: Store) -> None:
    """The other site tells each answer at the beginning; it is neither shown nor an option."""
    seal(store, *(report(place) for place in range(4)))
    told = [
        document(
            f"press {place}",
            f"Seen near {TOWNS[place]}: ship {'abcdefgh'[place]} is grey. {filler(place)} It was "
            f"painted by {TOWNS[(place + 1) % 4]} for the owner.",
        )
        for place in range(4)
    ]
    seal(store, *told, source="press")
    make_tasks(store, [], [], 10)
    asked = tasks_of(store, "cloze")
    assert {right(each) for each in asked} == set(TOWNS[:4])
    for each in [*asked, *tasks_of(store, "cloze", "press")]:
        assert right(each) not in str(each.background)
        is_of_press = each.source.startswith("press:")
        assert ("Seen near" in str(each.background)) == is_of_press


def test_of_a_cluster_one_document_is_asked(store: Store) -> None:
    versions = [report(place, cluster_id="page") for place in (0, 1)]
    seal(store, *versions, *(report(place) for place in range(2, 5)))
    make_tasks(store, [], [], 10)
    assert len(tasks_of(store, "cloze")) == 4


def code(place: int) -> str:
    return "import os\n" + f"# {filler(place)}\n"


def test_lines_of_code_are_completed(store: Store) -> None:
    ends = ["read_table(path)", "sorted(ships, key=age)", "[row.load for row in log]", "sum(loads)"]
    files = [
        document(
            f"f{place}", f"{code(place)}def f{place}():\n    return {end}\n", language="code:python"
        )
        for place, end in enumerate(ends)
    ]
    seal(store, *files)
    make_tasks(store, [], [], 10)
    asked = tasks_of(store, "code")
    assert {right(each) for each in asked} == set(ends)
    assert all(set(each.options) == set(ends) for each in asked)
    assert all(str(each.background).endswith("():\n    return") for each in asked)
    assert tasks_of(store, "cloze") == tasks_of(store, "lead") == []


def test_the_lead_of_a_text_is_told_from_others(store: Store) -> None:
    leads = [
        "A storm of autumn broke the dike of the polder.",
        "Two ferries were sold to an owner in Norway.",
        "Fishermen of Urk asked for lower fees on fuel.",
        "Students measured salt in every canal near Goes.",
    ]
    repeated = "The mayor opened the new lock in the presence of the king."
    body = "\n".join(f"line {place} says what happened on the shore then" for place in range(9))
    texts = [f"{lead} In {lead[11:15]}: {body} {place}" for place, lead in enumerate(leads)]
    seal(
        store,
        *(
            document(text[:20], text.replace("says", f"says {place * 'so '}"))
            for place, text in enumerate([*texts, f"{repeated} {body} {repeated}"])
        ),
    )
    make_tasks(store, [], [], 10)
    asked = tasks_of(store, "lead")
    assert {right(each) for each in asked} == set(leads), "a text says the last one again"
    for each in asked:
        assert str(each.background).endswith("\n\nIn short:")
        assert right(each) not in str(each.background)


def test_in_no_task_of_a_month_the_prompt_has_an_option(store: Store) -> None:
    """Texts share names and numbers in many ways; no prompt has its answer or a wrong option."""
    texts = []
    for place in range(40):
        names = [TOWNS[(place * step) % 6] for step in (1, 2, 5)]
        numbers = [1900 + (place * step) % 29 for step in (1, 3)]
        parts = [
            f"Ship {place} of {names[0]} weighs {numbers[0]} tons.",
            filler(place),
            f"In {numbers[1]} it met {names[1]} and later {names[2]} in {numbers[0]} again.",
        ]
        texts.append(document(f"d{place}", " ".join(parts)))
    seal(store, *texts)
    make_tasks(store, [], [], 100)
    asked = tasks_of(store, "cloze")
    assert len(asked) > 10
    for each in asked:
        shown = words_between(str(each.background))
        assert not [option for option in each.options if words_between(option) in shown]
        assert len(set(each.options)) == 4


@pytest.mark.parametrize(
    ("option", "other", "expected"),
    [
        ("1998", "2004", True),
        ("12 March", "12", False),
        ("Anna Lee", "anna  lee", False),
        ("a dike broke at noon today", "a dike broke at noon", False),
        ("a dike broke at noon today", "two dikes broke at noon today", False),
        ("a dike broke at noon today", "no ship came", True),
    ],
)
def test_options_are_told_apart(option: str, other: str, expected: bool) -> None:
    assert is_other("lead", option, other) is is_other("lead", other, option) is expected


def test_places() -> None:
    text = f"{filler(0)} On day 14 the Dutch ship Queen Anna carried 1,250 tons."
    found = {(each.kind, each.answer) for each in find_facts("d", text)}
    assert found == {
        ("number of 2", "14"), ("number of 4", "1,250"), ("name of 1", "Dutch"),
        ("name of 2", "Queen Anna"),
    }  # fmt: skip
    assert [each.before[-6:] for each in find_facts("d", text) if each.answer == "14"] == ["On day"]
    assert list(find_facts("d", "It has 14 masts.")) == [], "too little stands before it"
    (line,) = find_code("d", f"{code(0)}total = sum(loads)  # all\nx == y\nload = sum(parts)")
    assert (line.kind, line.answer) == ("code after =", "sum(parts)")
    (lead,) = find_leads("d", f"A storm of the autumn broke the old dike. {filler(0)} {filler(1)}")
    assert lead.answer == "A storm of the autumn broke the old dike."
    assert re.match("The ab office", lead.before)


@pytest.mark.parametrize(
    ("begin", "end", "answer"),
    [
        ("Mrs Merkel spoke.", "Later came Angela Merkel again.", "Angela Merkel"),
        ("See https://a.example/AngelaMerkel now.", "Later came Angela Merkel.", "Angela Merkel"),
        ("Hamburgs Hafen wuchs.", "Dann kam er nach Hamburg.", "Hamburg"),
        ("В Москве шёл снег.", "Потом была Москва.", "Москва"),
        ("European towns grew.", "Later came Europe again.", "Europe"),
        ("It is Zurich here.", "Later came Zürich again.", "Zürich"),
        ("Herr Mueller sprach.", "Dann kam Müller.", "Müller"),
        ("Soren spoke.", "Later came Søren again.", "Søren"),
        ("It was on 2024-03-12.", "It was also in March again.", "March"),
        ("It had 1250 tons.", "It lost 1,250 tons.", "1,250"),
        ("It had 1\u202f250 tons.", "It lost 1,250 tons.", "1,250"),
        ("It had 1250.00 tons.", "It lost 1,250 tons.", "1,250"),
        ("It had 1.5 million tons.", "It lost 1,500,000 tons.", "1,500,000"),
        ("Twelve people fell.", "Later the 12 people rose.", "12"),
        ("Forty-five people fell.", "Later the 45 people rose.", "45"),
        ("Sixty people fell.", "Later the 60 people rose.", "60"),
        ("It was on 12.03.2024.", "It was on day 12 again.", "12"),
        ("It was on 2024-03-12.", "It was on 12.03.2024 again.", "12.03.2024"),
        ("It was on the twelfth of March 2024.", "It was on 12.03.2024 again.", "12.03.2024"),
        ("It was on the twelfth of March.", "It was on day 12 again.", "12"),
        ("The twenty-first ship came.", "It was on day 21 again.", "21"),
        ("Pope Pius XII came.", "It was the ship 12 again.", "12"),
        ("In nineteen ninety-eight it fell.", "It rose after 1998 again.", "1998"),
        ("In twenty oh four it fell.", "It rose after 2004 again.", "2004"),
        ("It had two thousand and four tons.", "It lost 2004 tons.", "2004"),
        ("It had twelve hundred and fifty tons.", "It lost 1,250 tons.", "1,250"),
        ("It had 1.25 thousand tons.", "It lost 1,250 tons.", "1,250"),
        ("| tons | 1 250 |", "It lost 1,250 tons.", "1,250"),
        ("See https://a.example/loads/1250.html now.", "It lost 1,250 tons.", "1,250"),
        ("В Москве шёл снег.", "Then came Moskva again.", "Moskva"),
        ("В Москве шёл снег.", "Then came Moscow again.", "Moscow"),
        ("It was in Moscow.", "Потом была Москва.", "Москва"),
        ("Στην Αθήνα χιόνιζε.", "Then came Athina again.", "Athina"),
        ("The EU paid.", "Later came the European Union again.", "European Union"),
        ("The E.U. paid.", "Later came the European Union again.", "European Union"),
        ("See https://a.example/Z%C3%BCrich now.", "Later came Zürich again.", "Zürich"),
        ("It is Z&uuml;rich here.", "Later came Zürich again.", "Zürich"),
        ("| port | Vlissingen |", "Later came Vlissingen again.", "Vlissingen"),
    ],
)
def test_an_answer_in_another_form_is_told(begin: str, end: str, answer: str) -> None:
    places = list(find_facts("d", f"{begin} {filler(0)} {end}"))
    [place] = [each for each in places if each.answer == answer]
    assert tells_answer(place)
    is_calendar = answer in ("March", "12.03.2024")  # those are never asked
    assert tells_answer(dataclasses.replace(place, before=filler(0))) == is_calendar


@pytest.mark.parametrize(
    ("begin", "end", "answer"),
    [
        ("Mrs Kohl spoke.", "Later came Angela Merkel again.", "Angela Merkel"),
        ("It is Hanover here.", "Later came Hamburg again.", "Hamburg"),
        ("It had 12500 tons.", "It lost 1,250 tons.", "1,250"),
        ("Two people fell.", "Later the 20 people rose.", "20"),
        ("The UN paid.", "Later came the European Union again.", "European Union"),
        ("Twenty-one hundred fell.", "It rose after 1998 again.", "1998"),
    ],
)
def test_another_name_or_number_tells_nothing(begin: str, end: str, answer: str) -> None:
    places = list(find_facts("d", f"{begin} {filler(0)} {end}"))
    [place] = [each for each in places if each.answer == answer]
    assert not tells_answer(place)


@pytest.mark.parametrize("comment", ["# see read_table of path", "# readTable(path) is slow"])
def test_an_end_of_code_that_a_comment_has_is_told(comment: str) -> None:
    text = f"{code(0)}{comment}\ntable = read_table(path)\n"
    [place] = [each for each in find_code("d", text) if each.kind == "code after ="]
    is_told = comment.startswith("# readTable")
    assert tells_answer(place) == is_told


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("name of 1", "Zurich", "Zürich"), ("name of 1", "Hamburgs", "Hamburg"),
        ("number of 4", "1250", "1,250"),
    ],
)  # fmt: skip
def test_two_forms_of_one_answer_are_not_two_options(kind: str, first: str, second: str) -> None:
    assert not is_other(kind, first, second) and not is_other(kind, second, first)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, {"zero", "zeroth"}),
        (12, {"twelve", "twelfth", "xii"}),
        (40, {"forty", "fortieth", "xl"}),
        (300, {"three hundred", "three hundredth", "ccc"}),
        (1998, {
            "one thousand nine hundred ninety eight", "one thousand nine hundred ninety eighth",
            "nineteen hundred ninety eight", "nineteen hundred ninety eighth",
            "nineteen ninety eight", "nineteen ninety eighth", "mcmxcviii",
        }),
    ],
)  # fmt: skip
def test_spellings(number: int, expected: set[str]) -> None:
    assert set(spellings(number)) == expected


def test_a_number_of_very_many_digits_is_read() -> None:
    assert list(find_facts("d", f"{filler(0)} It has {'7' * 5000} and again {'8' * 5000} tons."))


def test_a_takedown_removes_the_tasks_of_a_document(store: Store, settings: Settings) -> None:
    forget = pytest.importorskip("extras.takedown.forgetting").forget
    seal(store, *(report(place) for place in range(5)))
    make_tasks(store, [], [], 10)
    (sealed,) = list_questions(store, "news:task-cloze")
    used = sealed.manifest["documents"]
    assert isinstance(used, dict)
    gone = next(iter(used))
    forget(settings, [gone], "asked to")
    left = {each.question_id for each in tasks_of(store, "cloze")}
    assert left == {name for name, documents in used.items() if gone not in documents}


def test_nothing_to_make(store: Store) -> None:
    with pytest.raises(UsageError, match="no texts of months"):
        make_tasks(store, [], [], 10)
    seal(store, report(0))
    assert make_tasks(store, [], [], 10) == []
    with pytest.raises(UsageError, match="and months; did you mean news[?] see"):
        make_tasks(store, ["nwes"], [], 10)


def test_commands(tidemark: Any, store: Store) -> None:
    seal(store, *(report(place) for place in range(4)))
    assert "news:task-cloze 2024-03: 4 tasks" in tidemark("tasks", "make").expect(0).out
    tidemark("tasks", "show").expect(2)
