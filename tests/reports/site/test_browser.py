import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request

from core.plugins import list_extras
from tests.reports.curves import HOSTILE_MODEL

pytestmark = pytest.mark.long
PUBLISHED = ["published"] if "imported_results" in list_extras() else []
KINDS = (
    "index", "changes", "compare", "forecasts", "puzzles", "data", "views", "methods",
    "sources", "models/early", "sources/code", *PUBLISHED,
)  # fmt: skip
Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, root: Path) -> Iterator[Open]:
    complaints: list[str] = []
    requests: list[str] = []
    windows = []

    def note_failure(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the reader went on before a script was there
            complaints.append(f"failed: {request.url}: {request.failure}")

    def visit(page: str, **options: object) -> Page:
        window = browser.new_page(**options)
        windows.append(window)
        window.on("console", lambda message: complaints.append(message.text))
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.on("requestfailed", note_failure)
        window.on("request", lambda request: requests.append(request.url))
        path, hash_, fragment = page.partition("#")
        window.goto((root / f"{path}.html").as_uri() + hash_ + fragment)
        return window

    yield visit
    for window in windows:
        window.close()
    assert not complaints
    assert all(request.startswith(root.as_uri()) for request in requests)


# Pages have their parts in common: charts, tables, choices, lists. Those with all parts are checked
# in `make test`, in the dark theme in slow tests, and so are all other pages.
RICH = ("index", "compare", "data", "models/early")


@pytest.mark.parametrize(
    ("scheme", "kinds"),
    [
        ("light", RICH),
        pytest.param("dark", RICH, marks=pytest.mark.slow),
        pytest.param("light", [kind for kind in KINDS if kind not in RICH], marks=pytest.mark.slow),
    ],
)
def test_pages_are_accessible(visit: Open, scheme: str, kinds: Sequence[str]) -> None:
    for kind in kinds:
        window = visit(kind, color_scheme=scheme)
        # Without preload, axe does not request the style sheet, which the policy forbids.
        found = Axe().run(window, options={"preload": False}).response["violations"]
        worse = [
            (each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] != "minor"
        ]
        assert not worse, (kind, worse)


def test_long_names_are_broken(visit: Open) -> None:
    for kind in ("index", "compare"):
        window = visit(kind, viewport={"width": 360, "height": 800})
        places = "document.querySelectorAll('main p, option')"
        window.evaluate(f"{places}.forEach(e => e.append('x'.repeat(300)))")
        assert window.evaluate("document.documentElement.scrollWidth") <= 360, kind


def test_charts_are_readable_on_a_phone(visit: Open) -> None:
    window = visit("index", viewport={"width": 360, "height": 800})
    sizes = window.evaluate(
        "[...document.querySelectorAll('.chart text')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) > 8
    name = window.locator("[data-chart=over-time] text", has_text="early")
    assert 0 < name.evaluate("e => e.getBoundingClientRect().left") < 360


TEXT_SIZES = """[...document.querySelectorAll(".chart text")].map(e => [
  parseFloat(getComputedStyle(e).fontSize) * Math.abs(e.ownerSVGElement.getScreenCTM().a),
  e.textContent])"""


def test_texts_of_charts_have_11_pixels_in_all_widths(visit: Open) -> None:
    for kind in ("index", "compare", *PUBLISHED, "sources/code"):
        window = visit(kind)
        for width in WIDTHS:
            window.set_viewport_size({"width": width, "height": 844})
            sizes = window.evaluate(TEXT_SIZES)
            assert [each for each in sizes if each[0] < 11] == [], (kind, width)
        window.close()


def test_a_table_sorts_and_the_address_keeps_it(visit: Open) -> None:
    names = "[...document.querySelectorAll('[data-table=board] tbody th')].map(e => e.textContent)"
    window = visit("index")
    level = window.locator("[data-table=board] [data-column=bits_per_byte] button")
    level.focus()
    window.keyboard.press("Enter")
    first = window.evaluate(names)
    window.keyboard.press("Enter")
    turned = window.evaluate(names)
    assert window.url.endswith("#board?sort=bits_per_byte,-1")
    assert turned == first[::-1]
    assert window.locator("[aria-sort=descending]").count() == 1
    again = visit(f"index{window.url.partition('.html')[2]}")
    assert again.evaluate(names) == turned


def test_rows_are_found_and_columns_chosen(visit: Open) -> None:
    window = visit("views#data-views?find=difficult, ranks")
    shown = window.locator("[data-table=data-views] tbody tr:visible")
    assert 0 < shown.count() < 25, "more would not all be shown"
    texts = [text.lower() for text in shown.all_text_contents()]
    assert all("difficult" in text or "ranks" in text for text in texts)
    assert not all("difficult" in text for text in texts)
    assert not all("ranks" in text for text in texts)
    window = visit("index")
    assert not window.get_by_role("columnheader", name="months").is_visible()
    window.get_by_text("columns", exact=True).click()
    window.get_by_role("checkbox", name="months").check()
    assert window.get_by_role("columnheader", name="months").is_visible()


def test_long_tables_begin_with_their_first_rows(visit: Open) -> None:
    window = visit("views")
    rows = window.locator("[data-table=data-views] tbody tr:visible")
    assert rows.count() == 25
    window.get_by_role("button", name="Show all").click()
    assert rows.count() > 80
    assert window.url.endswith("#data-views?rows=all")
    rows.get_by_role("link", name="headline", exact=True).click()
    window.locator("#view-headline dl").wait_for()


@pytest.mark.slow
def test_tables_fit_on_paper(visit: Open) -> None:
    for kind in ("index", "methods", "models/early"):
        window = visit(kind, viewport={"width": 690, "height": 900})
        window.emulate_media(media="print")
        for place in window.locator("table:visible, .chart svg").all():
            assert place.evaluate("e => e.getBoundingClientRect().right") <= 690, kind


def test_paper_is_white_and_has_the_addresses_of_links_and_figures(visit: Open) -> None:
    window = visit("index", color_scheme="dark")
    window.emulate_media(media="print", color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert window.evaluate(paper) == "rgb(255, 255, 255)"
    after = "e => getComputedStyle(e, '::after').content"
    how = window.locator("dd a").first
    assert "methods.html#" in how.evaluate(after)
    assert "figures/" in window.locator("#board").evaluate(after)
    model = window.locator("[data-table=board] tbody a").first  # a table has no room for them
    assert "models/" not in model.evaluate(after)


def test_two_models_are_compared(visit: Open) -> None:
    window = visit("compare#pair?one=early&other=control:zstd")
    title = "early is better than control:zstd on these documents"
    window.get_by_role("heading", name=title).wait_for()
    assert window.locator("[data-compared] tbody tr").count() == 3  # two sources and their mean
    months = "early has a lower loss than control:zstd in 8 of 8 months of sources"
    window.get_by_role("heading", name=months).wait_for()
    window.locator("#pair-months svg.marks").wait_for()
    window.get_by_label("against").select_option(HOSTILE_MODEL)
    months_of_all = re.compile(r"than early in (\d+) of \1 months of sources")
    window.get_by_role("heading", name=months_of_all).wait_for()


def test_the_first_pair_has_its_verdict_and_back_undoes_a_choice(visit: Open) -> None:
    window = visit("compare")
    first = window.locator("[data-compared] h2").inner_text()
    assert "early" in first
    window.locator("[name=one]").select_option("early")
    window.get_by_label("against").select_option("control:zstd")
    chosen = window.get_by_role("heading", name="early is better than control:zstd")
    chosen.wait_for()
    window.go_back()
    chosen.wait_for(state="detached")
    window.go_back()
    window.get_by_role("heading", name=first).wait_for()
    assert window.url.endswith("compare.html")


def test_wrong_names_and_a_model_on_both_sides_are_told(visit: Open) -> None:
    window = visit("compare#pair?one=nobody&other=early")
    window.get_by_text("There is no model nobody here.").wait_for()
    again = visit("compare#pair?one=early&other=early")
    again.get_by_text("early is on both sides.").wait_for()
    assert again.locator("#pair-months").is_visible()


UNUSED_MARKS = """[...document.querySelectorAll("figure")].flatMap(figure => {
  const cells = [...figure.querySelectorAll("td[data-why]")].filter(e => !e.hidden);
  const used = cells.map(e => e.dataset.why);
  const listed = [...figure.querySelectorAll(".reasons b")].map(e => e.textContent);
  const unused = listed.filter(mark => !used.includes(mark));
  return unused.concat(used.filter(mark => !listed.includes(mark)));
})"""


def test_reasons_are_those_of_the_columns_that_are_shown(visit: Open) -> None:
    for kind in RICH:
        assert visit(kind).evaluate(UNUSED_MARKS) == [], kind
    window = visit("models/early")
    window.evaluate("document.querySelector('#model-early-sources td[hidden]').title = 'planted'")
    figure = window.locator("#model-early-sources")
    figure.get_by_role("button", name="level").click()
    assert "planted" not in figure.locator(".reasons").text_content()
    figure.get_by_text("columns", exact=True).click()
    figure.get_by_label("thins out from").check()
    assert "planted" in figure.locator(".reasons").text_content()
    assert window.evaluate(UNUSED_MARKS) == []


def test_a_page_of_a_model_is_copied_as_markdown(visit: Open) -> None:
    window = visit("models/early")
    window.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    window.get_by_role("button", name="Copy as Markdown").click()
    copied = window.locator("pre", has_text="# early").text_content()
    assert copied is not None
    assert "- stated cutoff: 2024-04" in copied
    assert any(line.startswith("| code | 2.") for line in copied.splitlines())


def test_a_touched_chart_is_drawn_again_by_the_script(visit: Open) -> None:
    window = visit("index")
    chart = window.locator("[data-chart=over-time]")
    chart.hover()
    chart.locator("svg.marks").wait_for()
    found = Axe().run(window, options={"preload": False}).response["violations"]
    assert not [each["id"] for each in found if each["impact"] != "minor"]


def test_a_source_is_chosen_and_the_address_keeps_it(visit: Open) -> None:
    window = visit("index")
    board = window.locator("[data-table=board]")
    before = board.inner_text()
    row = board.locator("tr", has_text="control:zstd")
    window.get_by_label("months or source").select_option("source/code")
    row.get_by_text("4.000").wait_for()
    assert window.locator("#board h2").inner_text() == "No gap on code can be told yet"
    again = visit(f"index{window.url.partition('.html')[2]}")
    again.locator("[data-table=board] tr", has_text="control:zstd").get_by_text("4.000").wait_for()
    window.get_by_label("months or source").select_option("")
    row.get_by_text("4.000").wait_for(state="detached")
    assert board.inner_text() == before


def test_months_of_a_chart_are_chosen_and_the_address_keeps_them(visit: Open) -> None:
    window = visit("index#over-time?from=2024-03&to=2024-06")
    figure = window.locator("#over-time")
    figure.locator("svg.marks").wait_for()
    assert [each.input_value() for each in figure.locator("select").all()] == ["2024-03", "2024-06"]
    assert "2024-02" not in figure.locator("svg").inner_html()
    figure.get_by_label("months from").select_option("2024-01")
    figure.locator("svg", has_text="2024-02").wait_for()
    assert "from=2024-01&to=2024-06" in window.url


def test_pages_read_without_a_script(browser: Browser, root: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    window = context.new_page()
    window.goto((root / "index.html").as_uri())
    assert window.get_by_role("table").is_visible()
    assert window.locator(".chart svg").count() == 1
    window.goto((root / "compare.html").as_uri())
    assert not window.locator("select").first.is_visible()  # a list that does nothing
    assert window.locator("[data-compared] h2").is_visible()
    assert window.locator("[data-compared] tbody tr").count() > 0
    context.close()


MISPLACED = Path(__file__).with_name("misplaced.js").read_text(encoding="utf-8")


WIDTHS = (360, 768, 1280, 1920)


def test_nothing_is_cut_or_covered_or_wider_than_the_window(visit: Open) -> None:
    for has_script, kinds, widths in ((True, KINDS, WIDTHS), (False, RICH, (360,))):
        for kind in kinds:
            window = visit(kind, java_script_enabled=has_script)
            for width in widths:
                window.set_viewport_size({"width": width, "height": 844})
                assert window.evaluate(MISPLACED) == [], (kind, has_script, width)
                widest = window.evaluate("document.documentElement.scrollWidth")
                assert widest <= width, (kind, has_script, width)
            window.close()


SCROLLED = """[...document.querySelectorAll(".scroll")]
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"""


def test_no_table_is_wider_than_a_phone_or_a_tablet(visit: Open) -> None:
    for has_script in (True, False):
        for kind in KINDS:
            window = visit(kind, java_script_enabled=has_script)
            for width in (360, 641, 768):
                window.set_viewport_size({"width": width, "height": 844})
                assert window.evaluate(SCROLLED) == [], (kind, has_script, width)
            window.close()


WIDER = """[...document.querySelectorAll(".chart")]
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.dataset.chart)"""


def test_charts_fit_a_tablet(visit: Open) -> None:
    for kind in KINDS:
        window = visit(kind, viewport={"width": 768, "height": 1024})
        assert window.evaluate(WIDER) == [], kind
        window.close()


def test_the_first_view_is_small_without_a_script(browser: Browser, root: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    window = context.new_page()
    requested: list[str] = []
    window.on("request", lambda request: requested.append(request.url))
    window.goto((root / "index.html").as_uri())
    context.close()
    files = [Path(url.removeprefix("file://")) for url in requested]
    assert sum(file.stat().st_size for file in files) <= 150_000, requested


def test_charts_are_open_at_their_axis_on_a_phone(visit: Open) -> None:
    window = visit("index", viewport={"width": 390, "height": 844})
    inside = window.locator("[data-chart=over-time] text", has_text="+0").first
    assert 0 <= inside.evaluate("e => e.getBoundingClientRect().left") < 390


def test_five_questions_are_answered_in_few_clicks(visit: Open) -> None:
    window = visit("index")
    board = window.locator("[data-table=board]")
    columns = board.locator("thead th").evaluate_all("all => all.map(e => e.dataset.column)")
    cells = board.locator("tr", has_text="early").locator("th, td").all_text_contents()
    assert cells[columns.index("stated_cutoff")] == "2024-04"  # when does its training data end?
    assert "documents of 8 months" in window.locator("main").inner_text()  # from how many?
    # Which model ages slowest? With more months there is a column of ageing, too.
    board.get_by_role("button", name="level").click()
    assert board.locator("[aria-sort=ascending]").get_attribute("data-column") == "bits_per_byte"
    window.locator("#board").get_by_text("data", exact=True).click()  # can I have the numbers?
    numbers = window.locator("#board").get_by_role("link", name="csv")
    assert numbers.get_attribute("href") == "figures/board.csv"
    window.get_by_role("link", name="Compare").click()  # is A better than B on code?
    window.locator("[name=one]").select_option("early")
    window.locator("[name=other]").select_option("control:zstd")
    row = window.locator("[data-compared] tr", has_text="code")
    assert row.locator("td").first.text_content().startswith("\u2212")


def test_the_bar_of_simulated_text_is_seen_on_phones_and_on_paper(
    browser: Browser, mixed_site: Path
) -> None:
    address = (mixed_site / "index.html").as_uri()
    for media, scheme, width in (
        ("screen", "light", 360), ("screen", "dark", 1280), ("print", "light", 690),
    ):  # fmt: skip
        window = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        window.emulate_media(media=media)
        window.goto(address)
        bar = window.get_by_role("complementary", name="Simulated text")
        assert "SIMULATED. A program made up the texts of arxiv" in bar.inner_text()
        box = bar.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
        assert box["y"] < 300
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        window.close()


def test_marks_of_simulated_text_are_accessible_and_stay_on_open_charts(
    browser: Browser, mixed_site: Path
) -> None:
    for scheme in ("light", "dark"):
        window = browser.new_page(color_scheme=scheme)
        window.goto((mixed_site / "index.html").as_uri())
        found = Axe().run(window, options={"preload": False}).response["violations"]
        assert [each["id"] for each in found if each["impact"] != "minor"] == []
        chart = window.locator("[data-chart=over-time]")
        assert chart.locator(".watermark").text_content() == "SIMULATED"
        chart.focus()
        chart.locator("svg.marks").wait_for()
        chart.locator(".watermark").wait_for(state="attached")
        assert chart.locator("svg.marks .watermark").text_content() == "SIMULATED"
        window.close()


@pytest.mark.slow
def test_a_page_of_real_text_has_no_bar(visit: Open) -> None:
    for kind in KINDS:
        window = visit(kind)
        assert window.locator(".simulated, .watermark").count() == 0
        assert "SIMULATED" not in window.title()
