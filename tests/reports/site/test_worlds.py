"""What a whole site says of planted worlds: true, free of contradictions, and never empty."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

import polars as pl
import pytest

from core.settings import Settings
from reports.site import build
from reports.site.build import opened_site, page_modules
from reports.site.figure import NOTHING, Figure, cell
from reports.site.pages import compare, overview, source
from tests.losses import publish_rows
from tests.reports.curves import Figures, crowd, level, losses, step
from tests.tiers import few

pytestmark = pytest.mark.long

TEXTS = re.compile(r"<(h1|h2|p|li|dd)\b(?! class=.tools)[^>]*>(.*?)</\1>", re.DOTALL)
WORSE = re.compile(r"(?:(\d+) of (\d+)|(None) of (\d+)|(No)) models?\b.* worse")
OTHERS = re.compile(r"real models|worse after|worse on|inputs|rate for")  # not of all own rows
BEST = re.compile(r"^(.+) predicts (?:these months|this month) best$")
SIZED = re.compile(r"worse(?:: \S+|,) by ([\d.−]+) bits per byte \(95 %: ([\d.−]+) to")
EMPTY = re.compile(
    r"^\W*$|\b(nan|None|inf)\b(?! of)|\b0 of 0\b|\bof 0 \w|\bAll 0\b"
    r"|\b([\d,]+) of \2 cells|(?<![-\d.−])(?<!95 %: )([\d.]+) to \3(?![-\d.])|−0\.0+\b"
)


@dataclass
class Site:
    titles: dict[str, str]  # of figures, by name
    rows: dict[str, pl.DataFrame]
    texts: dict[str, list[str]]  # by page
    unexplained: Sequence[str] = ()  # columns with a dash without a reason, by figure


def read(settings: Settings, modules: Sequence[Any] = ()) -> Site:
    """Make all pages, or those of some modules, without drawing their charts."""
    with opened_site(settings) as site:
        made = modules or page_modules()
        pages = [page for module in made for page in module.make_pages(site)]
        assert not site.failures
        texts = {}
        for page in pages:
            main = build._render(site, page, {}).partition("<main")[2].partition("</main>")[0]
            found = [text for _, text in TEXTS.findall(main)]
            texts[page.path] = [unescape(re.sub(r"<[^>]+>", "", text)).strip() for text in found]
        figures = [figure for page in pages for figure in page.figures]
        titles = {figure.name: figure.title for figure in figures}
        rows = {figure.name: figure.rows for figure in figures}
        return Site(titles, rows, texts, list(unexplained(figures)))


def unexplained(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the columns that are shown from the start and have a dash without a reason."""
    for figure in figures:
        for column in figure.columns:
            cells = [cell(row, column) for row in figure.rows.to_dicts()]
            if not column.is_optional and any(c.text == NOTHING and not c.why for c in cells):
                yield f"{figure.name}: {column.name}"


def complaints(site: Site, best: str | None) -> Iterator[str]:
    """Yield what is false, contradictory or empty; ``best`` is the planted best model, if any."""
    for path, texts in site.texts.items():
        yield from (f"{path}: empty: {text!r}" for text in texts if EMPTY.search(text))
    yield from (f"no reason: {place}" for place in site.unexplained)
    everything = [text for texts in site.texts.values() for text in texts]
    yield from _of_cells(everything)
    named = {found[1] for text in everything if (found := BEST.match(text))}
    if named - {best}:
        yield f"best: {named}, planted: {best}"
    told = [WORSE.search(text) for text in everything if not OTHERS.search(text)]
    worse = {found.groups() for found in told if found}
    if len({group[0] or "0" for group in worse}) > 1:
        yield f"worse: {worse}"
    for text in everything:
        if (found := SIZED.search(text)) and found[2].startswith("−"):
            yield f"more than its interval: {text}"
    board = site.rows.get("board")
    if board is not None:
        yield from _of_board(board, named)
    yield from _of_pairs(site, named)
    yield from _of_cutoffs(site, everything)


