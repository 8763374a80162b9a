"""The parts of the board, rows beyond those of a page, and figures that ship with the code."""

import itertools
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from core.month import Month
from core.settings import Settings
from reports.site import build, charts, labels
from reports.site.board_parts import ALL_MONTHS, windows_of
from reports.site.findings import ranks_finding, simulations_finding
from reports.site.pages import changes, forecasts, overview
from reports.site.pages import model as model_pages
from reports.site.radar import radar
from tests.reports.curves import HOSTILE_SOURCE, level, step
from tests.reports.site.pages import pages_alone


def test_windows_are_the_newest_year_and_calendar_years() -> None:
    assert windows_of(Month("2023-11"), Month("2024-10")) == {}
    assert list(windows_of(Month("2023-11"), Month("2024-12"))) == ["2024", "2023"]
    assert windows_of(Month("2023-11"), Month("2025-02")) == {
        "last 12 months": (Month("2024-03"), Month("2025-02")),
        "2025": (Month("2025-01"), Month("2025-02")),
        "2024": (Month("2024-01"), Month("2024-12")),
        "2023": (Month("2023-11"), Month("2023-12")),
    }


@pytest.mark.long
def test_parts_of_the_board_are_rows_of_public_views(publish_figures: Any) -> None:
    figures = {
        **step("a", HOSTILE_SOURCE, "2024-12", 1.0, 3.0, 14), **level("b", HOSTILE_SOURCE, 2.0, 14),
        **level("a", "code", 1.0, 14), **level("b", "code", 1.5, 14),
    }  # fmt: skip
    settings = publish_figures(figures, {"a": "2023-11", "b": "2023-12"})
    root = Path(build.write_site(settings, "index")).parent
    text = (root / "figures" / "board.parts.js").read_text()
    parts = json.loads(re.fullmatch(r"tidemark\.parts\((.*)\);\n", text)[1])  # type: ignore[index]
    names = ["last 12 months", "2025", "2024", ALL_MONTHS]
    assert list(parts) == [
        *(f"months/{name}" for name in names), f"source/{HOSTILE_SOURCE}", "source/code"
    ]  # fmt: skip
    assert parts["months/2025"]["rows"]["a"]["bits_per_byte"][0] == "2.000"  # of 3 and 1
    assert parts["months/2025"]["title"] == "b predicts these months best (2025)"
    assert parts["months/2024"]["title"] == "a predicts these months best (2024)"
    assert parts["source/code"]["rows"]["b"]["bits_per_byte"][0] == "1.500"
    with duckdb.connect(f"{settings.home}/warehouse.duckdb", read_only=True) as database:
        view = "from headline_at(date '2024-01-01', date '2024-12-01')"
        rows = database.sql(f"select model, bits_per_byte {view}").fetchall()
    for model, bits_per_byte in rows:
        shown = parts["months/2024"]["rows"][model]["bits_per_byte"]
        assert shown[2] == f"{bits_per_byte:.9g}"


@pytest.mark.long
def test_few_rows_are_in_the_page_and_the_others_in_a_file(
    publish_figures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MAX_ROWS", 2)
    figures = {key: 1.0 + n for n in range(3) for key in level(f"m<{n}>", "news", 1.0, 1)}
    root = Path(build.write_site(publish_figures(figures), "index")).parent
    page = (root / "index.html").read_text()
    assert "1 more rows" in page
    assert page.count("m&lt;2&gt;") == 0
    rest = (root / "figures" / "board.rows.js").read_text()
    assert rest.startswith('tidemark["rows:board"]("')
    assert rest.count("m&lt;2&gt;") == 1


@pytest.mark.slow
def test_public_addresses_are_absolute_if_they_are_known(publish_figures: Any) -> None:
    settings: Settings = publish_figures(level("a", "news", 1.0))
    root = Path(build.write_site(settings, "index")).parent
    assert "og:image" not in (root / "index.html").read_text()
    known = settings.model_copy(update={"report_url": "https://example.org/site/index.html"})
    build.write_site(known)
    page = (root / "index.html").read_text()
    assert 'og:image" content="https://example.org/site/figures/over-time.png"' in page
    feed = json.loads((root / "changes.json").read_text())
    assert feed["feed_url"] == "https://example.org/site/changes.json"
    assert "site.duckdb" not in (root / "data.html").read_text()
    (root / "site.duckdb").touch()
    build.write_site(settings, "data")
    assert 'href="site.duckdb" download' in (root / "data.html").read_text()


def test_the_worst_share_is_in_the_title() -> None:
    row = {"truth": "coverage, other months", "worst_share": 0.834, "num_kinds": 9,
           "num_outside": 1}  # fmt: skip
    title = "95 % intervals over months hold the truth in at least 83 % of worlds of each kind"
    told = f"{title}; 1 of 9 shares are outside their bounds"
    assert simulations_finding([row]) == told
    assert simulations_finding([{**row, "num_outside": 0}]) == title


def test_ranks_are_counted_without_ties() -> None:
    rows = [
        {"month": month, "model": model, "mean_rank": rank}
        for month, ranks in enumerate([(1, 2), (2, 2), (3, 1), (1, 4)])
        for model, rank in zip("ab", ranks, strict=True)
    ]
    assert ranks_finding(rows) == "a has the best mean rank in 2 of 4 months"


def test_pictures_are_slim_and_the_same() -> None:
    import vl_convert

    clip = '<clipPath id="{}"><rect width="40" height="20"/></clipPath>'
    circle = '<g clip-path="url(#{})"><circle cx="20" cy="10" r="15" opacity="1" fill="red"/></g>'
    whole = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><defs>'
        f"{clip.format('a')}{clip.format('b')}</defs><g><g></g>{circle.format('a')}"
        f'<g transform="translate(0,20)"><g>{circle.format("b")}<g fill="red"/></g></g></g></svg>'
    )
    slim = charts._slim(whole)
    assert [slim.count(part) for part in ("<clipPath", "url(#a)", "<g>", "<g ", "</g>")] == [
        1, 2, 0, 3, 3
    ]  # fmt: skip
    assert vl_convert.svg_to_png(slim) == vl_convert.svg_to_png(whole)


