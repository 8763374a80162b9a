"""The HTML page about answers to forecasting questions, made from the published snapshot."""

from __future__ import annotations

import datetime as dt
from typing import Any

from markupsafe import Markup

from core.settings import Settings
from reports.charts import Point, forecast_chart
from reports.page import AnswersPage, interval, p_value
from warehouse.read.query import query

# One point per quarter, because a month has too few questions.
_POINTS = """
    select model, source, protocol, period_of(month, 3) as day,
        sum(num_correct) / sum(num_questions) as accuracy,
        wilson_low(sum(num_correct), sum(num_questions)) as low,
        wilson_high(sum(num_correct), sum(num_questions)) as high,
        sum(num_questions * expected_accuracy) / sum(num_questions) as expected
    from forecast_accuracy_monthly
    group by model, source, protocol, day
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


def _fields(settings: Settings, rows: list[dict[str, Any]]) -> dict[str, object]:
    points: dict[tuple[str, str, str], list[Point]] = {}
    for point in query(settings, _POINTS).to_pylist():
        key = (point.pop("model"), point.pop("source"), point.pop("protocol"))
        points.setdefault(key, []).append(Point(**point))
    days = [point.day for series in points.values() for point in series]
    window = min(days), max(days)
    sections: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        key = (row["model"], row["source"], row["protocol"])
        sections.setdefault(key[1:], []).append(_row(row, points[key], window))
    return {"sections": sections}


def _row(
    row: dict[str, Any], points: list[Point], window: tuple[dt.date, dt.date]
) -> dict[str, str]:
    known_until = row["cutoff"] or row["released"]
    # Markup disables escaping, which is safe: the chart contains no untrusted text.
    chart = Markup(forecast_chart(points, window, known_until))  # noqa: S704
    crowd = ""
    if row["num_crowd"]:
        model, others = row["model_brier_score_there"], row["crowd_brier_score"]
        crowd = f"{others:.3f} (model there {model:.3f}, {row['num_crowd']:,} questions)"
    return dict(
        model=row["model"],
        num_questions=f"{row['num_questions']:,}",
        num_unparsed=f"{row['num_unparsed']:,}" if row["num_unparsed"] else "",
        accuracy=_percent(row["accuracy"]),
        guess=_percent(row["expected_accuracy"]),
        num_test=f"{row['num_test_questions']:,}",
        test_accuracy=_percent(row["test_accuracy"]),
        test_interval=interval(row["test_accuracy_low"], row["test_accuracy_high"], ".1f", 100),
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


def _with_interval(row: dict[str, Any], name: str, form: str) -> str:
    if row[name] is None:
        return ""
    ends = interval(row[f"{name}_low"], row[f"{name}_high"], form)
    return f"{row[name]:{form}}" + (f" ({ends})" if ends else "")


def _brier(row: dict[str, Any]) -> str:
    if row["num_unknown"]:
        return f"outcomes not known of {row['num_unknown']:,}"
    return _with_interval(row, "brier_score", ".3f")


def _tested(verdict: str | None, adjusted: float | None) -> str:
    return "" if verdict is None or adjusted is None else f"{verdict} ({p_value(adjusted)})"


PAGE = AnswersPage(
    "report/forecasts.html",
    "forecasts.html.j2",
    _ROWS,
    "no answers to forecasting questions are published; have models answer with `tidemark "
    "forecast answer`, or land answers with `tidemark land-answers`",
    _fields,
)
write_forecasts = PAGE.write
