"""Why a figure is missing is readable without a pointer: in the page, on phones and on paper."""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from playwright.sync_api import Browser, Page

from core.settings import Settings
from reports.site.build import css_text, opened_site, page_modules, with_code
from reports.site.figure import Column, Figure, marks_of
from tests.reports.site.pages import read_pages

WHY = """e => [getComputedStyle(e, "::after").content, e.title]"""
HEAD = re.compile(r'<th [^>]*title="([^"]+)"[^>]*>([^<]+)')
LISTED = re.compile(r"<b>(\w+)</b>: [^<]")


def test_reasons_have_marks_in_the_order_of_the_cells() -> None:
    columns = [Column("a", "a", ".1f", why="why_a"), Column("b", "b", ".1f")]
    reasons = [f"reason {number}" for number in range(28)]
    rows = pl.DataFrame({"a": [None, 1.0] + [None] * 27, "b": [None] * 29,
                         "why_a": [reasons[0], "not used", *reasons[1:]]},
                        schema={"a": pl.Float64, "b": pl.Float64, "why_a": pl.String})  # fmt: skip
    marks = marks_of(columns, rows)
    assert list(marks) == reasons
    assert [marks[reasons[number]] for number in (0, 1, 25, 26, 27)] == ["a", "b", "z", "aa", "ab"]


@pytest.mark.long
def test_a_complete_value_has_no_reason(usual: Settings) -> None:
    """A table's rows are downloaded with all columns: a reason beside a value is false there."""
    false = set()
    with opened_site(usual) as site:
        for module in page_modules():
            for page in module.make_pages(site):
                for figure in page.figures:
                    false |= {f"{figure.name}: {why}" for why in _needless_reasons(figure)}
    assert not false


def _needless_reasons(figure: Figure) -> Iterator[str]:
    """Yield columns of reasons with a text where all that they explain is there."""
    explained: dict[str, set[str]] = {}
    for column in figure.columns:
        if column.why in figure.rows.columns and column.draw is None:
            ends = [end for end in (column.low, column.high) if end]
            explained.setdefault(column.why, set()).update([column.name, *ends])
    for why, names in explained.items():
        is_whole = pl.all_horizontal(pl.col(name).is_not_null() for name in sorted(names))
        if figure.rows.filter(is_whole & pl.col(why).is_not_null()).height:
            yield why


def test_backticks_of_descriptions_are_shown_as_code() -> None:
    shown = with_code("rates <b>; `tidemark land rates` and a ` alone")
    assert shown == "rates &lt;b&gt;; <code>tidemark land rates</code> and a ` alone"


def test_names_of_columns_are_shown_on_phones_as_they_are() -> None:
    assert css_text("the crowd's (0 to 2)") == '"the crowd\\27 s (0 to 2)"'
    assert css_text("slope × 1000") == '"slope \\d7  1000"'
    assert css_text("</style>") == '"\\3c \\2f style\\3e "'


@pytest.mark.long
def test_each_mark_has_its_reason_below_the_table(root: Path) -> None:
    marked = set()
    for path, page in read_pages(root).items():
        marks = {cell.why for cell in page.cells if cell.why}
        assert marks <= set(LISTED.findall(path.read_text(encoding="utf-8"))), path
        marked |= marks
    assert marked


@pytest.mark.long
def test_what_a_column_is_can_be_read_without_a_pointer(root: Path) -> None:
    explained = 0
    for path in sorted(root.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        for about, head in HEAD.findall(text):
            assert f"<b>{head.strip()}</b>: {about.removesuffix('.')}" in text, path
            explained += 1
    assert explained


@pytest.mark.long
def test_reasons_are_readable_on_phones_and_on_paper(browser: Browser, root: Path) -> None:
    window = browser.new_page(viewport={"width": 390, "height": 844})
    window.goto((root / "index.html").as_uri())
    cell = window.locator("#board tbody tr:not(.compressor) td.none[data-why]:visible").first
    shown, reason = cell.evaluate(WHY)
    assert reason
    assert shown == f'"{reason}"'
    window.set_viewport_size({"width": 1280, "height": 844})
    for media in ("screen", "print"):
        window.emulate_media(media=media)
        shown, _ = cell.evaluate(WHY)
        assert reason in window.locator("#board .reasons:visible").inner_text()
        assert f"{shown.strip(chr(34))}: {reason}" in window.locator("#board .reasons").inner_text()
    window.close()


@pytest.mark.long
def test_parts_of_the_board_have_their_own_reasons(browser: Browser, root: Path) -> None:
    window: Page = browser.new_page()
    window.goto((root / "index.html").as_uri())
    reasons = window.locator("#board .reasons")
    whole = reasons.inner_text()
    window.get_by_label("months or source").select_option("source/code")
    row = window.locator("#board tr", has_text="control:zstd")
    row.get_by_text("4.000").wait_for()
    unknown = window.locator("#board tr", has_text="unknown").locator("td.none").first
    mark, reason = unknown.evaluate("e => [e.dataset.why, e.title]")
    assert f"{mark}: {reason}" in reasons.inner_text()
    window.get_by_label("months or source").select_option("")
    row.get_by_text("4.000").wait_for(state="detached")
    assert reasons.inner_text() == whole
    window.close()
