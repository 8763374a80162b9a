"""Queries of the snapshot that the pages share: models, sources, window and facts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib.resources import files
from typing import Any

import duckdb
import polars as pl

from core.errors import StorageError, UsageError
from core.month import Month
from core.plugins import list_folders
from core.storage.store import Store
from reports.site.collected import read_outcomes
from reports.site.figure import Figure, Row, Value, literal, slug
from warehouse.read.query import read_whole


@dataclass(frozen=True)
class Facts:
    """Facts that every page states."""

    commit: str  # version of tidemark, and commit
    snapshot_sha256: str
    release: str  # newest release of the figures (YYYY-MM); empty if there is none
    built_at: dt.datetime  # when the site was made, UTC
    address: str = ""  # public address of the site's root, such as https://example.org/
    has_small_database: bool = False
    author: str = ""  # who publishes the site; empty if it is not stated
    repository: str = ""  # address of the code's repository; empty if it is not stated


@dataclass
class Site:
    """The published figures under one protocol, as pages read them.

    All queries run on one connection, so that all pages show the same snapshot.
    """

    connection: duckdb.DuckDBPyConnection
    protocol: str
    facts: Facts
    changes: Sequence[Any] = ()  # ``history.Change``, newest first
    former_months: Sequence[str] = ()  # months with pages under ``months/``
    failures: list[str] = field(default_factory=list)  # figures that could not be read
    lead_card: str = ""  # figure whose picture stands for pages without one
    store: Store | None = None  # data root, for pages with texts
    _results: dict[str, pl.DataFrame] = field(default_factory=dict)  # by statement
    _parts: dict[tuple[str, str], dict[str, pl.DataFrame]] = field(default_factory=dict)

    def make(self, *makers: Callable[[Site], Figure | None], facts: str = "") -> list[Figure]:
        """Return the figures that there are; one that cannot be read is noted in ``failures``.

        ``facts`` is the query of what figures are from, if it is not ``measured``.
        """
        figures = []
        for maker in makers:
            try:
                figure = maker(self)
            except pl.exceptions.NoRowsReturnedError:  # of ``some``
                continue
            except (UsageError, pl.exceptions.PolarsError) as error:
                self.note(f"{maker.__name__.strip('_')}: {error}")
                continue
            if figure is not None:
                has_facts = not facts or figure.measured
                whole = figure if has_facts else replace(figure, measured=self.facts_of(facts))
                figures.append(whole)
        return figures

    def note(self, failure: str) -> None:
        """Note a failure once; each page lists the first ones."""
        if failure not in self.failures:
            self.failures.append(failure)

    def facts_of(self, name: str) -> dict[str, object]:
        """Return the only row of a query, which says what figures are from."""
        return self.query(name)[1].row(0, named=True)

    def readable(self, name: str, **values: Value) -> pl.DataFrame:
        """Return the rows of a query; no rows and no columns if it cannot be read."""
        try:
            return self.query(name, **values)[1]
        except UsageError as error:
            self.note(f"{name}: {error}")
            return pl.DataFrame()

    def query(self, name: str, **values: Value) -> tuple[str, pl.DataFrame]:
        """Run ``queries/<name>.sql`` with each ``$parameter`` replaced by a value's literal.

        Returns the statement as run, which stands alone, and its rows. A statement runs once.

        Raises:
            UsageError: the snapshot lacks a view or column; publish it again.
        """
        sql = _PARAMETER.sub(lambda match: literal(values[match[1]]), _read_query(name))
        if sql not in self._results:
            self._results[sql] = pl.DataFrame(pl.from_arrow(read_whole(self.connection, sql)))
        return sql, self._results[sql]

    def formulas(self, sql: str) -> dict[str, str]:
        """Return what columns of the views that a query names are, as the snapshot describes them.

        A macro over a window (``headline_at``) has the columns of its view. Comments of the
        query say what its own columns are, as ``-- name: text [unit]``.
        """
        described: dict[str, str] = {}
        for name in reversed(re.findall(r"\w+", sql)):
            described |= self._descriptions.get(_ENDING.sub("", name), {})
        return described | {name: text.replace("\n--  ", "") for name, text in _OWN.findall(sql)}

    @cached_property
    def _descriptions(self) -> dict[Any, dict[str, str]]:
        parts = self.query("descriptions")[1].partition_by("name", as_dict=True, include_key=False)
        return {name: dict(rows.iter_rows()) for [name], rows in parts.items()}

    def part(self, name: str, key: str, value: str, **values: Value) -> tuple[str, pl.DataFrame]:
        """Return the rows of a query in which column ``key`` has a value, and their statement."""
        # The query runs once for all values, so that a page per model does not query per model.
        sql, whole = self.query(name, **values)
        if (sql, key) not in self._parts:
            parts = whole.partition_by(key, as_dict=True, maintain_order=True)
            self._parts[sql, key] = {str(found[0]): rows for found, rows in parts.items()}
        rows = self._parts[sql, key].get(value, whole.clear())
        return f"select *\nfrom (\n{sql.strip()}\n) as whole\nwhere {key} = {literal(value)}", rows

    @cached_property
    def monthly(self) -> pl.DataFrame:
        """Return ``monthly_loss`` of the protocol, measured months only."""
        return self.query("monthly", protocol=self.protocol)[1]

    @cached_property
    def models(self) -> dict[str, Row]:
        """Return the facts of each model with a figure, by name; controls come last."""
        rows = self.readable("models", protocol=self.protocol)
        if not rows.columns:  # an instrument's view fails
            rows = self.query("models_measured", protocol=self.protocol)[1]
        return {row["model"]: row for row in rows.to_dicts()}

    @cached_property
    def sources(self) -> list[str]:
        """Return the sources with measured months."""
        return sorted(self.monthly["source"].unique().to_list())

    @cached_property
    def simulated(self) -> list[str]:
        """Return the sources with simulated text or questions; empty on a site of real text."""
        rows = self.readable("simulated")
        return rows["source"].to_list() if rows.columns else []

    @property
    def unsimulated(self) -> list[str]:
        """Return the sources with measured months whose text is real."""
        return [source for source in self.sources if source not in self.simulated]

    @cached_property
    def window(self) -> tuple[Month, Month] | None:
        """Return first and last measured month, or None."""
        months: Sequence[dt.date] = self.monthly["month"].to_list()
        return (Month.of(min(months)), Month.of(max(months))) if months else None

    @cached_property
    def measured(self) -> dict[str, object]:
        """Return what all figures are from: protocol, half-open window, documents, last scoring."""
        collected = self.query("sources_board", protocol=self.protocol)[1]
        costs = self.readable("model_costs", protocol=self.protocol).to_dicts()
        times = [row["last_scored_at"] for row in costs if row["last_scored_at"]]
        window = self.window and [self.window[0].first_day, (self.window[1] + 1).first_day]
        return {
            "protocol": self.protocol,
            "window": window and [day.isoformat() for day in window],
            "num_documents": int(collected["num_documents"].sum()),
            "measured_at": max(times).isoformat(timespec="seconds") if times else None,
        }

    @cached_property
    def has_puzzles(self) -> bool:
        """Return True if a model has answered puzzles: their views compute for long without any."""
        facts = self.readable("puzzles_facts")
        return bool(facts.columns) and facts["num_answers"].item() > 0

    @cached_property
    def outcomes(self) -> str:
        """Return what became of the items that crawls found, for query ``collected``."""
        try:
            return read_outcomes(self.store, self.sources) if self.store else "[]"
        except StorageError as error:
            self.note(f"collected: {error}")
            return "[]"

    @property
    def num_months(self) -> int:
        """Return the number of different months with a figure."""
        return self.monthly["month"].n_unique()

    def model_page(self, name: str) -> str | None:
        """Return the address of a model's page, relative to the root; None if it has none."""
        return f"models/{slug(name)}.html" if name in self.models else None

    def source_page(self, name: str) -> str | None:
        """Return the address of a source's page, relative to the root; None if it has none."""
        return f"sources/{slug(name)}.html" if name in self.sources else None


