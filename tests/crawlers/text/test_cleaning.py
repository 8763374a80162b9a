import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.text.cleaning import (
    clean,
    normalise,
    refuse_length,
    strip_markup,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@given(ANY_TEXT)
def test_nothing_invisible_is_left(text: str) -> None:
    normal = normalise(text)
    assert unicodedata.is_normalized("NFC", normal)
    assert not [c for c in normal if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert not set(normal) & set("\u200e\u2060\ufeff\u00ad\u2028\u2029\u202e\ufffe\U0001ffff")
    assert normalise(normal) == normal
    normal.encode()


@given(ANY_TEXT)
def test_code_is_only_normalised(text: str) -> None:
    assert clean(text, is_code=True) == normalise(text)


@given(st.text(st.characters(categories=["L", "N", "Zs", "P"], exclude_characters="<&"))
       .map(lambda text: unicodedata.normalize("NFC", text)))  # fmt: skip
def test_plain_prose_only_loses_its_margins(text: str) -> None:
    assert clean(text) == normalise(text).strip()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a\r\nb\rc\vd\fe\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("a\x00b\x1b[0mc\x7f\x9f", "ab[0mc"),
        ("\ufeffa\u200bb\u00adc\u202ed", "abcd"),
        ("e\u0301", "é"),
        ("e\u200b\u0301", "é"),  # after its removal they are adjacent
        ("half \ud83d of a character", "half  of a character"),
        ("\tif x:\n\t\treturn  y  \n\n\n", "\tif x:\n\t\treturn  y  \n\n\n"),
        ("fi ﬁ K K", "fi ﬁ K K"),  # NFC keeps ligatures, and turns the Kelvin sign into K
    ],
)
def test_normalisation(raw: str, expected: str) -> None:
    assert normalise(raw) == unicodedata.normalize("NFC", expected)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("H<sub>2</sub>O and <b>bold</b>", "H2O and bold"),
        ('<p class="x">one</p><p>two</p>', "one\n\ntwo"),
        ("one<br>two<BR/>three<br />four", "one\ntwo\nthree\nfour"),
        ("fish &amp; chips&nbsp;&#8212;&#x2014;", "fish & chips\xa0——"),
        ("AT&T; R&D; a&copy=1", "AT&T; R&D; a&copy=1"),
        ("see<!-- hidden <b> text --> this", "see this"),
        ("a<script>var x = '<b>';</script>b<style type='x'>p {}</style>c", "abc"),
        ("a &lt;b&gt;bold&lt;/b&gt; claim", "a bold claim"),
        ("if a < b and c > d then a<b", "if a < b and c > d then a<b"),
        ("$x<p$ and $q>r$", "$x<p$ and $q>r$"),
        ("List<String> and <unknown>", "List<String> and <unknown>"),
        ("a<details open>b</details><td nowrap>c", "abc"),
        ("never <!-- closed", "never <!-- closed"),
        ("<<b>b>x", "x"),
        ('cited.<ref name="a" /> More.<ref>note</ref>', "cited. More.note"),
        ('<a href="http://x.org/?a=1&amp;b=2">link</a>', "link"),
    ],
)
def test_markup_of_prose(raw: str, expected: str) -> None:
    assert clean(raw) == expected.strip()
    assert clean(raw, is_code=True) == raw


def test_plain_text_keeps_the_tags_that_a_person_wrote() -> None:
    assert clean(" Use <br> &amp; go\r\n", is_plain=True) == "Use <br> &amp; go"


def test_long_runs_of_marks_are_cut_as_in_stream_safe_text() -> None:
    assert len(normalise("x" + "\u0316" * 31)) == 31
    assert len(normalise("x" + "\u0316" * 30)) == 31
    assert normalise("x" + "\u0316" * 31 + "y").endswith("y")


def test_markup_without_markup_is_free() -> None:
    text = "plain"
    assert strip_markup(text) is text


def test_texts_without_content_and_of_other_lengths_are_refused() -> None:
    found = [refuse_length(text, 8, 5) for text in (" \n ", "four", "éééé ", "12345678", "12345")]
    assert found == [
        ("empty", "no text"),
        ("too_short", "4 characters, at least 5 are needed"),
        ("too_long", "9 bytes, at most 8 are kept; see TIDEMARK_MAX_DOCUMENT_BYTES"),
        None,
        None,
    ]
