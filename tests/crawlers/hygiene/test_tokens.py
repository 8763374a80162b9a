import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawlers.hygiene import tokens
from crawlers.hygiene.signatures import sign
from crawlers.hygiene.tokens import distinct, ngrams, tokens_of

ASCII = st.text(st.characters(codec="ascii"), max_size=120)


def _hashes(text: str, is_code: bool = False) -> list[int]:
    return [int(one) for one in tokens_of(text, is_code).hashes]


@given(ASCII, ASCII)
def test_hashes_are_equal_where_words_are(one: str, other: str) -> None:
    words = [re.findall(r"[a-z0-9]+", text.lower()) for text in (one, other)]
    found = _hashes(one) + _hashes(other)
    assert len(found) == len(words[0]) + len(words[1])
    by_word = dict(zip(words[0] + words[1], found, strict=True))
    assert [by_word[word] for word in words[0] + words[1]] == found
    assert len(set(by_word.values())) == len(by_word)


@given(ASCII)
def test_code_has_its_signs_and_its_case(text: str) -> None:
    expected = re.findall(r"[A-Za-z0-9_]+|[!-/:-@\[-^`{-~]", text)
    assert len(_hashes(text, is_code=True)) == len(expected)


def test_case_counts_in_code_alone() -> None:
    assert _hashes("Some WORDS") == _hashes("some words")
    assert _hashes("Some", is_code=True) != _hashes("some", is_code=True)
    assert len(_hashes("a_b", is_code=True)) == 1
    assert len(_hashes("a_b")) == 2


def test_words_of_any_script() -> None:
    spaced, unspaced = "Grüße aus Łódź – „schön“. Привет, мир!", "東京へ行く。สวัสดี"
    assert (len(_hashes(spaced)), len(_hashes(unspaced))) == (6, 5 + 6)
    assert len(_hashes("naïve café")) == 2
    assert _hashes("\ud800 a") == _hashes("a")[:0] + _hashes("\ud800 a")  # no error


def test_letters_and_visible_characters_are_counted() -> None:
    found = tokens_of("ab 12,\t\ncé 中 नि", is_code=False)
    assert (found.num_letters, found.num_visible) == (7, 10)
    assert tokens_of("", is_code=False).hashes.tolist() == []


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30), st.integers(1, 13))
def test_ngrams_are_equal_where_windows_are(values: list[int], n: int) -> None:
    found = ngrams(np.array(values, dtype=np.uint64), n).tolist()
    windows = [tuple(values[i : i + n]) for i in range(max(len(values) - n + 1, bool(values)))]
    assert len(found) == len(windows)
    pairs = dict(zip(windows, found, strict=True))
    assert [pairs[window] for window in windows] == found
    assert len(set(found)) == len(pairs)


@given(st.lists(st.integers(0, 9) | st.integers(0, 2**64 - 1), max_size=30))
def test_distinct_is_sorted_and_without_repeats(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.uint64)).tolist() == sorted(set(values))


def test_a_long_text_is_cut_at_spaces() -> None:
    words = [f"word{number}" for number in range(200_000)]
    found = _hashes(" ".join(words))
    assert len(found) == len(words)
    assert found[150_000] == _hashes("word150000")[0]


def test_a_text_without_spaces_is_cut_into_blocks() -> None:
    assert len(_hashes("x" * 1_000_000)) == -(-1_000_000 // tokens._BLOCK)
    assert len(_hashes(", " * 500_000)) == 0


def test_hashes_stay_as_they_are_in_every_process() -> None:
    """Sealed sketches hold the hashes: changed ones need another signatures.ALGORITHM."""
    hashes = tokens_of("tide mark", is_code=False).hashes
    assert hashes.tolist() == [3144160608323628300, 2050410756931944267]
    assert sign([ngrams(hashes, 5)])[0, :4].tolist() == [64600, 12101, 50510, 12790]
