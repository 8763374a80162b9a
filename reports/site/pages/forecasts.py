"""Forecasting questions: what is asked, how often models are right, and their bias over time."""

from __future__ import annotations

from collections.abc import Iterator

from reports.site.answer_findings import (
    adjusted_finding,
    bias_finding,
    board_of_forecasts_finding,
    crowd_finding,
    positions_finding,
    quarters_finding,
)
from reports.site.charts import PALETTE, SOFT
from reports.site.context import Site, some
from reports.site.figure import P_VALUE, WILSON, Column, Figure, Page

ORDER = 3
NAVIGATION = ("forecasts.html", "Forecasting")
PATHS = (NAVIGATION[0],)
MAX_PANELS = 12  # models with a curve; the CSV has all


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page about forecasting questions."""
    makers = (_board, _adjusted, _quarters, _bias, _scores, _positions)
    example = site.readable("forecasts_example").to_dicts()
    fields = {"example": example[0] if example else None}
    figures = site.make(*makers, facts="forecasts_facts")
    yield Page("forecasts.html", "Forecasting", "forecasts.html.j2", figures, fields)


def _board(site: Site) -> Figure:
    """Return how often each model is right, on questions from after its cutoff and on all."""
    sql, rows = some(site.query("forecasts_board"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "questions of"),
        Column("accuracy", "right, after the cutoff", ".1f", "accuracy_low",
               "accuracy_high", "%", factor=100, why="reason",
               about="Of questions that were opened after the model's cutoff."),
        Column("expected_accuracy", "by guessing", ".1f", unit="%", factor=100, why="reason"),
        Column("num_questions", "questions after the cutoff", ",d"),
        Column("accuracy_of_all_questions", "right, all", ".1f", "accuracy_of_all_questions_low",
               "accuracy_of_all_questions_high", "%", factor=100),
        Column("num_all_questions", "all questions", ",d"),
        Column("num_unparsed", "no answer read", ",d", is_optional=not rows["num_unparsed"].sum()),
        Column("protocol", "asked as", is_optional=True),
    ]  # fmt: skip
    about = (
        "A question tests a model if it was opened after its cutoff. A response without an answer "
        f"counts as wrong. {WILSON}"
    )
    title = board_of_forecasts_finding(rows.to_dicts())
    return Figure("forecasts", title, about, sql, rows, columns)


def _adjusted(site: Site) -> Figure:
    """Return the share of right answers that each model would have on the same questions."""
    sql, rows = some(site.query("forecasts_adjusted"))
    lacks_index = rows["brier_index"].is_null().all()
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("min_days_before_close", "days before closing", "d",
               about="Least days from the end of the model's knowledge to the closing."),
        Column("adjusted_accuracy", "right", ".1f", "adjusted_accuracy_low",
               "adjusted_accuracy_high", "%", factor=100,
               about="Of all these questions; with few common ones it may be above 100 %."),
        Column("expected_accuracy", "by guessing", ".1f", unit="%", factor=100),
        Column("brier_index", "Brier index", ".1f", "brier_index_low", "brier_index_high",
               about="100 is perfect, 50 an even guess between two options.",
               is_optional=lacks_index),
        Column("expected_brier_index", "index by guessing", ".1f", is_optional=lacks_index),
        Column("num_answers", "answers", ",d"),
        Column("num_questions", "questions of all models", ",d"),
        Column("protocol", "asked as", is_optional=True),
    ]  # fmt: skip
    about = (
        "Models whose cutoffs differ are tested by different questions. Each question's "
        "difficulty is estimated from the models that answered it. So each figure is for all the "
        "questions. "
        "Interval: 95 %, for other days like these; the questions that were resolved on one day "
        "are left out together."
    )
    title = adjusted_finding(rows.to_dicts())
    return Figure("forecasts-adjusted", title, about, sql, rows, columns)


def _quarters(site: Site) -> Figure | None:
    """Return the share of right answers by quarter, a panel per model."""
    sql, rows = site.query("forecasts_quarters")
    if rows["day"].n_unique() < 2:
        return None
    names = rows["series"].unique(maintain_order=True).to_list()[:MAX_PANELS]
    x = {"field": "day", "type": "temporal", "title": None, "scale": {"type": "utc"},
         "axis": {"grid": False, "format": "%Y-%m", "tickCount": 4, "labelFlush": True,
                  "labelOverlap": "greedy", "labelSeparation": 16}}  # fmt: skip
    share = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "right",
             "axis": {"format": ".0%", "tickCount": 3}}  # fmt: skip
    colour = {"condition": {"test": "datum.is_test", "value": PALETTE[1]}, "value": PALETTE[0]}
    columns = 2 if len(names) in (2, 4) else 3
    spec = {"width": 690 // columns, "height": 110, "layer": [
        {"mark": {"type": "line", "strokeDash": [3, 3], "color": SOFT},
         "encoding": {"x": x, "y": {**share, "field": "expected"}}},
        {"mark": {"type": "rule"},
         "encoding": {"x": x, "y": {**share, "field": "low"}, "y2": {"field": "high"},
                      "color": colour}},
        {"mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
         "encoding": {"x": x, "y": {**share, "field": "accuracy"}, "color": colour,
                      "shape": {"condition": {"test": "datum.is_test", "value": "diamond"},
                                "value": "circle"}}},
    ]}  # fmt: skip
    chart = {
        "transform": [{"filter": {"field": "series", "oneOf": names}}],
        "facet": {"field": "series", "type": "nominal", "sort": names, "title": None,
                  "header": {"labelAnchor": "start", "labelLimit": 220}},
        "columns": columns, "spacing": 32, "spec": spec,
        "resolve": {"axis": {"x": "independent"}},  # no axis below a place without a panel
    }  # fmt: skip
    about = (
        "By the quarter in which questions were opened. Orange diamonds: after the model's cutoff. "
        "Dashed: the share that guessing would get."
    )
    title = quarters_finding(rows.to_dicts())
    return Figure("forecasts-by-quarter", title, about, sql, rows, chart=chart)


def _bias(site: Site) -> Figure:
    """Return the test of whether models answer recent questions worse than earlier ones."""
    sql, rows = some(site.query("forecasts_bias"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "questions of"),
        Column("tested_class", "class"),
        Column("p_adjusted", "p", P_VALUE, about="after Holm's correction", why="bias_reason"),
    ]
    about = (
        "Nostalgia: earlier questions are answered better than recent ones; Neophilia: worse. "
        "No answers: none of the model's texts has an answer."
    )
    return Figure("forecasts-bias", bias_finding(rows.to_dicts()), about, sql, rows, columns)


def _scores(site: Site) -> Figure:
    """Return Brier scores of models and of the crowd."""
    sql, rows = some(site.query("forecasts_scores"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "questions of"),
        Column(
            "brier_score", "Brier score", ".3f", "brier_score_low", "brier_score_high", "0 to 2"
        ),
        Column("crowd_brier_score", "the crowd's", ".3f", unit="0 to 2", why="crowd_reason"),
        Column(
            "model_brier_score_there",
            "the model's, same questions",
            ".3f",
            unit="0 to 2",
            why="crowd_reason",
        ),
        Column("num_crowd", "questions with a crowd", ",d"),
        Column("num_answers", "answers", ",d"),
    ]
    about = "Lower is better. The crowd's forecast is that of the site when the question closed."
    return Figure("forecasts-scores", crowd_finding(rows.to_dicts()), about, sql, rows, columns)


def _positions(site: Site) -> Figure:
    """Return how much models prefer a place in the list of options."""
    sql, rows = some(site.query("forecasts_positions"))
    columns = [
        Column("model", "model", link=lambda row: site.model_page(row["model"])),
        Column("source", "questions of"),
        Column("protocol", "asked as"),
        Column("first_bias", "first place", "+.1f", "first_bias_low", "first_bias_high",
               "points", factor=100, about="Probability of the first option less 1 / options."),
        Column("favoured_place", "favoured place", ",d"),
        Column("favoured_bias", "excess there", "+.1f", unit="points", factor=100),
        Column("p_value", "p", P_VALUE, about="that no place is preferred; over all places",
               why="p_reason"),
        Column("rotated", "rotated"),
        Column("num_answers", "answers", ",d"),
    ]  # fmt: skip
    about = (
        "How much more probability the option in a place of the list gets than by chance. Where "
        "options are not rotated, this is also of what the options say. Intervals for generate "
        "are Wilson's: they reach further towards 50 %, so the figure is not in their middle."
    )
    title = positions_finding(rows.to_dicts())
    return Figure("forecasts-positions", title, about, sql, rows, columns)
