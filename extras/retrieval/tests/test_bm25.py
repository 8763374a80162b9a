import datetime as dt
import math

import pytest

from extras.retrieval.bm25 import Collector
from extras.retrieval.passages import MAX_CHARS, spans_of, words_of

DAY = dt.timedelta(days=1)
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TEXTS = ["tide and tide and sand", "sand castle", "tide table for the harbour of the town"]


def collected(texts: list[str], words: str = "tide sand harbour") -> Collector:
    collector = Collector(words_of(words))
    for day, text in enumerate(texts):
        collector.add(START + day * DAY, words_of(text))
    return collector


def score(counts: list[int], length: int, mean: float, weights: list[float]) -> float:
    saturated = [n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / mean)) for n in counts]
    return sum(map(math.prod, zip(weights, saturated, strict=True)))


def test_scores_are_those_of_the_formula() -> None:
    found = dict(collected(TEXTS).index().search(["tide", "harbour"], START + 3 * DAY))
    mean = (5 + 2 + 8) / 3
    tide = math.log(1 + 1.5 / 2.5)
    harbour = math.log(1 + 2.5 / 1.5)
    assert found == {
        0: pytest.approx(score([2], 5, mean, [tide])),
        2: pytest.approx(score([1, 1], 8, mean, [tide, harbour])),
    }


def test_what_comes_later_is_neither_found_nor_counted() -> None:
    early = collected(TEXTS[:2]).index().search(["tide", "sand"], START + 2 * DAY)
    whole = collected([*TEXTS, "tide " * 50]).index().search(["tide", "sand"], START + 2 * DAY)
    assert whole == early
    assert [number for number, _ in early] == [0, 1]


def test_a_passage_is_found_only_after_its_own_time() -> None:
    index = collected(TEXTS).index()
    assert index.search(["tide"], START) == []
    assert [number for number, _ in index.search(["tide"], START + DAY / 2)] == [0]


def test_passages_may_be_added_in_any_order() -> None:
    collector = Collector({"tide", "sand"})
    for day in (2, 0, 1):
        collector.add(START + day * DAY, words_of(TEXTS[day]))
    in_order = collected(TEXTS).index().search(["tide", "sand"], START + 9 * DAY)
    numbers = {0: 1, 1: 2, 2: 0}  # place in which each text was added
    found = collector.index().search(["tide", "sand"], START + 9 * DAY)
    assert found == [(numbers[number], pytest.approx(value)) for number, value in in_order]


def test_nothing_is_found_for_other_words_or_in_nothing() -> None:
    assert collected(TEXTS).index().search(["moon"], START + 9 * DAY) == []
    assert collected([]).index().search(["tide"], START + 9 * DAY) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Will GPT-5 ship?", ["will", "gpt", "5", "ship"]),
        ("Straße naïve", ["strasse", "naïve"]),
        ("東京tower", ["東", "京", "tower"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "\n\n  first \n\n second\n" * 100,
        "word " * 1000,
        "x" * (3 * MAX_CHARS + 5),
        "short\n" + "y" * (2 * MAX_CHARS) + "\nend",
        " \n\t\n",
    ],
)
def test_passages_have_all_words_once(text: str) -> None:
    spans = list(spans_of(text))
    passages = [text[start:end] for start, end in spans]
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(0 < len(passage) <= MAX_CHARS for passage in passages)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:], strict=False))