def _of_cells(everything: Sequence[str]) -> Iterator[str]:
    nothing = [text for text in everything if text.startswith("Nothing is measured under")]
    if nothing and "Every model is scored on every month of every source" in everything:
        yield f"all is scored, but: {nothing[0]}"


def _of_cutoffs(site: Site, everything: Sequence[str]) -> Iterator[str]:
    board = site.rows.get("board")
    nothing = "No cutoff can be told from the losses yet."
    if board is not None and nothing in everything and board["cutoff_text"].drop_nulls().len():
        yield f"an end of a cutoff is told, but: {nothing}"


def _of_board(board: pl.DataFrame, named: set[str]) -> Iterator[str]:
    ranked = board.filter(pl.col("rank").is_not_null())
    levels = ranked["bits_per_byte"].to_list()
    if levels != sorted(levels):
        yield f"the board's order: {levels}"
    lows = board.filter(pl.col("model").str.starts_with("control:"))["bits_per_byte_low"]
    for name in named:
        [row] = board.filter(pl.col("model") == name).to_dicts()
        if row["rank_high"] != 1 or any(low <= row["bits_per_byte_high"] for low in lows):
            yield f"{name} shares its rank or its interval"
    if board.filter(
        pl.col("model").str.starts_with("control:") & pl.col("rank").is_not_null()
    ).height:
        yield "a compressor has a rank"
    told = board.filter(pl.col("estimated_cutoff").is_not_null())
    if told.select(pl.any_horizontal(
        pl.col("estimated_cutoff_low", "estimated_cutoff_high").is_null()
    )).to_series().any():  # fmt: skip
        yield "a month is printed for a cutoff with an open interval"


def _of_pairs(site: Site, named: set[str]) -> Iterator[str]:
    rows = site.rows.get("neighbours", pl.DataFrame()).to_dicts()
    for row in rows:
        if row["p_value_adjusted"] is not None and row["p_value_adjusted"] <= 0.05:
            lower = row["model"] if row["difference"] < 0 else row["other"]
            higher = row["other"] if lower == row["model"] else row["model"]
            if higher in named:
                yield f"{higher} is best, but {lower} is better"


def both(world: Any, *names: str) -> Figures:
    """The same curves on several sources."""
    return {key: bits for name in names for key, bits in world(name).items()}


def staggered() -> Figures:
    """Old is better on new text; new is better on text that it was trained on."""
    return both(
        lambda source: {
            **step("old", source, "2024-03", 0.95, 1.0, 12),
            **step("new", source, "2024-08", 0.6, 1.4, 12),
            **step("mid", source, "2024-06", 0.9, 1.2, 12),
            **level("control:zstd", source, 3.0, 12),
        },
        "news", "code",
    )  # fmt: skip


def compressor_wins_on_one() -> Figures:
    return {
        **level("a", "news", 1.0), **level("a", "code", 3.4),
        **level("b", "news", 1.5), **level("b", "code", 3.5),
        **level("control:zstd", "news", 3.0), **level("control:zstd", "code", 3.0),
    }  # fmt: skip


def compressor_shares() -> Figures:
    return {
        **level("a", "news", 3.0),
        **level("b", "news", 4.0),
        **level("control:zstd", "news", 3.01),
    }


