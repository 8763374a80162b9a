import re
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from defusedxml import ElementTree

from core.month import Month, month_range
from reports.charts import AFTER, BEFORE, UNKNOWN, monthly_chart

ROOT = Path(__file__).resolve().parents[2]
YEAR = Month("2023-01"), Month("2023-12")
HEIGHT = 110


def draw(values: dict[str, float], window: tuple[Month, Month], cutoff: str | None) -> Element:
    figures = {Month(month): value for month, value in values.items()}
    svg: Element = ElementTree.fromstring(
        monthly_chart(figures, window, Month(cutoff) if cutoff else None)
    )
    return svg


def flat(value: float = 1.0) -> dict[str, float]:
    return {str(month): value for month in month_range(*YEAR)}


def marks(svg: Element, kind: str) -> list[Element]:
    groups = [g for g in svg.iter() if f"mark-{kind} role-mark" in g.get("class", "")]
    return [mark for group in groups for mark in group]


def points(svg: Element) -> list[tuple[float, float, str]]:
    found = []
    for element in marks(svg, "symbol"):
        match = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", ""))
        assert match
        found.append((float(match[1]), float(match[2]), element.get("stroke", "")))
    return sorted(found)


def texts(svg: Element) -> list[str]:
    return [element.text or "" for element in svg.iter("{http://www.w3.org/2000/svg}text")]


def test_months_after_the_cutoff_are_told_apart_by_a_dashed_line_between_them() -> None:
    svg = draw(flat(), YEAR, "2023-08")
    assert [colour for _, _, colour in points(svg)] == [BEFORE] * 8 + [AFTER] * 4
    fills = [element.get("fill") for element in marks(svg, "symbol")]
    assert fills.count("white") == 4
    assert "cutoff 2023-08" in texts(svg)
    assert "bits per byte" in texts(svg)
    [rule] = marks(svg, "rule")
    match = re.match(r"translate\(([-\d.]+),", rule.get("transform", ""))
    assert match
    x = [x for x, _, _ in points(svg)]
    assert x[7] < float(match[1]) < x[8]


@pytest.mark.parametrize(
    ("cutoff", "label", "colour"),
    [
        ("2021-05", "cutoff 2021-05", AFTER),
        ("2024-05", "cutoff 2024-05", BEFORE),
        (None, "no cutoff known", UNKNOWN),
    ],
)
def test_a_cutoff_outside_the_months_is_named_but_not_drawn(
    cutoff: str | None, label: str, colour: str
) -> None:
    svg = draw(flat(), YEAR, cutoff)
    assert label in texts(svg)
    assert not marks(svg, "rule")
    assert {found for _, _, found in points(svg)} == {colour}


def test_a_regime_begins_at_a_thin_line_with_its_month() -> None:
    figures = {month: 1.0 for month in month_range(*YEAR)}
    starts = [Month("2022-05"), Month("2023-01"), Month("2023-05"), Month("2024-01")]
    svg: Element = ElementTree.fromstring(monthly_chart(figures, YEAR, None, starts))
    [rule] = marks(svg, "rule")
    match = re.match(r"translate\(([-\d.]+),", rule.get("transform", ""))
    assert match
    x = [x for x, _, _ in points(svg)]
    assert x[3] < float(match[1]) < x[4]
    assert [text for text in texts(svg) if "regime" in text] == ["regime 2023-05"]


def test_a_missing_month_breaks_the_line_and_one_alone_is_a_point() -> None:
    whole = flat()
    [line] = marks(draw(whole, YEAR, None), "line")
    assert line.get("d", "").count("M") == 1
    del whole["2023-04"], whole["2023-05"]
    svg = draw(whole, YEAR, None)
    [line] = marks(svg, "line")
    assert line.get("d", "").count("M") == 2
    assert len(points(svg)) == 10
    month = Month("2023-04")
    svg = draw({"2023-04": 0.9}, (month, month), "2023-04")
    [(_, y, colour)] = points(svg)
    assert y == pytest.approx(HEIGHT / 2, abs=1)
    assert colour == BEFORE
    assert "2023-04" in texts(svg)


@pytest.mark.parametrize("level", [0.05, 0.9, 8.0])
def test_a_change_is_as_visible_at_any_level(level: float) -> None:
    """A rise by a half spans most of the chart; noise of 1 % spans at most an eighth."""
    for change, least, most in ((1.5, 0.8, 1), (1.01, 0.02, 1 / 8)):
        figures = {name: level * (change if name[-1] in "13579" else 1) for name in flat()}
        y = [y for _, y, _ in points(draw(figures, YEAR, None))]
        assert least * HEIGHT < max(y) - min(y) <= most * HEIGHT
        assert min(y) >= 0 and max(y) <= HEIGHT


def test_the_axis_does_not_go_below_zero() -> None:
    svg = draw(flat() | {"2023-12": 0.0}, YEAR, None)
    assert not [text for text in texts(svg) if text.startswith(("-", "−"))]
    assert points(draw(flat(0.0), YEAR, None))


@pytest.mark.parametrize(
    ("last", "labels"),
    [
        ("2023-02", ["2023-01", "2023-02"]),
        ("2023-08", ["2023-01", "2023-03", "2023-05", "2023-07"]),
        ("2024-06", ["2023-01", "2023-07", "2024-01"]),
        ("2026-12", ["2023-01", "2024-01", "2025-01", "2026-01"]),
        ("2043-01", ["2028-01", "2034-01", "2040-01"]),
    ],
)
def test_few_months_are_labelled(last: str, labels: list[str]) -> None:
    svg = draw({"2023-01": 1.0}, (Month("2023-01"), Month(last)), None)
    assert [text for text in texts(svg) if re.fullmatch(r"\d{4}-\d\d", text)] == labels


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
def test_the_time_zone_moves_no_month(zone: str) -> None:
    code = """
from core.month import Month
from reports.charts import monthly_chart
window = Month("2023-01"), Month("2023-04")
print(monthly_chart({Month("2023-02"): 1.0}, window, Month("2023-02")))
"""
    command = [sys.executable, "-c", code]
    svg = subprocess.check_output(command, cwd=ROOT, env={"TZ": zone}, text=True)
    found = [text for text in texts(ElementTree.fromstring(svg)) if text.startswith("2")]
    assert found == ["2023-01", "2023-02", "2023-03", "2023-04"]
