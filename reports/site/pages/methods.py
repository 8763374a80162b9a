"""Methods on one screen, and how sure the figures are."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from importlib.resources import files

from core.json import JsonObject
from reports.site.charts import PALETTE, SOFT
from reports.site.context import Site, some
from reports.site.figure import ELSEWHERE, Column, Figure, Page
from reports.site.findings import simulations_finding, span

ORDER = 7
NAVIGATION = ("methods.html", "Methods")
PATHS = (NAVIGATION[0],)


def make_pages(site: Site) -> Iterator[Page]:
    """Yield the page of methods."""
    figures = site.make(simulations, peers, canaries, _resolution)
    protocols = site.query("methods_protocols")[1].to_dicts()
    yield Page("methods.html", "Methods", "methods.html.j2", figures, {"protocols": protocols})


def recorded(name: str) -> str:
    """Return the rows of ``data/<name>.csv`` as JSON."""
    file = files("reports.site").joinpath("data", f"{name}.csv")
    return json.dumps(list(csv.DictReader(file.read_text(encoding="utf-8").splitlines())))


def simulations(site: Site) -> Figure:
    """Return how often intervals contain the true value in simulated data sets."""
    sql, rows = site.query("methods_simulations", shares=recorded("simulations"))
    columns = [
        Column("figure", "view and figure"),
        Column("truth", "what is counted"),
        Column("share", "share of worlds", ".1f", "share_low", "share_high", "%", factor=100),
        Column("worst_share", "worst kind of world", ".1f", unit="%", factor=100),
        Column("worst_world", "which"),
        Column("num_worlds", "worlds", ",d"),
        Column("num_kinds", "kinds", "d"),
        Column("num_known", "known exceptions", "d"),
        Column("num_outside", "outside their bounds", "d"),
    ]
    about = (
        "Losses of worlds with known answers are landed, published and queried. Coverage: how "
        "often a 95 % interval has the truth. False positives: how often one excludes zero where "
        "nothing changes. Intervals of the shares are Wilson's; the query has all shares by kind. "
        "Diamonds: the worst kind of world."
    )
    title = simulations_finding(rows.to_dicts())
    return Figure("methods-simulations", title, about, sql, rows, columns, _coverage_chart(),
                  measured=ELSEWHERE)  # fmt: skip


def _coverage_chart() -> JsonObject:
    """Return a chart of the coverage of intervals: of all worlds, and of the worst kind."""
    axis = {"type": "quantitative", "scale": {"domain": [0.78, 1], "clamp": True}, "title": None,
            "axis": {"format": ".0%", "orient": "top", "values": [0.8, 0.9, 1]}}  # fmt: skip
    x = {"field": "share", **axis}
    y = {"field": "figure", "type": "nominal", "title": None,
         "axis": {"labelLimit": 400, "grid": True}}  # fmt: skip
    point = {"type": "point", "filled": True, "size": 40, "opacity": 1}
    layers = [
        {"mark": {"type": "rule", "color": SOFT, "strokeDash": [3, 3]},
         "encoding": {"x": {**axis, "datum": 0.95}}},
        {"mark": {"type": "rule", "color": PALETTE[0], "clip": True},
         "encoding": {"x": {**x, "field": "share_low"}, "x2": {"field": "share_high"}, "y": y}},
        {"mark": {**point, "color": PALETTE[0]},
         "encoding": {"x": x, "y": y}},
        {"mark": {**point, "color": PALETTE[1], "shape": "diamond"},
         "encoding": {"x": {**x, "field": "worst_share"}, "y": y}},
    ]  # fmt: skip
    return {
        "transform": [{"filter": "indexof(datum.truth, 'coverage') == 0"}],
        "facet": {"row": {"field": "truth", "title": None, "header": {
            "labelAngle": 0, "labelAnchor": "start", "labelOrient": "top", "labelPadding": 0,
            "labelFontWeight": "bold",
        }}},
        "padding": {"left": 60, "right": 24, "top": 5, "bottom": 5}, "spacing": 16,
        "resolve": {"scale": {"y": "independent"}},
        "spec": {"width": 200, "height": {"step": 17}, "layer": layers},
    }  # fmt: skip


def peers(site: Site) -> Figure:
    """Return how far losses are from those of other evaluations' code."""
    sql, rows = site.query("methods_peers", runs=recorded("peers"))
    columns = [
        Column("peer", "code of"),
        Column("difference", "difference", ".1e", unit="of the loss"),
        Column("version", "version"),
        Column("num_documents", "documents", "d"),
        Column("protocol", "protocol here"),
        Column("setting", "run as"),
    ]
    about = (
        "On the same documents under the same small model, in float32. Difference: of summed "
        "losses, or of the worst document where the code gives each document's."
    )
    num = rows["peer"].n_unique()
    part = 1e-6 / max(rows["difference"])
    title = f"Losses agree with the code of {num} other evaluations to 1 part in {part:.0f} million"
    return Figure("methods-peers", title, about, sql, rows, columns, measured=ELSEWHERE)


def canaries(site: Site) -> Figure:
    """Return how often a model of known losses drifted, by device."""
    sql, rows = some(site.query("methods_canaries"))
    columns = [
        Column("device", "device"),
        Column("num_runs", "runs", ",d"),
        Column("num_drifted", "with a drift", ",d"),
        Column("first_run", "first", "%Y-%m-%d"),
        Column("last_run", "last", "%Y-%m-%d"),
    ]
    drifted = int(rows["num_drifted"].sum())
    title = f"{drifted} canary runs drifted" if drifted else "No canary run drifted"
    about = "A small model of known losses is scored before each run, on the same machine."
    return Figure("methods-canaries", title, about, sql, rows, columns)


def _resolution(site: Site) -> Figure:
    """Return the smallest gap that the text of each source can show."""
    sql, rows = some(site.query("methods_resolution", protocol=site.protocol))
    columns = [
        Column("source", "source"),
        Column("detectable_gap", "smallest gap that is found", ".4f", unit="bits per byte",
               about="Median over models of the gap that would be found in 80 of 100 trials, "
               "with six months on each side of the cutoff."),
        Column("num_documents", "documents a month", ",.0f"),
        Column("num_models", "models", "d"),
    ]  # fmt: skip
    about = (
        "Smaller gaps are not seen with this much text, and six months on each side of a cutoff."
    )
    gaps = rows["detectable_gap"].to_list()
    title = f"Gaps of {span(gaps, '.3f')} bits per byte can be told, by source"
    return Figure("methods-resolution", title, about, sql, rows, columns)
