"""The table's figures against numbers computed by hand.

The slope a year of a step s over eight months, after the fourth:

    12 * s * (0.5 + 1.5 + 2.5 + 3.5) / 42 = s * 16 / 7; after the fifth, s * 15 / 7.
"""

from dataclasses import astuple

import pytest

from core.month import Month
from core.settings import Settings
from reports.summary import GapRow, by_model, describe_estimate, gap_rows
from tests.losses import publish_rows
from tests.reports.curves import HOSTILE_MODEL, HOSTILE_SOURCE, Figures, level, losses, step

pytestmark = pytest.mark.long


CUTOFFS = {f"m{month}": f"2024-0{month}" for month in range(2, 8)}


def many_cutoffs() -> Figures:
    figures = level("control:zstd", "news", 3.0)
    for model, cutoff in CUTOFFS.items():
        figures |= step(model, "news", cutoff, 1.0, 1.5, 14)
    return figures


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Worlds that do not meet, each under a protocol of its own, published once."""
    settings = Settings(home=str(tmp_path_factory.mktemp("worlds")))
    figures = {
        "one side": level("old", "news", 1.25),
        "no cutoffs": {
            **level("control:zstd", "news", 3.0), **level("one", "news", 1.0, 1),
            **level("five", "x", 1.0, 5), **step("six", "x", "2024-03", 1.0, 1.5, 6),
        },
        "many cutoffs": many_cutoffs(),
    }  # fmt: skip
    rows = [
        {**row, "protocol": protocol}
        for protocol, of_world in figures.items()
        for row in losses(of_world).to_pylist()
    ]
    models = [
        {"name": name, "cutoff": Month(cutoff), "cutoff_provenance": "planted"}
        for name, cutoff in {"old": "2021-09", **CUTOFFS}.items()
    ]
    publish_rows(settings, rows, *models)
    return settings


def figures_of(row: GapRow) -> tuple[str | None, ...]:
    line = astuple(row)
    return (*line[:5], *line[6:])


def test_figures_by_hand(usual: Settings) -> None:
    model, news, zstd = HOSTILE_MODEL, HOSTILE_SOURCE, "control:zstd"
    none = (None, None, None)
    rows = gap_rows(usual, "default")
    assert {row.interval for row in rows} == {None}  # 8 months have fewer than four blocks
    assert gap_rows(usual, "lm-eval") == []
    assert [figures_of(row) for row in rows] == [
        (model, None, "0.850", "1.050", "+0.200", "+0.429", "2024-05", "2024-05", "planted"),
        (model, news, "0.900", "1.200", "+0.300", "+0.643", *none),
        (model, "code", "0.800", "0.900", "+0.100", "+0.214", *none),
        ("early", None, "1.500", "1.850", "+0.350", "+0.800", "2024-04", "2024-04", "planted"),
        ("early", news, "1.000", "1.500", "+0.500", "+1.143", *none),
        ("early", "code", "2.000", "2.200", "+0.200", "+0.457", *none),
        ("unknown", None, "1.100", "1.100", "+0.000", "+0.000", None, "2024-04", None),
        ("unknown", None, "1.100", "1.100", "+0.000", "+0.000", None, "2024-05", None),
        (zstd, None, "3.500", "3.500", "+0.000", "+0.000", None, "2024-04", None),
        (zstd, None, "3.500", "3.500", "+0.000", "+0.000", None, "2024-05", None),
    ]


def test_a_model_scored_on_one_side_of_its_cutoff_has_no_gap(worlds: Settings) -> None:
    overall, news = gap_rows(worlds, "one side")
    assert (overall.before, overall.after, overall.gap, overall.interval) == (None,) * 4
    assert (overall.split, overall.provenance, overall.tbi) == ("2021-09", "planted", "+0.000")
    assert (news.before, news.after, news.gap) == (None, "1.250", None)


def test_without_any_cutoff_each_model_has_one_line(worlds: Settings) -> None:
    rows = gap_rows(worlds, "no cutoffs")
    assert [row.model for row in rows] == ["five", "one", "six", "control:zstd"]
    for row in rows:
        assert (row.source, row.before, row.after, row.gap, row.split) == (None,) * 5
    five, one, six, control = rows
    assert (five.tbi, control.tbi) == ("+0.000", "+0.000")
    assert figures_of(one) == ("one", *(None,) * 8)
    assert (five.estimated_cutoff, six.estimated_cutoff) == (None, None)


@pytest.mark.parametrize(
    ("is_at_edge", "given", "text"),
    [(False, "2024-02 to 2024-05", "2024-02 to 2024-05"), (None, None, "none"),
     (True, "at or after 2024-02", "at or after 2024-02"), (True, None, "month not told")],
)  # fmt: skip
def test_an_estimate_as_text(is_at_edge: bool | None, given: str | None, text: str) -> None:
    facts = {"q_value": 0.5, "is_at_edge": is_at_edge, "reason": "month not told"}
    assert describe_estimate({**facts, "cutoff_text": given}) == text


def test_at_most_two_lines_for_a_model_without_cutoff(worlds: Settings) -> None:
    groups = by_model(gap_rows(worlds, "many cutoffs"))
    for row in groups[2]:
        low, high = map(float, str(row.interval).split(" … "))
        assert low < 0.5 < high < low + 0.1  # documents of a month differ by 0.11 at most
    assert [rows[0].model for rows in groups] == [*CUTOFFS, "control:zstd"]
    assert [row.split for row in groups[-1]] == ["2024-02", "2024-07"]
