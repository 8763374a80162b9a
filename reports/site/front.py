"""The first page: its picture, three answers, and grounds to trust the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from core.json import JsonObject
from core.plugins import import_parts
from core.progress import counted
from reports.site.charts import INK, PALETTE, SOFT
from reports.site.collected import KEPT
from reports.site.context import Site, some
from reports.site.cutoff_findings import cutoff_finding
from reports.site.figure import Column, Figure, Row, shown
from reports.site.findings import MAX_Q, is_sure, untold_gap
from reports.site.labels import end_labels, extent_of
from reports.site.pages import methods

NAME = "rises"
PUBLISHED = "published"
MIN_OWN = 4  # with fewer models of one's own, the picture is of published ones, if there are more
MAX_LINES = 16
MAX_MONTHS = 18  # before a cutoff; the files have all
TICK_STEPS = (1, 2, 3, 6, 12)  # months
MAX_TICKS = 12
HOW_TO_READ = (
    "Each line is one model, and 0 is the month of its own cutoff: a line that goes up there says "
    "that text from after the cutoff is harder for the model, beyond what makes a month hard for "
    "all models. The gap of the title is not the mean of its line: its fit also estimates how far "
    "the model's loss follows that of hard months."
)
REFUTED_BY = (
    "Lines that rise before 0 as they do after it, or compressors, which were never trained, that "
    "rise with the models: then the text would have changed, not what models know of it."
)


def lead_protocol(site: Site) -> str:
    """Return the protocol of the first picture: that of the site, or that of published rates."""
    own = site.query("gaps", protocol=site.protocol)[1].height
    published = site.query("gaps", protocol=PUBLISHED)[1].height
    return PUBLISHED if own < MIN_OWN and published > own else site.protocol


def rises_figure(site: Site) -> Figure:
    """Return the first picture; its title is the headline."""
    protocol = lead_protocol(site)
    gaps = site.query("gaps", protocol=protocol)[1]
    reasons = site.query("gaps_untold", protocol=protocol)[1].to_dicts()
    sql, rows = some(site.query("rises", protocol=protocol))
    some((sql, rows.filter(pl.col("months_after_cutoff") > 0)))
    models = rows.filter(~pl.col("is_compressor"))["model"].unique().sort().to_list()
    ordered = [name for name in gaps["model"].to_list() if name in models]
    drawn = [*ordered, *(name for name in models if name not in ordered)][:MAX_LINES]
    compressors = rows.filter("is_compressor")["model"].unique().sort().to_list()
    whose = "of published rates" if protocol == PUBLISHED else "measured here"
    about = (
        f"Bits per byte above the level up to the cutoff, less what makes a month hard for all "
        f"models; {len(drawn)} models, {whose}. Dashed: compressors over the same months."
    )
    kind = "real models" if protocol == PUBLISHED else "models"
    return Figure(
        NAME,
        headline_finding(gaps.to_dicts(), kind, reasons),
        about,
        sql,
        rows,
        chart=_lines(rows, drawn, compressors),
        drawn_models=[*drawn, *compressors],
        measured=site.facts_of("published_references") if protocol == PUBLISHED else {},
    )


def _colours(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Return a colour per model: that of its family if the families are few enough."""
    families = dict(rows.select("model", "family").unique().iter_rows())
    keys = list(dict.fromkeys(families[name] or name for name in names))
    if len(keys) > len(PALETTE):
        keys = list(names)
    known = dict(zip(keys, PALETTE, strict=False))
    return {name: known.get(families[name] or name, known.get(name, SOFT)) for name in names}


