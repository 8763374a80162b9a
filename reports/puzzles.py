"""The page of Scylla's puzzles: one self-contained HTML page, made from the published snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from core.errors import UsageError
from core.settings import Settings
from core.storage import Store
from reports.template import render_template
from reports.valley_chart import Level, valley_chart
from warehouse.query import query

PAGE = "report/puzzles.html"

# What the page shows: the strict rules, against data out of distribution of the paper's range.
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


@dataclass(frozen=True)
class Model:
    """One model under one protocol, written out; empty where nothing is known."""

    name: str
    figures: tuple[str, ...]  # a cell of the table each
    probes: tuple[str, ...]
    chart: Markup


def write_puzzles(settings: Settings) -> str:
    """Write the page and return its address.

    Raises:
        UsageError: nothing is published, or no answers to puzzles are.
    """
    page = render_puzzles(settings)
    store = Store(settings.home)
    store.write_bytes(PAGE, page.encode())
    return store.url(PAGE)


def render_puzzles(settings: Settings) -> str:
    """Return the page as HTML; names from outside are escaped.

    Raises:
        UsageError: nothing is published, or no answers to puzzles are.
    """
    rows = query(settings, _SCORES).to_pylist()
    if not rows:
        raise UsageError(
            "no answers to puzzles are published; have models solve some with `tidemark scylla run`"
        )
    probes = query(settings, _PROBES).to_pylist()
    by_model: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_model.setdefault((row["protocol"], row["model"]), []).append(row)
    sections: dict[str, list[Model]] = {}
    for (protocol, name), own in by_model.items():
        of_model = [p for p in probes if (p["protocol"], p["model"]) == (protocol, name)]
        sections.setdefault(protocol, []).append(_model(name, own, of_model))
    published = [
        (
            row["published_model"],
            list(map(_score, row["scores"])),
            row["critical_level"],
        )
        for row in query(settings, _PUBLISHED).to_pylist()
    ]
    return render_template("puzzles.html.j2", sections=sections, published=published)


def _model(name: str, rows: Sequence[dict[str, Any]], probes: Sequence[dict[str, Any]]) -> Model:
    levels = [row for row in rows if row["level"] is not None]
    (overall,) = (row for row in rows if row["level"] is None)
    asked = [
        Level(row["level"], row["id_accuracy"], row["ood_accuracy"])
        for row in levels
        if row["score"] is not None
    ]
    critical = overall["critical_level"]
    # Drawn without any text from outside; all else on the page is escaped.
    chart = Markup(valley_chart(asked, critical)) if asked else Markup()  # noqa: S704
    return Model(
        name=name,
        figures=(
            _size(overall["parameters"]),
            *(_score(row["score"]) for row in levels),
            _score(overall["score"]),
            _interval(overall["score_low"], overall["score_high"]),
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


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _certainty(row: dict[str, Any]) -> str:
    """How sure the level is; empty where there is none."""
    if row["critical_level"] is None:
        return ""
    p_value = row["joint_p_value"]
    tested = "" if p_value is None else ", p < 0.001" if p_value < 0.001 else f", p = {p_value:.3f}"
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
