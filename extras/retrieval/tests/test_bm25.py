import datetime as dt
import math

import pytest

from extras.retrieval.bm25 import Queries
from extras.retrieval.passages import MAX_CHARS, spans_of, words_of

DAY = dt.timedelta(days=1)
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TEXTS = ["tide and tide and sand", "sand castle", "tide table for the harbour of the town"]


def search(texts: list[str], words: str, days: float) -> list[tuple[int, float]]:
    """Return number and score of the texts that a query after some days finds, best first.

    A text is known after as many days as its place in the list. Another query, of after all texts,
    is asked beside it.
    """
    queries = Queries([(["town", "tide"], START + 99 * DAY), (words_of(words), START + days * DAY)])
    read = [(START + day * DAY, words_of(text)) for day, text in enumerate(texts)]
    for known_at, found in read:
        queries.count(known_at, found)
    queries.weigh()
    scores = [dict(queries.score(known_at, found)).get(1) for known_at, found in read]
    ranked = [(number, score) for number, score in enumerate(scores) if score is not None]
    return sorted(ranked, key=lambda each: -each[1])


def score(counts: list[int], length: int, mean: float, weights: list[float]) -> float:
    saturated = [n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / mean)) for n in counts]
    return sum(map(math.prod, zip(weights, saturated, strict=True)))


def test_scores_are_those_of_the_formula() -> None:
    found = dict(search(TEXTS, "tide harbour", 3))
    mean = (5 + 2 + 8) / 3
    tide = math.log(1 + 1.5 / 2.5)
    harbour = math.log(1 + 2.5 / 1.5)
    assert found == {
        0: pytest.approx(score([2], 5, mean, [tide])),
        2: pytest.approx(score([1, 1], 8, mean, [tide, harbour])),
    }


def test_what_comes_later_is_neither_found_nor_counted() -> None:
    early = search(TEXTS[:2], "tide sand", 2)
    assert search([*TEXTS, "tide " * 50], "tide sand", 2) == early
    assert [number for number, _ in early] == [0, 1]


def test_a_passage_is_found_only_after_its_own_time() -> None:
    assert search(TEXTS, "tide", 0) == []
    assert [number for number, _ in search(TEXTS, "tide", 0.5)] == [0]


def test_passages_may_be_read_in_any_order() -> None:
    asked = [(words_of("tide sand"), START + 9 * DAY), (words_of("sand"), START + 1.5 * DAY)]
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        queries = Queries(asked)
        for day in order:
            queries.count(START + day * DAY, words_of(TEXTS[day]))
        queries.weigh()
        scored = {
            day: dict(queries.score(START + day * DAY, words_of(TEXTS[day]))) for day in order
        }
        found.append(scored)
    assert found[0] == found[1]
    assert [set(found[0][day]) for day in range(3)] == [{0, 1}, {0, 1}, {0}]


def test_nothing_is_found_for_other_words_or_in_nothing() -> None:
    assert search(TEXTS, "moon", 9) == []
    assert search([], "tide", 9) == []


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