def of_name(
    make: Callable[[Site, str], Figure | None], name: str
) -> Callable[[Site], Figure | None]:
    """Return the maker of a figure about one model or source."""
    return wraps(make)(lambda site: make(site, name))


def some(found: tuple[str, pl.DataFrame]) -> tuple[str, pl.DataFrame]:
    """Return a query and its rows; without rows, ``Site.make`` leaves the figure out."""
    if found[1].is_empty():
        raise pl.exceptions.NoRowsReturnedError(found[0])
    return found


_PARAMETER = re.compile(r"\$(\w+)")
_OWN = re.compile(r"^-- (\w+): (.+(?:\n--   .+)*)", re.MULTILINE)
_ENDING = re.compile(r"_at$")


@cache
def _read_query(name: str) -> str:
    """Return the text of a query of the site or of an extra."""
    ours = files("reports.site").joinpath("queries")
    for folder in (ours, *list_folders("queries")):
        file = folder.joinpath(f"{name}.sql")
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(f"no query {name}.sql in reports/site/queries or in an extra")


SEEN = "months that may have been seen in training, as a cutoff is unknown"


def months_of(basis: str) -> str:
    """Return in words which months a comparison is over, from column ``basis`` of the views."""
    if basis.startswith("after"):
        return f"months {basis}"
    if basis.startswith("cutoff unknown"):
        return SEEN
    return "all months" if basis == "never trained" else basis


def is_control(model: str) -> bool:
    """Return True if a model is a compressor, which has no cutoff."""
    return model.startswith("control:")