def _lines(rows: pl.DataFrame, models: Sequence[str], compressors: Sequence[str]) -> JsonObject:
    """Return a line per model with its name at the end, and a dashed one per compressor."""
    shown = rows.filter(
        pl.col("model").is_in([*models, *compressors])
        & (pl.col("months_after_cutoff") >= -MAX_MONTHS)
    )
    colours = _colours(rows, models)
    first, last = shown.select(
        pl.min("months_after_cutoff").alias("first"), pl.max("months_after_cutoff").alias("last")
    ).row(0)
    x = {"field": "months_after_cutoff", "type": "quantitative",
         "title": "months since the model's own cutoff",
         "scale": {"domain": [first, last], "nice": False},
         "axis": {"grid": False, "format": "d", "labelFlush": False,
                  "values": _ticks(first, last)}}  # fmt: skip
    y = {"field": "rise", "type": "quantitative", "title": "rise, bits per byte",
         "axis": {"tickCount": 6, "format": "+.2~f"}}  # fmt: skip
    scale = {"domain": list(models), "range": [colours[name] for name in models]}
    colour = {"field": "model", "type": "nominal", "legend": None, "scale": scale}
    tooltip = [
        {"field": "model"},
        {"field": "months_after_cutoff", "title": "months since the cutoff"},
        {"field": "rise", "format": "+.3f"},
    ]
    in_view = {"filter": f"datum.months_after_cutoff >= {-MAX_MONTHS}"}
    is_model = [in_view, {"filter": "!datum.is_compressor"}]
    is_compressor = [in_view, {"filter": "datum.is_compressor"}]
    newest = dict(shown.filter("is_newest").select("model", "rise").iter_rows())
    ends = {name: newest[name] for name in models if name in newest}
    if compressors:
        levels = [newest[name] for name in compressors if name in newest]
        ends |= {"compressors": sum(levels) / len(levels)} if levels else {}
    labels = end_labels(ends, {**colours, "compressors": SOFT}, extent_of(shown["rise"]), 0.05)
    note = {"data": {"values": [{"at": 0}]}, "encoding": {"x": {**x, "field": "at"}}}
    return {"width": 660, "height": 300, "layer": [
        {**note, "mark": {"type": "rule", "strokeDash": [4, 3], "color": SOFT}},
        {"data": {"values": [{}]}, "mark": {"type": "rule", "color": SOFT},
         "encoding": {"y": {"datum": 0}}},
        {**note, "mark": {"type": "text", "align": "right", "dx": -5, "color": SOFT},
         "encoding": {"x": {**x, "field": "at"}, "y": {"value": 6},
                      "text": {"value": "its own cutoff"}}},
        {"transform": is_compressor,
         "mark": {"type": "line", "color": SOFT, "strokeDash": [2, 2], "strokeWidth": 1.2},
         "encoding": {"x": x, "y": y, "detail": {"field": "model"}, "tooltip": tooltip}},
        {"transform": is_model,
         "mark": {"type": "line", "strokeWidth": 1.8, "color": INK},
         "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip}},
        labels,
    ]}  # fmt: skip


def _ticks(first: int, last: int) -> list[int]:
    """Return months of an axis from ``first`` to ``last``, as far apart as their labels need."""
    step = next((step for step in TICK_STEPS if last - first <= MAX_TICKS * step), TICK_STEPS[-1])
    return [age for age in range(first, last + 1) if age % step == 0]


def headline_finding(rows: Sequence[Row], kind: str, reasons: Sequence[Row]) -> str:
    """Return how many models have a gap at their own cutoff, and the largest with its interval.

    ``kind`` names what the rows are about, in the plural; ``reasons`` are the rows of query
    gaps_untold.
    """
    if not rows:
        return untold_gap(reasons)
    found = [row for row in rows if is_sure(row["gap_q_value"]) and row["adjusted_gap"] > 0]
    largest = max(found or rows, key=lambda row: row["adjusted_gap"])
    size = with_interval(largest, "adjusted_gap")
    if not found and len(rows) == 1:
        return (
            f"{largest['model']} does not predict text from after its cutoff worse by more than "
            f"chance: the gap is {size}"
        )
    if not found:
        return (
            f"None of {len(rows)} {kind} predicts text from after its cutoff worse by more than "
            f"chance: the largest gap is {size}"
        )
    if len(rows) == 1:
        return f"{largest['model']} predicts text from after its cutoff worse, by {size}"
    verb = "predicts text from after its" if len(found) == 1 else "predict text from after their"
    return f"{len(found)} of {len(rows)} {kind} {verb} cutoff worse: {largest['model']} by {size}"


def with_interval(row: Row, name: str, unit: str = "bits per byte") -> str:
    """Return a figure with its interval, as ``0.022 bits per byte (95 %: 0.006 to 0.038)``."""
    form = Column("", "", ".3f")
    low, high = (shown(row[f"{name}_{end}"], form) for end in ("low", "high"))
    return f"{shown(row[name], form)} {unit} (95 %: {low} to {high})"


def slowest_finding(rows: Sequence[Row]) -> str:
    """Return which model ages slowest; only if its interval is below those of all others."""
    known = [row for row in rows if row["growth_per_year_high"] is not None]
    if not known:
        return "How fast models age cannot be told yet"
    ordered = sorted(known, key=lambda row: row["growth_per_year"])
    first = ordered[0]
    others = ordered[1:]
    size = with_interval(first, "growth_per_year", "bits per byte a year")
    if not others:
        return f"Only {first['model']} has enough months: its gap grows by {size}"
    if first["growth_per_year_high"] < min(row["growth_per_year_low"] for row in others):
        return f"{first['model']}: its gap grows by {size}"
    alike = [row for row in others if row["growth_per_year_low"] <= first["growth_per_year_high"]]
    overlap = "overlaps" if len(alike) == 1 else "overlap"
    others_alike = counted(len(alike), "other interval")
    return f"Not told: {others_alike} {overlap} the lowest growth, {first['model']}'s {size}"


def contradicted_finding(rows: Sequence[Row]) -> str:
    """Return which stated cutoffs the losses contradict."""
    dated = [row for row in rows if row["estimated_cutoff"] and row["stated_cutoff"]]
    if not dated:
        bounded = [row for row in rows if row["cutoff_text"] and row["stated_cutoff"]]
        if bounded:
            of_models = counted(len(bounded), "model")
            return f"Not told: of the cutoff of {of_models}, the losses tell only one end"
        return "No cutoff can be told from the losses yet"
    titles = {row["model"]: cutoff_finding(row, len(dated)) for row in dated}
    wrong = [f"{model}: {title}" for model, title in titles.items() if " than the " in title]
    if not wrong:
        return f"None of {counted(len(dated), 'stated cutoff')} that the losses can date"
    num_more = len(wrong) - 1
    if not num_more:
        return wrong[0]
    return f"{wrong[0]}. {num_more} more {'has' if num_more == 1 else 'have'} one, too"


def harder_finding(rows: Sequence[Row], num_sources: int) -> str:
    """Return which source's last month is hardest against its average month.

    ``rows`` are the last months of sources; Bonferroni's correction is over all ``num_sources``.
    """
    tested = [row for row in rows if row["p_value"] is not None]
    if not tested:
        return "How hard the months are cannot be told yet"
    sure = [
        row for row in tested if row["p_value"] * num_sources <= MAX_Q and row["difficulty"] > 0
    ]
    if not sure:
        return "No source's last month is harder than its average month, by more than chance"
    most = max(sure, key=lambda row: row["difficulty"])
    size = with_interval(most, "difficulty")
    return f"{most['source']}: {str(most['month'])[:7]} is harder than its average month, by {size}"


@dataclass(frozen=True)
class Answer:
    """A question in a few words, its answer, and the address of the figures."""

    question: str
    answer: str
    address: str


def three_answers(site: Site) -> list[Answer]:
    """Return which model ages slowest, which stated cutoff is wrong, which source got harder."""
    growths, address = _of_own_or_published(
        site.readable("ageing", protocol=site.protocol).to_dicts(),
        site.readable("ageing", protocol=PUBLISHED).to_dicts(),
    )
    slowest = Answer("Ages slowest", slowest_finding(growths), address)
    own = site.readable("board", protocol=site.protocol).to_dicts()
    dated = [row for row in own if row["estimated_cutoff"]]
    dates, address = _of_own_or_published(
        dated, site.readable("published_gaps").to_dicts() if not dated else []
    )
    wrong = Answer("Stated cutoff contradicted", contradicted_finding(dates or own), address)
    harder = Answer(
        "Source that got harder",
        harder_finding(_last_months(site), len(site.sources)),
        "sources.html",
    )
    return [slowest, wrong, harder]


def _of_own_or_published(own: Sequence[Row], published: Sequence[Row]) -> tuple[Sequence[Row], str]:
    """Return rows of models that were scored here, else of published rates, and their address."""
    if own or not published:
        return own, "index.html#board"
    return published, "published.html#published-gaps" if has_published_page() else "cutoffs.html"


def has_published_page() -> bool:
    """Return True if an extra has the page of what others have published."""
    return any("published.html" in part.PATHS for part in import_parts("pages"))


def _last_months(site: Site) -> list[Row]:
    """Return the last month of each source with its difficulty."""
    rows = [
        site.part("source_difficulty", "source", name, protocol=site.protocol)[1]
        for name in site.sources
    ]
    return [each.row(-1, named=True) for each in rows if each.height]


def trust(site: Site) -> Iterator[Answer]:
    """Yield what speaks for the figures: simulations, other code, the canary, sealed text."""
    questions = {
        "methods-simulations": "Intervals",
        "methods-peers": "Other code",
        "methods-canaries": "Machines",
    }
    for figure in site.make(methods.simulations, methods.peers, methods.canaries):
        yield Answer(questions[figure.name], figure.title, f"methods.html#{figure.name}")
    kept = [row for row in json.loads(site.outcomes) if row["outcome"] == KEPT]
    if kept:
        months = sum(row["num_months"] for row in kept)
        sources = len(kept)
        of_sources = counted(sources, "source")
        text = f"Months of {of_sources} are sealed with a digest of each text: {months:,} in all"
        yield Answer("Text", text, "data.html#data-collected")
