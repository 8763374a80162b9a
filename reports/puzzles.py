"""The HTML page about Scylla's puzzles, made from the published snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from core.settings import Settings
from reports.charts import Level, valley_chart
from reports.page import AnswersPage, interval, p_value
from warehouse.read.query import query

# The page shows verdicts by the ``strict`` rules, on the OOD items of split ``ood``.
_SCORES = """
    select s.*, v.gap as level_gap, c.critical_level, c.status, c.probability, c.joint_p_value,
        m.parameters, p.paper_score, p.paper_critical_level
    from scylla_scores as s
    left join scylla_valley as v
        on s.model = v.model and s.protocol = v.protocol and s.ood_split = v.ood_split
            and s.rules = v.rules and s.level = v.level
    left join scylla_critical_complexity as c
        on s.model = c.model and s.protocol = c.protocol and s.ood_split = c.ood_split
            and s.rules = c.rules
    left join scylla_paper_scores as p
        on s.model = p.model and s.protocol = p.protocol and s.ood_split = p.ood_split
            and s.level = p.level
    left join models as m on s.model = m.model
    where s.rules = 'strict' and s.ood_split = 'ood'
    order by s.protocol, m.parameters nulls last, s.model, s.level nulls last
"""
_PROBES = """
    select * from scylla_probes
    where rules = 'strict' and ood_split = 'ood'
    order by protocol, model, puzzle
"""
_PUBLISHED = """
    select published_model, any_value(published_critical_level) as critical_level,
        list(published_score order by level) as scores
    from (
        select distinct published_model, published_critical_level, published_score, level
        from scylla_published
    )
    group by published_model
    order by list_avg(scores) desc, published_model
"""


def _fields(settings: Settings, rows: list[dict[str, Any]]) -> dict[str, object]:
    probes = query(settings, _PROBES).to_pylist()
    by_model: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault((row["protocol"], row["model"]), []).append(row)
    sections: dict[str, list[dict[str, object]]] = {}
    for (protocol, name), of_levels in by_model.items():
        of_probes = [p for p in probes if (p["protocol"], p["model"]) == (protocol, name)]
        sections.setdefault(protocol, []).append(_model(name, of_levels, of_probes))
    published = [
        (row["published_model"], list(map(_score, row["scores"])), row["critical_level"])
        for row in query(settings, _PUBLISHED).to_pylist()
    ]
    return {"sections": sections, "published": published}


def _model(
    name: str, rows: Sequence[dict[str, Any]], probes: Sequence[dict[str, Any]]
) -> dict[str, object]:
    levels = [row for row in rows if row["level"] is not None]
    (overall,) = (row for row in rows if row["level"] is None)
    asked = [
        Level(row["level"], row["id_accuracy"], row["ood_accuracy"])
        for row in levels
        if row["score"] is not None
    ]
    critical = overall["critical_level"]
    # Markup disables escaping, which is safe: the chart contains no untrusted text.
    chart = Markup(valley_chart(asked, critical)) if asked else Markup()  # noqa: S704
    return dict(
        name=name,
        figures=(
            _size(overall["parameters"]),
            *(_score(row["score"]) for row in levels),
            _score(overall["score"]),
            interval(overall["score_low"], overall["score_high"], "+.3f"),
            str(critical or overall["status"]),
            _certainty(overall),
            str(levels[0]["paper_critical_level"] or ""),
            _lack(overall),
        ),
        probes=tuple(map(_probe, probes)),
        chart=chart,
    )


def _size(parameters: int | None) -> str:
    if parameters is None:
        return ""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:.3g} {name}"
    return str(parameters)


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:+.3f}"


def _certainty(row: dict[str, Any]) -> str:
    if row["critical_level"] is None:
        return ""
    joint = row["joint_p_value"]
    tested = "" if joint is None else f", {p_value(joint)}"
    return f"{100 * row['probability']:.0f} %{tested}"


def _lack(row: dict[str, Any]) -> str:
    missing = row["num_expected"] - row["num_puzzles"]
    if not missing:
        return ""
    few = row["num_insufficient"]
    return f"{missing} of {row['num_expected']}" + (f" ({few}: too few inputs)" if few else "")


def _probe(row: dict[str, Any]) -> str:
    title = row["puzzle"].replace("_", " ")
    if row["status"] != "crosses":
        return f"{title}: {row['status'].replace('_', ' ')}"
    return f"{title}: like level {row['level_equivalent']:.1f}"


PAGE = AnswersPage(
    "report/puzzles.html",
    "puzzles.html.j2",
    _SCORES,
    "no answers to puzzles are published; have models solve some with `tidemark scylla run`",
    _fields,
)
write_puzzles = PAGE.write
