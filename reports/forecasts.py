"""The page of forecasts: one self-contained HTML page, made from the published snapshot."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from core.errors import UsageError
from core.settings import Settings
from core.storage import Store
from reports.forecast_chart import Point, forecast_chart
from reports.template import render_template
from warehouse.query import query

PAGE = "report/forecasts.html"

# A quarter of questions to a point: months have too few.
_POINTS = """
    select model, source, protocol, period_of(month, 3) as quarter,
        cast(sum(num_questions) as bigint) as num_questions,
        cast(sum(num_correct) as bigint) as num_correct,
        sum(num_questions * expected_accuracy) / sum(num_questions) as expected
    from forecast_accuracy_monthly
    group by all
    order by all
"""
_ROWS = """
    select a.*, t.tbi_x1000, t.tbi_x1000_low, t.tbi_x1000_high, t.bias_class as paper_class,
        b.tested_class, b.p_adjusted,
        c.brier_score, c.brier_score_low, c.brier_score_high, c.num_unknown,
        c.num_crowd, c.crowd_brier_score, c.model_brier_score_there
    from forecast_accuracy as a
    left join forecast_tbi as t using (model, source, protocol)
    left join forecast_calibration as c using (model, source, protocol)
    left join (
        select model, source, protocol, arg_min(bias_class, p_adjusted) as tested_class,
            min(p_adjusted) as p_adjusted
        from forecast_bias_test
        group by all
    ) as b using (model, source, protocol)
    order by a.source, a.protocol, a.test_accuracy desc nulls last, a.model
"""


@dataclass(frozen=True)
class Row:
    """One model on one source under one protocol, written out; empty where nothing is known."""

    model: str
    num_questions: str
    num_unparsed: str
    accuracy: str
    guess: str
    num_test: str
    test_accuracy: str
    test_interval: str
    test_guess: str
    brier: str
    crowd: str
    tbi: str
    paper_class: str
    tested_class: str
    chart: Markup


def write_forecasts(settings: Settings) -> str:
    """Write the page and return its address.

    Raises:
        UsageError: nothing is published, or no answers to questions are.
    """
    page = render_forecasts(settings)
    store = Store(settings.home)
    store.write_bytes(PAGE, page.encode())
    return store.url(PAGE)


def render_forecasts(settings: Settings) -> str:
    """Return the page as HTML; names from outside are escaped.

    Raises:
        UsageError: nothing is published, or no answers to questions are.
    """
    rows = query(settings, _ROWS).to_pylist()
    if not rows:
        raise UsageError(
            "no answers to forecasting questions are published; have models answer with `tidemark "
            "forecast answer`, or land answers with `tidemark land-answers`"
        )
    points: dict[tuple[str, str, str], list[Point]] = {}
    for row in query(settings, _POINTS).to_pylist():
        point = Point(row["quarter"], row["num_correct"], row["num_questions"], row["expected"])
        points.setdefault((row["model"], row["source"], row["protocol"]), []).append(point)
    window = _window([point.day for own in points.values() for point in own])
    sections: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        key = (row["model"], row["source"], row["protocol"])
        sections.setdefault(key[1:], []).append(_row(row, points[key], window))
    return render_template("forecasts.html.j2", sections=sections)


def _window(days: list[dt.date]) -> tuple[dt.date, dt.date]:
    return min(days), max(days)


def _row(row: dict[str, Any], points: list[Point], window: tuple[dt.date, dt.date]) -> Row:
    known_until = row["cutoff"] or row["released"]
    # Drawn without any text from outside; all else on the page is escaped.
    chart = Markup(forecast_chart(points, window, known_until))  # noqa: S704
    crowd = ""
    if row["num_crowd"]:
        own, others = row["model_brier_score_there"], row["crowd_brier_score"]
        crowd = f"{others:.3f} (model there {own:.3f}, {row['num_crowd']:,} questions)"
    return Row(
        model=row["model"],
        num_questions=f"{row['num_questions']:,}",
        num_unparsed=f"{row['num_unparsed']:,}" if row["num_unparsed"] else "",
        accuracy=_percent(row["accuracy"]),
        guess=_percent(row["expected_accuracy"]),
        num_test=f"{row['num_test_questions']:,}",
        test_accuracy=_percent(row["test_accuracy"]),
        test_interval=_interval(row["test_accuracy_low"], row["test_accuracy_high"], 100, ".1f"),
        test_guess=_percent(row["expected_test_accuracy"]),
        brier=_brier(row),
        crowd=crowd,
        tbi=_with_interval(row, "tbi_x1000", "+.2f"),
        paper_class=row["paper_class"] or "",
        tested_class=_tested(row["tested_class"], row["p_adjusted"]),
        chart=chart,
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _interval(low: float | None, high: float | None, factor: float, form: str) -> str:
    if low is None or high is None:
        return ""
    return f"{factor * low:{form}} to {factor * high:{form}}"


def _with_interval(row: dict[str, Any], name: str, form: str) -> str:
    if row[name] is None:
        return ""
    interval = _interval(row[f"{name}_low"], row[f"{name}_high"], 1, form)
    return f"{row[name]:{form}}" + (f" ({interval})" if interval else "")


def _brier(row: dict[str, Any]) -> str:
    if row["num_unknown"]:
        return f"outcomes not known of {row['num_unknown']:,}"
    return _with_interval(row, "brier_score", ".3f")


def _tested(verdict: str | None, p_value: float | None) -> str:
    if verdict is None or p_value is None:
        return ""
    shown = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    return f"{verdict} ({shown})"
