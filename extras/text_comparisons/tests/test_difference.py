import difflib
import json
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
from difflib_fast import ratio
from hypothesis import example, given
from hypothesis import strategies as st

from core.corpus.partition import Partition, Seal, tables_of
from core.corpus.sealing import seal_partition
from core.month import Month
from core.storage.store import Store
from extras.text_comparisons.difference import (
    MAX_ARTICLES,
    MAX_PIECES,
    PIECE_CHARS,
    TextDifference,
    measure_difference,
    same_share,
    text_difference,
)

Measure = Callable[[dict[str, str], dict[str, str]], TextDifference]


def letters(num_chars: int, seed: int = 0, alphabet: str = string.ascii_letters) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=num_chars))


@pytest.fixture
def measure(store: Store) -> Measure:
    """Seal the texts of two months, and measure how the later ones differ."""

    def seal(month: str, texts: dict[str, str]) -> Seal:
        partition = Partition("s", Month(month))
        rows = [
            {"native_id": name, "version_id": month, "date_kind": "created", "licence": "MIT",
             "text": text}
            for name, text in texts.items()
        ]  # fmt: skip
        contents = tables_of(rows, partition)
        return seal_partition(store, partition, contents, replace=True)

    return lambda before, after: measure_difference(
        store, seal("2024-01", before), seal("2024-02", after)
    )


few_letters = st.text("ab \n", max_size=60)


def difflib_ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


@pytest.mark.long
@given(few_letters | st.text(max_size=60), few_letters | st.text(max_size=60))
@example("", "")
@example("ab", "")
@example("tide", "diet")  # not the same in the other order
@example("\U0001f30a naïve", "naïve \U0001f30a")
def test_similarity_is_that_of_difflib(one: str, other: str) -> None:
    assert ratio(one, other) == difflib_ratio(one, other)
    assert text_difference(one, other) == 1 - difflib_ratio(one, other)


@pytest.mark.parametrize("genre", ["wikipedia_english", "github_python"])
def test_similarity_of_real_texts_is_that_of_difflib(shared: Path, genre: str) -> None:
    one, other = (
        "".join(json.loads(next((shared / "data/texts").glob(f"{genre}_{day}*")).read_text()))
        for day in ("20240601", "20240701")
    )
    for start in (0, 100_000, 200_000):
        pair = one[start : start + 2000], other[start : start + 2000]
        assert ratio(*pair) == difflib_ratio(*pair)
    edited = one[:1500] + other[:200] + one[1600:3000]
    assert ratio(one[:3000], edited) == difflib_ratio(one[:3000], edited)


def test_pages_are_compared_with_their_own_former_versions(measure: Measure) -> None:
    before = {"p1": "abcd", "p2": "the same", "p3": "gone since"}
    found = measure(before, {"new": "nowhere", "p2": "the same", "p1": "bcdé"})
    # p1: 3 characters of 4 and 4 are in common, so 1 - 2 * 3 / 8; p2: 0.
    assert (found.method, found.num_documents, found.difference) == ("articles", 2, 0.125)
    assert found.num_bytes == len("the same") + len("bcdé".encode())
    assert found.reason is None


def test_of_long_versions_the_same_share_is_compared() -> None:
    one, other = same_share("a" * 30_000, "b" * 40_000)
    assert (len(one), len(other)) == (15_000, 20_000)
    assert same_share("a" * 20_000, "b") == ("a" * 20_000, "b")
    page = letters(50_000)
    longer = page[:10_000] + letters(50_000, alphabet="0123456789") + page[10_000:]
    one, other = same_share(page, longer)
    assert (one, other) == (page[:10_000], longer[:20_000])
    assert text_difference(one, other) == pytest.approx(1 - 2 * 10_000 / 30_000)


def test_the_number_of_pages_is_bounded(measure: Measure) -> None:
    before = {f"p{i}": f"page {i}" for i in range(300)}
    found = measure(before, before | {"p300": "page 300"})
    assert (found.num_documents, found.difference) == (MAX_ARTICLES, 0)


@pytest.mark.parametrize(
    ("num_others", "method"), [(0, "articles"), (2, "articles"), (3, "pooled")]
)
def test_articles_are_what_half_of_both_months_have(
    measure: Measure, num_others: int, method: str
) -> None:
    common = {f"p{i}": "text" for i in range(2)}
    more = common | {f"q{i}": "text" for i in range(num_others)}
    assert measure(common, more).method == measure(more, common).method == method


@pytest.mark.long
@pytest.mark.parametrize("other", ["a" * 199_999 + "b", "ab" * 100_000])
def test_repetitive_text_does_not_hang(measure: Measure, other: str) -> None:
    found = measure({"p": "a" * 200_000}, {"p": other})  # uncut: minutes, and all memory
    assert found.num_bytes == PIECE_CHARS
    assert found.difference == pytest.approx(0.5 if "bab" in other else 0)


def test_pools_are_compared_piece_by_piece(measure: Measure) -> None:
    text = letters(PIECE_CHARS)
    half = text[:10_000] + letters(10_000, alphabet="0123456789")
    found = measure({f"b{i}": text for i in range(3)}, {f"a{i}": half for i in range(2)})
    assert (found.method, found.num_documents, found.num_bytes) == ("pooled", 2, 40_000)
    assert found.difference == pytest.approx(0.5)


def test_pools_are_bounded_and_no_document_is_most_of_one(measure: Measure) -> None:
    before = {f"b{i}": "é" + letters(30_000, i) for i in range(MAX_PIECES + 9)}
    after = {f"a{i}": "é" + letters(30_000, 99 + i) for i in range(MAX_PIECES + 5)}
    found = measure(before, after)
    assert (found.num_documents, found.num_bytes) == (MAX_PIECES, MAX_PIECES * (PIECE_CHARS + 1))
    assert found == measure(before, after)
    assert found.difference is not None and 0.5 < found.difference < 1


def test_only_whole_pieces_are_compared(measure: Measure) -> None:
    # The chance similarity of texts depends on their length, so all pieces have the same one.
    before = {f"b{i}": letters(9_000, i) for i in range(9)}
    found = measure(before, {f"a{i}": letters(9_000, 99 + i) for i in range(4)})
    assert (found.num_documents, found.num_bytes) == (3, PIECE_CHARS)


@pytest.mark.parametrize("num_chars", [0, PIECE_CHARS - 1])
def test_too_little_text_is_not_measured(measure: Measure, num_chars: int) -> None:
    before = {"b": letters(PIECE_CHARS)}
    after = {"a": letters(num_chars)}
    found = measure(before, after)
    assert (found.difference, found.reason, found.num_documents) == (None, "too_little_text", 0)
    assert measure(after, before).reason == "too_little_text"