OLD = {"a": "2023-11", "b": "2023-12"}
WORLDS: dict[str, tuple[Figures, dict[str, str], str | None]] = {
    "the better model has the older cutoff": (
        staggered(), {"old": "2024-03", "mid": "2024-06", "new": "2024-08"}, "old"
    ),
    "a compressor wins on one source": (compressor_wins_on_one(), OLD, "a"),
    "a compressor shares the rank": (compressor_shares(), OLD, None),
    "no month is new": (
        {**level("a", "news", 1.0), **level("b", "news", 2.0)}, {"a": "2025-01", "b": "2025-02"},
        None,
    ),
    "no month is new, beside a compressor": (
        {**level("a", "news", 1.0), **level("b", "news", 2.0), **level("control:xz", "news", 3.0)},
        {"a": "2025-01", "b": "2025-02"}, None,
    ),
    "no month is common": (
        {**level("a", "news", 1.0, 14), **level("b", "code", 2.0, 14)}, OLD, None
    ),
    "one month": ({**level("a", "news", 1.0, 1), **level("b", "news", 2.0, 1)}, OLD, "a"),
    "one model": (level("a", "news", 1.0), {"a": "2023-11"}, None),
    "one model without a cutoff": (level("a", "news", 1.0), {}, None),
    "no loss is finite": (
        {key: None for name in "ab" for key in level(name, "news", 1.0)}, OLD, None
    ),
    "only compressors": (
        {**level("control:xz", "news", 3.0), **level("control:zstd", "news", 3.1)}, {}, None
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", few(WORLDS, 1))
def test_no_sentence_is_false_or_empty_and_none_contradicts_another(
    publish_figures: Any, name: str
) -> None:
    figures, cutoffs, best = WORLDS[name]
    site = read(publish_figures(figures, cutoffs))
    assert not "\n".join(complaints(site, best))
    if best is not None:
        assert BEST.match(site.titles["board"])


def test_figures_of_another_protocol_are_named_beside_the_missing_board(
    settings: Settings,
) -> None:
    rows = losses(level("a", "news", 1.0)).to_pylist()
    publish_rows(settings, [{**row, "protocol": "first-5000-chars"} for row in rows])
    site = read(settings.model_copy(update={"protocol": "first-5000-chars"}), [overview])
    assert "board" not in site.rows
    [said] = [text for text in site.texts["index.html"] if "first-5000-chars" in text]
    assert said.endswith("These figures are of protocol first-5000-chars: a.")


def test_what_is_not_compared_is_not_called_compared(publish_figures: Any) -> None:
    figures, cutoffs, _ = WORLDS["no month is new, beside a compressor"]
    site = read(publish_figures(figures, cutoffs), [overview, compare, source])
    board = " ".join(site.texts["index.html"])
    assert "Levels are over all months." in board
    assert "Level and rank are over" not in board
    compared = site.texts["compare.html"]
    assert "a and b cannot be compared: no common month after both cutoffs" in compared
    assert not [text for text in compared if text.startswith("Comparisons need two models")]
    assert site.titles["sources"] == "1 source, 32 documents"
    assert not site.unexplained


def test_models_of_equal_losses_have_no_floor_of_zero(publish_figures: Any) -> None:
    figures = {**level("a", "news", 1.0), **level("b", "news", 1.0)}
    site = read(publish_figures(figures, OLD), [overview])
    assert site.titles["board"].startswith("2 models share the first rank")
    assert not [text for text in site.texts["index.html"] if "could be told apart from" in text]


@pytest.mark.slow
def test_a_world_of_45_models_is_told_without_contradictions(publish_figures: Any) -> None:
    figures, cutoffs = crowd(45, random.Random(0))
    site = read(publish_figures(figures, cutoffs))
    assert list(complaints(site, "m00")) == []
    assert site.titles["rises"].startswith("36 of 45 models")


@pytest.mark.parametrize(
    "text",
    [
        "432 of 432 cells are there",
        "0 of 0 models",
        "A token is 3.00 to 3.00 bytes",
        "nan",
        "…",
        "grows by −0.000",
    ],
)
def test_empty_sentences_are_found(text: str) -> None:
    assert EMPTY.search(text)


def test_contradictions_are_found() -> None:
    site = Site({}, {}, {
        "a.html": ["35 of 45 models with months on both sides predict later text worse"],
        "b.html": ["No model predicts the months after its cutoff worse by more than chance",
                   "a predicts these months best"],
    })  # fmt: skip
    assert len(list(complaints(site, "b"))) == 2
