import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from prefect.types.names import LOWERCASE_LETTERS_NUMBERS_AND_DASHES_ONLY_REGEX as VALID

from tasks.prefect.artifacts import key_of, plain, plain_cell

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)", "<https://evil.example>", "# heading", "- [ ] list",
    "> quote", "`code` **bold** _em_ ~~gone~~ ***", "a | b", "&lt;b&gt; &amp;", "back\\slash \\<b>",
    "two\n\n# lines\r\n```\ncode", "==\n--", "    four spaces",
    "http://evil.example and www.evil.example and a@evil.example",
]  # fmt: skip
MARKDOWN = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def shown(text: str) -> str:
    words = []
    for token in MARKDOWN.parse(text):
        for part in token.children or [token]:
            if part.type in {"text", "text_special"}:
                words.append(part.content)
            elif part.type not in {"paragraph_open", "paragraph_close", "inline"}:
                words.append(f"<<{part.type}>>")
    return "".join(words)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize("escape", [plain, plain_cell])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_as_they_are(name: str, escape: Callable[[str], str]) -> None:
    assert shown(escape(name)) == one_line(name)


def test_the_names_are_hostile_indeed() -> None:
    assert sum(shown(name) != one_line(name) for name in HOSTILE) >= 10


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1))
def test_any_name_is_shown_as_it_is(name: str) -> None:
    assert shown(plain(name)) == one_line(name)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_makes_a_link_by_itself_is_left(name: str) -> None:
    for escape in (plain, plain_cell):
        assert not re.search(r"https?://|www\.|\w@\w", escape(name))


@pytest.mark.parametrize("name", ["wikipedia_new", "arxiv 2024-03", "reference-2023-08"])
def test_ordinary_names_stay_readable_in_cells(name: str) -> None:
    assert plain_cell(name) == name


@settings(deadline=None)
@given(st.text())
def test_keys_are_valid_and_stable(name: str) -> None:
    key = key_of("cells", name)
    assert re.fullmatch(VALID, key)
    assert key == key_of("cells", name)
    assert len(key) <= 80


def test_keys_of_different_names_differ() -> None:
    names = ["a/b", "a-b", "A-b", "a b", "a\nb", "ä-b", "a" * 100, "a" * 101, "", "\ud800"]
    assert len({key_of("cells", name) for name in names}) == len(names)
    assert key_of("report") == "tidemark-report"
