import random
import time

import pytest

from crawlers.hygiene import boilerplate
from crawlers.hygiene.boilerplate import Boilerplate, LineSample
from tests.crawlers.conftest import prose

NOTICE = "Sign up for our newsletter today."


def _find(texts: list[str]) -> Boilerplate:
    sample = LineSample()
    for text in texts:
        sample.add(text)
    counts = sample.count_candidates()
    if counts is None:
        return Boilerplate({})
    for text in texts:
        counts.add(text)
    return counts.boilerplate()


def _month(size: int, with_notice: int, line: str = NOTICE) -> list[str]:
    return [f"{prose(n)}\n{line}\n" if n < with_notice else prose(n) for n in range(size)]


def _lines(found: Boilerplate) -> list[tuple[str, int]]:
    return [(one["line"], one["texts"]) for one in found.as_manifest()["most_frequent"]]  # type: ignore[attr-defined]


def test_a_line_in_more_than_30_percent_of_the_texts_is_boilerplate() -> None:
    assert not _find(_month(20, 6))  # just 30 %
    found = _find(_month(20, 7))
    assert _lines(found) == [(NOTICE, 7)]
    assert found.cut(f"One.\n  {NOTICE} \nTwo.\n\n{NOTICE}") == "One.\nTwo."
    assert found.cut(" One, which has none \n") == " One, which has none \n"
    assert found.cut(f"{NOTICE} And more.") == f"{NOTICE} And more."


@pytest.mark.parametrize(
    ("texts", "is_found"),
    [
        (_month(4, 4), False),  # a small month
        (_month(5, 5), True),
        (_month(20, 20, "Introduction"), False),
        (_month(20, 20, "x" * 19), False),
        (_month(20, 20, "x" * 20), True),
        ([*(prose(n) for n in range(10)), *[f"{prose('spam')}\n{NOTICE}"] * 30], False),  # one text
        ([f"{prose(n)}\n" + f"{NOTICE}\n" * (50 * (n < 3)) for n in range(20)], False),
    ],
    ids=["4 texts", "5 texts", "heading", "19 characters", "20 characters", "posted often", "in 3"],
)
def test_what_is_boilerplate(texts: list[str], is_found: bool) -> None:
    assert bool(_find(texts)) == is_found


def test_large_months_are_sampled_and_counted_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boilerplate, "_SAMPLE_TEXTS", 200)
    rng = random.Random(1)
    texts = [
        "\n".join(
            [f"text {n} of the month, the only one that has this line"]
            + ["A line in 33 % of the texts."] * (n % 100 < 33)
            + ["A line in 27 % of the texts."] * (n % 100 >= 73)
        )
        for n in range(5000)
    ]
    first = _find(texts)
    assert _lines(first) == [("A line in 33 % of the texts.", 1650)]
    rng.shuffle(texts)
    assert _find(texts).as_manifest() == first.as_manifest()


def test_memory_is_bounded_whatever_a_text_has_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boilerplate, "_SAMPLE_TEXTS", 10)
    sample = LineSample()
    for number in range(30):
        sample.add("\n".join(f"line {line} of text {number}, long enough" for line in range(9000)))
    assert len(sample._lines) == len(sample._heap) == 10
    assert {len(lines) for lines in sample._lines.values()} == {boilerplate._SAMPLE_LINES}


def test_time_is_linear_in_lines() -> None:
    began = time.process_time()
    texts = [f"{n}\n" + "\n" * 100_000 + f"{NOTICE}\n" * 4_000 for n in range(6)]
    found = _find(texts)
    assert found.cut(texts[0]) == "0"
    assert time.process_time() - began < 3