def test_what_stays_inside_its_frame_is_not_clipped() -> None:
    frame = '<clipPath id="a"><rect x="0" y="0" width="40" height="20"/></clipPath>'
    rule = 'line transform="translate({},0)" x2="0" y2="20"'
    inside = ('path d="M1,1L39.5,19"', 'path d="M5,0h10v20h-10Z"', rule.format(0))
    outside = ('path d="M1,1L41,19"', 'path d="M35,0h10v20h-10Z"', rule.format(-1), 'circle r="5"')
    for shape in (*inside, *outside):
        slim = charts._slim(f'<svg>{frame}<g clip-path="url(#a)" role="x"><{shape} /></g></svg>')
        assert ("url(#a)" in slim) == (shape in outside)


def test_a_drawing_does_not_depend_on_those_before_it() -> None:
    rows = pl.DataFrame({"x": [0, 9], "y": [0, 9]})
    place = {"type": "quantitative", "scale": {"domain": [0, 5]}}
    encoding = {axis: {"field": axis, **place} for axis in "xy"}
    spec = charts.with_data({"mark": {"type": "point", "clip": True}, "encoding": encoding}, rows)
    first = charts.draw("first", spec)
    other = charts.draw("other", spec)
    assert charts.draw("first", spec) == first
    assert re.findall(r'id="([^"]+)"', first.page) == ["first-0"]
    assert "url(#first-0)" in first.page
    assert first.page.replace("first-0", "other-0") == other.page


# Linear RGB as people without red or green cones see it (Machado et al. 2009), and OKLab.
NO_GREEN = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
NO_RED = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
TO_CONES = [[0.412, 0.536, 0.051], [0.212, 0.681, 0.107], [0.088, 0.282, 0.630]]
TO_LAB = [[0.210, 0.794, -0.004], [1.978, -2.429, 0.451], [0.026, 0.783, -0.809]]


def test_colours_are_told_apart_in_both_themes() -> None:
    style = (Path(charts.__file__).parent / "assets" / "site.css").read_text()
    for part in style.split("@media")[:2]:  # light, dark
        theme = dict(re.findall(r"(--\w+): #(\w{6})", part))
        names = [charts._VARIABLES[colour] for colour in (*charts.PALETTE, charts.SOFT)]
        linear = [(np.array(list(bytes.fromhex(theme[name]))) / 255) ** 2.2 for name in names]
        for sight in (np.eye(3), NO_GREEN, NO_RED):
            seen = [TO_LAB @ np.cbrt(TO_CONES @ np.clip(sight @ each, 0, 1)) for each in linear]
            for one, other in itertools.combinations(zip(names, seen, strict=True), 2):
                assert math.dist(one[1], other[1]) > 0.07, (one[0], other[0])


def test_labels_do_not_overlap() -> None:
    points = [("first", 0.0, 0.0), ("hidden", 0.01, 0.01), ("right", 1.0, 0.0), ("up", 0.0, 1.0)]
    assert labels.with_room(points, 300, 200) == ["first", "right", "up"]
    covered = [("covers", 0.0, 0.0), ("covered", 0.05, 0.01), ("end", 1.0, 1.0)]
    assert labels.with_room(covered, 300, 200) == ["covered", "end"]
    assert labels.with_room([], 300, 200) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "view",
    [
        "estimated_cutoff",
        pytest.param("ageing", marks=pytest.mark.slow),
        pytest.param("forecast_accuracy", marks=pytest.mark.slow),
    ],
)
def test_a_view_that_fails_is_named_on_each_page(
    usual: Settings, tmp_path: Path, view: str
) -> None:
    settings = Settings(home=str(tmp_path))
    shutil.copy(Path(usual.home) / "warehouse.duckdb", tmp_path)
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as database:
        database.execute(f"drop view {view}")
    with pages_alone(overview, changes, forecasts, model_pages):
        root = Path(build.write_site(settings)).parent
    for page in ("index.html", "changes.html", "models/early.html"):
        assert "figures could not be read" in (root / page).read_text()
    assert f"Table with name {view} does not exist" in (root / "index.html").read_text()
    assert not (root / "state.json").exists()  # the next publication is compared with a sound one


def test_a_radar_has_a_closed_line_per_model() -> None:
    spokes = ["it's", '"quoted"', HOSTILE_SOURCE]
    rows = [
        {"model": model, "source": source, "bits_per_byte": 1.0 + i}
        for model in "ab" for i, source in enumerate(spokes)
    ]  # fmt: skip
    spec = charts.with_data(radar(spokes, ["a", "b"], (0.0, 3.0)), pl.DataFrame(rows))
    drawn = charts.draw("radar", spec)
    for colour in charts.PALETTE[:2]:
        closed = re.search(rf'd="[^"]*Z" stroke="{colour}"', drawn.svg)
        assert closed, colour
