import json
from pathlib import Path
from typing import Any

import pytest

from crawlers.text.defects import MAX_PLACES, DefectCounts, count_holes, count_markup


@pytest.mark.parametrize(
    "text",
    [
        "has a total area of , all of it land", "is located at  (39.2, -120.1)", "Sun (), ink",
        "Olya (, also Olia)", "Serper ( ; born 1969)", "a commune (Greek: ) in", "the size is .",
        "cost $ million", "see Eq. , or Fig.) here", "predominantly in . Reviewing",
    ],
)  # fmt: skip
def test_a_text_that_lacks_words_has_a_hole(text: str) -> None:
    assert count_holes(text) >= 1
    assert count_markup(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "{{cite web}}", "a [[b", "c]] d", "'''Bold", "so ''it'' is", "x<ref name=a>y", "a<br />b",
        "fish &amp; chips", "&#160;", "a\n== Title ==\nb", "{| class=x", "a\n|-\nb", "__NOTOC__",
        r"as \cite{x}", r"\begin{table}", r"\textbf{x}", "[a](https://b.example)", "## Title",
        "a\n```\nb",
    ],
)  # fmt: skip
def test_what_prose_has_not_is_markup(text: str) -> None:
    assert count_markup(text) >= 1
    assert count_holes(text) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Call f() and g(a, b); it returns () -> int.", "smile :) or ;)", "sky , sea",
        "wait . . . for it", "hit a .478 average", "a < b and c > d",
        "it's the '90s; rock 'n' roll", "C++ and C#, 5'' long",
        "the is–ought problem", "by The Kinks from To the Bone", "costs $5 (or $6), not 10 %",
        r"where $x_{i_{j}}$ and $\begin{cases} 1 \end{cases}$ hold", "a == b", "x [1] y [a]",
        "What is it made of? Of tin, in fact.", "2 * 3 # 4", "Xi'an, and the north",
    ],
)  # fmt: skip
def test_clean_prose_has_no_defect(text: str) -> None:
    assert (count_holes(text), count_markup(text)) == (0, 0)


def test_real_prose_has_almost_none(shared: Path) -> None:
    """These texts are of Wikipedia as others cleaned them; a few have the defects in truth."""
    files = sorted((shared / "data" / "texts").glob("wikipedia_english_*.json"))
    if not files:
        pytest.skip(f"no texts in {shared}/data/texts")
    texts = [text for file in files for text in json.loads(file.read_text(encoding="utf-8"))]
    assert sum(count_holes(text) > 0 for text in texts) <= 0.02 * len(texts)
    assert sum(count_markup(text) > 0 for text in texts) <= 0.03 * len(texts)


def test_counts_have_numerators_denominators_and_rates() -> None:
    counts = DefectCounts()
    for text in ("Sun (), ink ()", "{{" * 1000, "clean" * 100):
        counts.add(text)
    found: Any = counts.as_manifest()
    assert (found["texts"], found["chars"]) == (3, 14 + 2000 + 500)
    assert found["hole"] == {
        "texts": 1, "places": 2, "share_of_texts": 0.3333, "per_million_chars": 795.5449,
    }  # fmt: skip
    assert (found["markup"]["texts"], found["markup"]["places"]) == (1, MAX_PLACES)


def test_a_month_without_prose_has_no_rates() -> None:
    found: Any = DefectCounts().as_manifest()
    assert (found["texts"], found["hole"]["share_of_texts"]) == (0, None)


def test_a_long_formula_is_no_markup() -> None:
    assert count_markup(f"${'{{x}}' * 300}$") == 0
