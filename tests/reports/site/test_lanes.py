"""The marks of lanes are drawn without Vega, where Vega draws them."""

import datetime as dt
import itertools
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from reports.site import charts
from reports.site.pages.overview import lanes
from reports.site.pictures.lanes import Scale

MONTHS = [dt.date(2020 + number // 12, number % 12 + 1, 1) for number in range(40)]
NUMBER = r"-?(?:\d+\.?\d*|\.\d+)"
EMPTY = {"measured_begin": None, "measured_end": None, "stated_end": None}
Point = tuple[float, float]


def rows_of(names: Sequence[str], size: float, shift: float = 0, seed: int = 0) -> pl.DataFrame:
    """Return rows as over_time.sql gives them: a month is missing, another has no figure."""
    drawn = random.Random(seed)
    marks = {"stated_end": dt.date(2021, 6, 16), "measured_begin": dt.date(2021, 3, 1),
             "measured_end": dt.date(2021, 9, 1)}  # fmt: skip
    rows = [
        {
            "source": name, "month": month, "rise": size * drawn.gauss(0, 1) + shift,
            "is_first": not number, "is_after": month > dt.date(2021, 6, 1),
            **(EMPTY if name == names[0] else marks),
        }
        for name in names
        for number, month in enumerate(MONTHS)
        if not (name == names[-1] and number in (11, 30))
    ]  # fmt: skip
    rows[7]["rise"] = None
    return pl.DataFrame(rows, infer_schema_length=None)


def svgs(rows: pl.DataFrame, names: Sequence[str]) -> tuple[str, str]:
    """Return a chart as it is drawn, and as Vega draws all of it."""
    spec = charts.with_data(lanes("source", list(names), rows["month"].to_list()), rows)
    plain: Mapping[str, Any] = {name: spec[name] for name in spec if name != "usermeta"}
    assert charts.LANES in spec["usermeta"]
    return charts.draw("figure", spec).svg, charts.draw("figure", plain).svg


def points_of(path: str) -> list[Point]:
    """Return the corners of a path of straight lines, which may be relative, in pixels."""
    found = [float(number) for number in re.findall(NUMBER, path)]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    if "l" not in path:
        return pairs
    xs = itertools.accumulate(x for x, _ in pairs)
    ys = itertools.accumulate(y for _, y in pairs)
    return list(zip(xs, ys, strict=True))


def marks(svg: str, colour: str, kind: str) -> list[list[Point]]:
    """Return the corners of the lines or areas of a colour, in their order."""
    shapes = [tag for tag in re.findall(r"<path [^>]*>", svg) if f'{kind}="{colour}"' in tag]
    paths = [path for tag in shapes for path in re.findall(r' d="([^"]*)"', tag)]
    parts = [part for path in paths for part in path.split("M")]
    return [points_of(part) for part in parts if "l" in part.lower()]


def numbers(svg: str) -> list[tuple[float, str]]:
    """Return place and text of each number of a scale, lane by lane from above."""
    text = r'<text text-anchor="end" {}[^>]*>([^<]*)'
    own = re.findall(text.format('x="[^"]*" y="([^"]*)"'), svg)
    of_vega = re.findall(text.format(r'transform="translate\(-9,([^)]*)\)"'), svg)
    return [(float(y), number) for y, number in own] or [
        (float(y) + 0.5, number) for y, number in of_vega
    ]


@pytest.mark.parametrize(
    ("size", "shift"), [(0.02, 0), (0.3, 1), (4, -20), (1e-5, 0), (0.04, 0.06), (0, 0.5)]
)
def test_marks_are_where_vega_draws_them(size: float, shift: float) -> None:
    names = ["arxiv", 'a <b> & "c"', "wiki"]
    own, vega = svgs(rows_of(names, size, shift), names)

    for colour, kind in ((charts.INK, "stroke"), (charts.PALETTE[1], "fill")):
        for ours, theirs in zip(marks(own, colour, kind), marks(vega, colour, kind), strict=True):
            kept = ours if kind == "stroke" else ours[:-2]  # Vega goes back point by point
            assert kept == [pytest.approx(point, abs=0.15) for point in theirs[: len(kept)]]
    assert [text for _, text in numbers(own)] == [text for _, text in numbers(vega)]
    assert [y for y, _ in numbers(own)] == pytest.approx([y for y, _ in numbers(vega)], abs=0.15)
    size_of = re.compile(r'<svg[^>]* width="(\d+)" height="(\d+)"')
    [(width, height)] = size_of.findall(own)
    [(of_vega, higher)] = size_of.findall(vega)
    assert width == of_vega
    assert 0 <= int(higher) - int(height) <= 6  # where a number stands out of the highest lane


def test_cutoffs_are_where_vega_draws_them_and_none_is_outside() -> None:
    names = ["arxiv", "wiki"]
    rows = rows_of(names, 0.1)
    own, vega = svgs(rows, names)
    band = r'd="(M[\d.]+,0h[\d.]+v36h-[\d.]+Z)" fill="#0072b2"'
    assert re.findall(band, own) == re.findall(band, vega) != []
    [x] = re.findall(r'<line x1="([\d.]+)"[^>]*dasharray', own)
    assert re.findall(r'<line transform="translate\(([\d.]+),0\)"[^>]*dasharray', vega) == [x]

    late = pl.lit(dt.date(2030, 1, 1))
    outside = rows.with_columns(stated_end=late, measured_begin=late, measured_end=late)
    own, _ = svgs(outside, names)
    assert "dasharray" not in own
    assert charts.PALETTE[0] not in own


def test_a_scale_has_zero_and_is_rounded_outwards() -> None:
    assert Scale.of([0.031, -0.012]) == Scale(-0.015, 0.035)
    assert Scale.of([0.031, 0.02]).ticks() == [0, 0.02]
    assert Scale.of([]).ticks() == [0]


def test_clip_paths_are_named_after_the_chart() -> None:
    ours, _ = svgs(rows_of(["one", "two"], 1), ["one", "two"])
    names = set(re.findall(r'id="([^"]+)"|url\(#([^)]+)\)', ours))
    assert names
    assert all((defined or used).startswith("figure-") for defined, used in names)
