import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from core.errors import UsageError
from core.month import Month
from core.settings import Settings, load_settings
from reports.page import PAGE, render, write_report
from tests.reports.curves import HOSTILE_MODEL, HOSTILE_SOURCE, level, step

pytestmark = pytest.mark.long
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
# Parts of charts that stick out of their picture, or are too small to read.
UNREADABLE = """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1 ||
            box.top < frame.top - 1 || box.bottom > frame.bottom + 1 ||
            Math.min(box.width, box.height) < 8;
    }).map(text => text.textContent);
})"""


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.captions: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._into: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th", "figcaption"}:
            self._into = self.captions if tag == "figcaption" else self.rows[-1]
            self._into.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th", "figcaption"}:
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into[-1] += data


def test_the_table_has_the_figures(usual: Settings) -> None:
    header, *rows = Reader(render(usual, "default")).rows
    assert header == [
        "model", "source", "before", "after", "gap", "95 % interval".replace(" %", "\xa0%"),
        "TBI a year", "estimated cutoff", "cutoff",
    ]  # fmt: skip
    # A model's name spans its rows.
    assert [rows[0][:5], rows[1][:4]] == [
        [HOSTILE_MODEL, "all sources", "0.850", "1.050", "+0.200"],
        [HOSTILE_SOURCE, "0.900", "1.200", "+0.300"],
    ]
    assert [row[-3:] for row in rows if "all sources" in row] == [
        ["+0.429", "2024-05", "2024-05 planted"],
        ["+0.800", "2024-04", "2024-04 planted"],
        ["+0.000", "–", "(2024-04)"],  # in fewer sources than the others
        ["+0.000", "–", "(2024-05)"],
        ["+0.000", "–", "(2024-04)"],
        ["+0.000", "–", "(2024-05)"],
    ]


def test_the_page_is_self_contained_and_names_from_outside_are_text(usual: Settings) -> None:
    address = write_report(usual)
    assert address == f"{usual.home}/{PAGE}"
    page = Path(address).read_text(encoding="utf-8")
    everywhere = [HOSTILE_MODEL, "early", "control:zstd"]
    news = [HOSTILE_MODEL, "early", "unknown", "control:zstd"]
    reader = Reader(page)
    assert reader.captions == [*news, *everywhere]  # "<" sorts before "c"
    assert page.count("cutoff 2024-04") == 2
    assert page.count("no cutoff known</text>") == 3
    assert "could not be measured" not in page
    assert not {"script", "b", "iframe", "object", "link", "img"} & {tag for tag, _ in reader.tags}
    for tag, attributes in reader.tags:
        assert not {"src", "href", "xlink:href", "srcset", "style"} & attributes.keys(), tag
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.search(r"@import|url\(", page)
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page


def test_the_page_says_what_it_is_made_of(publish_figures: Any) -> None:
    figures = {**level("m", "news", 1.0), **level("control:xz", "news", 3.0, 5)}
    figures["m", "news", Month("2024-03")] = None
    page = render(publish_figures(figures), "default")
    assert "32 documents, 28,000 bytes, 2024-01 to 2024-08" in page
    assert "4 chunks could not be measured and are left out" in page


def test_other_protocols_are_named_where_one_has_no_losses(usual: Settings) -> None:
    with pytest.raises(UsageError, match="'lm-eval'.*TIDEMARK_PROTOCOL.*: default"):
        render(usual, "lm-eval")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = load_settings().chromium
    with sync_playwright() as playwright:
        path = chromium or Path(playwright.chromium.executable_path)
        if not path.exists():
            pytest.skip(f"no browser at {path} (see `make test`)")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[[str], Page]]:
    complaints: list[str] = []
    requests: list[str] = []
    window = browser.new_page()
    window.on("console", lambda message: complaints.append(message.text))
    window.on("pageerror", lambda error: complaints.append(str(error)))
    window.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    window.on("request", lambda request: requests.append(request.url))

    def visit(address: str) -> Page:
        window.goto(Path(address).as_uri())
        return window

    yield visit
    window.close()
    assert not complaints
    assert len(requests) == 1
    assert requests[0].startswith("file:")


def assert_readable(window: Page, num_charts: int) -> None:
    for width in (1280, 390):
        window.set_viewport_size({"width": width, "height": 800})
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        charts = window.locator("figure svg")
        assert charts.count() == num_charts
        for chart in charts.all():
            box = chart.bounding_box()
            assert box
            assert box["width"] > 200
            assert box["height"] > 120
        assert window.evaluate(UNREADABLE) == []
    assert window.get_by_role("table").is_visible()


def test_in_a_browser(usual: Settings, visit: Any) -> None:
    window = visit(write_report(usual))
    assert_readable(window, num_charts=7)
    assert window.get_by_role("rowheader", name=HOSTILE_MODEL, exact=True).is_visible()
    window.set_viewport_size({"width": 1280, "height": 800})
    hidden = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert window.evaluate(hidden) == [0]


def test_twenty_models_at_very_different_levels_in_a_browser(
    publish_figures: Any, visit: Any
) -> None:
    figures: dict[Any, Any] = {}
    cutoffs = {}
    for number in range(20):
        model = f"organisation-of-models/Model-{number:02d}-70B-Instruct-with-a-long-name"
        cutoffs[model] = f"2024-{number % 8 + 1:02d}"
        low = 0.2 * 1.2**number
        figures |= step(model, "news", cutoffs[model], low, 1.05 * low)
    for month in ("2024-03", "2024-06"):
        del figures["organisation-of-models/Model-03-70B-Instruct-with-a-long-name", "news",
                    Month(month)]  # fmt: skip
    window = visit(write_report(publish_figures(figures, cutoffs)))
    assert_readable(window, num_charts=20)
