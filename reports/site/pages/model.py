"""One page per model: its curves against its cutoffs, figures by source, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from reports.site.answer_findings import forecast_finding, puzzle_finding, with_gap
from reports.site.citation import bibtex, window_of
from reports.site.context import Site, is_control, of_name, some
from reports.site.cutoff_findings import cutoff_finding, known_cutoff, two_rises_finding
from reports.site.figure import CLIPPED, P_VALUE, WILSON, Column, Figure, Page, Row, slug, told
from reports.site.findings import (
    classes_finding,
    contamination_finding,
    costs_finding,
    decay_finding,
    rise_about,
    sources_finding,
)
from reports.site.front import has_published_page
from reports.site.pages.overview import MIN_MONTHS, lane_marks_about, lanes

ORDER = 10
NAVIGATION = None
PATHS = ("models/*",)
PUBLISHED = "published"
PUBLISHED_RATES = "published rates"


def make_pages(site: Site) -> Iterator[Page]:
    """Yield a page per model with measured months."""
    rows = site.readable("board", protocol=site.protocol).to_dicts()
    board = {row["model"]: row for row in rows}
    for name, known in site.models.items():
        makers = (
            _curves, _rises, _sources, _decays, _classes, _worst, _contamination, _forecasts,
            _puzzles, _costs, _published_rises, _published,
        )  # fmt: skip
        fields = {
            "name": name,
            "known": known,
            "board": board.get(name),
            "cite": _cite(site, name),
            "has_published_page": has_published_page(),
        }
        figures = site.make(*(of_name(make, name) for make in makers))
        path = f"models/{slug(name)}.html"
        yield Page(path, name, "model.html.j2", figures, fields)


def _curves(site: Site, name: str) -> Figure | None:
    board = site.query("board", protocol=site.protocol)[1]
    return _lanes(site, name, site.protocol, "curves", board)


def _rises(site: Site, name: str) -> Figure:
    return _two_rises(site, name, site.protocol, "rises")


def _published_rises(site: Site, name: str) -> Figure:
    return _two_rises(site, name, PUBLISHED, "published-rises")


def _two_rises(site: Site, name: str, protocol: str, ending: str) -> Figure:
    """Return where losses rise twice under a protocol; only where that is told."""
    sql, rows = some(site.part("model_two_rises", "model", name, protocol=protocol))
    columns = [
        Column("sources", "sources"),
        Column("first_cutoff", "first rise after", "%Y-%m", "first_cutoff_low",
               "first_cutoff_high"),
        Column("second_cutoff", "second rise after", "%Y-%m", "second_cutoff_low",
               "second_cutoff_high"),
        Column("q_value", "q", P_VALUE, about="false discovery rate over models and sources"),
        Column("basis", "against", about="What tells how hard the months are."),
    ]  # fmt: skip
    about = (
        "The last month before each rise, with its 95 % interval: training text of two times has "
        "such a curve, as of a model whose training went on."
    )
    measured = site.facts_of("published_references") if protocol == PUBLISHED else {}
    title = two_rises_finding(rows.to_dicts())
    return Figure(f"model-{slug(name)}-{ending}", title, about, sql, rows, columns,
                  measured=measured)  # fmt: skip


def _published(site: Site, name: str) -> Figure | None:
    some(site.query("published_references"))
    return _lanes(site, name, PUBLISHED, PUBLISHED, site.query("published_gaps")[1])


def _lanes(site: Site, name: str, protocol: str, ending: str, known: pl.DataFrame) -> Figure | None:
    """Return curves by source under a protocol; ``known`` has the cutoffs of its models."""
    sql, rows = site.part("model_curves", "model", name, protocol=protocol)
    if rows["month"].n_unique() < MIN_MONTHS:
        return None
    sources = sorted(set(rows["source"].to_list()))
    own = known.filter(pl.col("model") == name)
    known_by = known_cutoff(site.models[name]["cutoff_provenance"])
    title = "A compressor has no cutoff" if is_control(name) else "No cutoff can be told yet"
    if not is_control(name) and own.height:
        num_dated = known["estimated_cutoff", "stated_cutoff"].drop_nulls().height
        title = cutoff_finding(own.row(0, named=True), num_dated)
    return Figure(
        f"model-{slug(name)}-{ending}",
        title,
        f"{rise_about(rows)}{lane_marks_about(rows, known_by)}",
        sql,
        rows,
        chart=lanes("source", sources, rows["month"].to_list()),
        has_months=True,
        measured=site.facts_of("published_references") if protocol == PUBLISHED else {},
    )


def _sources(site: Site, name: str) -> Figure:
    """Return levels, gaps, ageing and cutoffs of a model by source."""
    sql, rows = some(site.part("model_sources", "model", name, protocol=site.protocol))
    columns = [
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("bits_per_byte", "level", ".3f", unit="bits per byte",
               about="Mean over months after the cutoff; over all if the cutoff is unknown.",
               why="level_reason"),
        Column("bits_per_byte_seen", "up to the cutoff", ".3f", unit="bits per byte",
               why="seen_reason"),
        Column("adjusted_gap", "gap", "+.3f", "adjusted_gap_low", "adjusted_gap_high",
               "bits per byte", "Losses after the cutoff less before it, less what models share.",
               why="gap_reason"),
        Column("growth_per_year", "ageing", "+.3f", "growth_per_year_low", "growth_per_year_high",
               "bits per byte a year", why="ageing_reason"),
        Column("equivalent_share", "a year later like a fresh model of", ".0f",
               "equivalent_share_low", "equivalent_share_high", "% of its parameters",
               "Ageing in parameters, by the other sizes of its family.", factor=100,
               why="share_reason"),
        Column("cutoff_text", "measured cutoff", why="cutoff_reason"),
        Column("cutoff_onset", "thins out from", "%Y-%m", is_optional=True, why="cutoff_reason"),
        Column("tbi_per_year", "slope", "+.3f", "tbi_per_year_low", "tbi_per_year_high",
               "bits per byte a year", "Temporal bias: the plain slope over months.",
               why="slope_reason"),
        Column("num_months", "months", "d"),
    ]  # fmt: skip
    title = sources_finding(rows.to_dicts())
    if is_control(name):
        title = "Levels by source; a compressor has no gap, since it has no cutoff"
    return Figure(f"model-{slug(name)}-sources", title, "", sql, rows, told(columns, rows))


def _decays(site: Site, name: str) -> Figure:
    """Return the rise of a model's loss after its release, by source."""
    sql, rows = site.part("model_sources", "model", name, protocol=site.protocol)
    some((sql, rows.drop_nulls("decay_mean_pct")))
    columns = [
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("decay_mean_pct", "mean", "+.1f", "decay_mean_pct_low", "decay_mean_pct_high", "%",
               about="Of the rises that are there.", why="decay_reason"),
        Column("decay_q_value", "q", P_VALUE, about="false discovery rate of the mean, over models "
               "and sources", why="decay_reason"),
        *(_decay_column(months) for months in (3, 6, 9, 12)),
    ]  # fmt: skip
    about = (
        "Rise of the loss 3, 6, 9 and 12 months after the release, over the six months before it. "
        "Months that get harder for all models count as decay."
    )
    title = decay_finding(rows.to_dicts())
    return Figure(f"model-{slug(name)}-decay", title, about, sql, rows, told(columns, rows))


def _decay_column(months: int) -> Column:
    name = f"decay_{months}_pct"
    return Column(name, f"after {months} months", "+.1f", f"{name}_low", f"{name}_high", "%",
                  why="decay_reason")  # fmt: skip


def _classes(site: Site, name: str) -> Figure:
    """Return the parts of a model's gap by class of bytes."""
    sql, rows = some(site.part("model_byte_classes", "model", name, protocol=site.protocol))
    columns = [
        Column("label", "kind of text"),
        Column("share_of_gap", "share of the gap", ".1f", "share_of_gap_low", "share_of_gap_high",
               "%", factor=100),
        Column("part_of_gap", "part of the gap", "+.3f", "part_of_gap_low", "part_of_gap_high",
               "bits per byte of all text"),
        Column("bits_per_byte_gap", "gap of such text", "+.3f", "bits_per_byte_gap_low",
               "bits_per_byte_gap_high", "bits per byte"),
        Column("bits_per_byte_before", "up to the cutoff", ".3f", unit="bits per byte"),
        Column("bits_per_byte_after", "after it", ".3f", unit="bits per byte"),
        Column("growth_per_year", "slope after it", "+.3f", "growth_per_year_low",
               "growth_per_year_high", "bits per byte a year"),
        Column("num_months_before", "months up to the cutoff", "d"),
        Column("num_months_after", "months after it", "d"),
        Column("reason", "reason", is_optional=True),
    ]  # fmt: skip
    about = (
        "Losses after the stated cutoff less before it, by kind of text, over sources with both. "
        "What other models share is in it. A token's loss counts by its bytes."
    )
    title = classes_finding(rows.to_dicts())
    return Figure(f"model-{slug(name)}-classes", title, about, sql, rows, told(columns, rows))


def _worst(site: Site, name: str) -> Figure:
    """Return the documents that a model predicts worst."""
    sql, rows = some(site.part("model_worst_documents", "model", name, protocol=site.protocol))
    columns = [
        Column("document", "document", link=_outside),
        Column("source", "source", link=lambda row: site.source_page(row["source"])),
        Column("month", "month", "%Y-%m"),
        Column("bits_per_byte", "loss", ".3f", unit="bits per byte"),
        Column("num_bytes", "length", ",d", unit="bytes"),
    ]
    title = "The documents of the last months that the model predicts worst"
    about = "Three of each source's last month, of 200 bytes or more."
    return Figure(f"model-{slug(name)}-worst", title, about, sql, rows, columns)


def _outside(row: Row) -> str | None:
    """Return the address of a document on the web, if it is a safe one."""
    url: str | None = row["url"]
    return url if url is not None and url.startswith("https://") else None


def _contamination(site: Site, name: str) -> Figure | None:
    """Return the months that may have been in a model's training text; None for compressors."""
    if is_control(name):
        return None
    sql, rows = some(site.part("model_contamination", "model", name, protocol=site.protocol))
    columns = [
        Column("source", "source"),
        Column("month", "month", "%Y-%m"),
        Column("is_suspected", "suspected"),
        Column("is_after_cutoff", "after the cutoff"),
        Column("bits_per_byte", "measured", ".3f", unit="bits per byte"),
        Column("predicted_bits_per_byte", "explained", ".3f", unit="bits per byte"),
        Column("p_value", "p", P_VALUE),
        Column("q_value", "q", P_VALUE, about="false discovery rate over all models and months"),
    ]
    about = "Months on which the model does better than their neighbours and other models explain."
    title = contamination_finding(rows.to_dicts())
    return Figure(f"model-{slug(name)}-contamination", title, about, sql, rows, columns)


def _forecasts(site: Site, name: str) -> Figure:
    """Return a model's answers to forecasting questions, by source."""
    sql, rows = some(site.part("model_forecasts", "model", name))
    columns = [
        Column("source", "questions of"),
        Column("accuracy", "right, after the cutoff", ".1f", "accuracy_low", "accuracy_high", "%",
               factor=100, why="reason"),
        Column("expected_accuracy", "by guessing", ".1f", unit="%", factor=100, why="reason"),
        Column("num_questions", "questions after the cutoff", "d"),
        Column("accuracy_of_all_questions", "right, all", ".1f", "accuracy_of_all_questions_low",
               "accuracy_of_all_questions_high", "%", factor=100),
        Column("num_all_questions", "all questions", "d"),
        Column("num_unparsed", "no answer read", "d", is_optional=not rows["num_unparsed"].sum()),
        Column("protocol", "asked as"),
    ]  # fmt: skip
    about = f"Questions about events, asked without looking anything up. {WILSON}"
    num_tests = site.query("model_forecasts")[1]["p_value"].drop_nulls().len()
    title = forecast_finding(rows.to_dicts(), num_tests)
    return Figure(f"model-{slug(name)}-forecasts", title, about, sql, rows, columns,
                  measured=site.facts_of("forecasts_facts"))  # fmt: skip


def _puzzles(site: Site, name: str) -> Figure | None:
    """Return a model's scores in puzzles by level; None without answers."""
    if not site.has_puzzles:
        return None
    sql, rows = some(site.part("model_puzzles", "model", name))
    columns = [
        Column("level", "level of complexity"),
        Column("score", "score", "+.2f", "score_low", "score_high", "-1 to 1"),
        Column("id_accuracy", "right on its own inputs", ".1f", unit="%", factor=100),
        Column("ood_accuracy", "right on other inputs", ".1f", unit="%", factor=100),
        Column("num_puzzles", "puzzles", "d"),
        Column("num_expected", "of", "d"),
        Column("protocol", "asked as"),
    ]
    about = f"Puzzles on inputs that the model wrote, and on others of the same shape. {CLIPPED}"
    num_models = site.query("model_puzzles")[1].drop_nulls("p_value")["model"].n_unique()
    with_gaps = with_gap(site.query("puzzles_board")[1].to_dicts())
    has_gap = name in {row["model"] for row in with_gaps}
    title = puzzle_finding(rows.to_dicts(), num_models, has_gap=has_gap)
    return Figure(f"model-{slug(name)}-puzzles", title, about, sql, rows, columns,
                  measured=site.facts_of("puzzles_facts"))  # fmt: skip


def _costs(site: Site, name: str) -> Figure:
    """Return time, memory and energy of scoring a model."""
    sql, rows = some(site.part("model_costs", "model", name, protocol=site.protocol))
    columns = [
        Column("device", "device"),
        Column("dtype", "numbers"),
        Column("num_cells", "cells", ",d"),
        Column("seconds", "time", ",.0f", unit="s"),
        Column("tokens_per_second", "speed", ",.0f", unit="tokens/s"),
        Column("peak_memory_gb", "peak memory", ".2f", unit="GB"),
        Column("energy_kwh", "energy", ".3f", unit="kWh"),
        Column("last_scored_at", "last scored", "%Y-%m-%d"),
    ]
    title = costs_finding(rows.to_dicts())
    return Figure(f"model-{slug(name)}-costs", title, "", sql, rows, told(columns, rows))


def _cite(site: Site, name: str) -> str:
    """Return a BibTeX entry of the page."""
    kinds = {2: "answers", 3: PUBLISHED_RATES}
    what = kinds.get(site.models[name]["place"], window_of(site))
    is_simulated = bool(site.simulated) and what != PUBLISHED_RATES
    return bibtex(site, f"tidemark-{slug(name)}", f"{name}: {what}", is_simulated=is_simulated)
