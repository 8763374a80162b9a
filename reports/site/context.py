"""What the pages share: one connection to the snapshot, its models, sources, window and facts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import duckdb
import polars as pl

from core.month import Month
from reports.site.figure import Value, literal, slug
from warehouse.read.query import run_statement


@dataclass(frozen=True)
class Facts:
    """Facts that every page states."""

    commit: str  # version of tidemark, and commit
    snapshot_sha256: str
    release: str  # newest release of the figures (YYYY-MM); empty if there is none
    built_at: dt.datetime  # when the site was made, UTC


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
    _results: dict[str, pl.DataFrame] = field(default_factory=dict)  # by statement
    _parts: dict[tuple[str, str], dict[str, pl.DataFrame]] = field(default_factory=dict)

    def query(self, name: str, **values: Value) -> tuple[str, pl.DataFrame]:
        """Run ``queries/<name>.sql`` with each ``$parameter`` replaced by a value's literal.

        Returns the statement as run, which stands alone, and its rows. A statement runs once.

        Raises:
            UsageError: the snapshot lacks a view or column; publish it again.
        """
        sql = _PARAMETER.sub(lambda match: literal(values[match[1]]), _read_query(name))
        if sql not in self._results:
            reader = run_statement(self.connection, sql)
            self._results[sql] = pl.DataFrame(pl.from_arrow(reader.read_all()))
        return sql, self._results[sql]

    def part(self, name: str, key: str, value: str, **values: Value) -> tuple[str, pl.DataFrame]:
        """Return the rows of a query in which column ``key`` has a value, and their statement.

        The query runs once for all values, so that a page per model does not query per model.
        """
        sql, whole = self.query(name, **values)
        if (name, key) not in self._parts:
            parts = whole.partition_by(key, as_dict=True, maintain_order=True)
            self._parts[name, key] = {str(found[0]): rows for found, rows in parts.items()}
        rows = self._parts[name, key].get(value, whole.clear())
        return f"select *\nfrom (\n{sql.strip()}\n) as whole\nwhere {key} = {literal(value)}", rows

    @cached_property
    def monthly(self) -> pl.DataFrame:
        """Return ``monthly_loss`` of the protocol, measured months only."""
        return self.query("monthly", protocol=self.protocol)[1]

    @cached_property
    def models(self) -> dict[str, dict[str, Any]]:
        """Return the facts of each model with a figure, by name; controls come last."""
        rows = self.query("models", protocol=self.protocol)[1].to_dicts()
        return {row["model"]: row for row in rows}

    @cached_property
    def sources(self) -> list[str]:
        """Return the sources with measured months."""
        return sorted(self.monthly["source"].unique().to_list())

    @cached_property
    def window(self) -> tuple[Month, Month] | None:
        """Return first and last measured month, or None."""
        months: Sequence[dt.date] = self.monthly["month"].to_list()
        return (Month.of(min(months)), Month.of(max(months))) if months else None

    def model_page(self, name: str) -> str | None:
        """Return the address of a model's page, relative to the root; None if it has none."""
        return f"models/{slug(name)}.html" if name in self.models else None

    def source_page(self, name: str) -> str | None:
        """Return the address of a source's page, relative to the root; None if it has none."""
        return f"sources/{slug(name)}.html" if name in self.sources else None


_PARAMETER = re.compile(r"\$(\w+)")


@cache
def _read_query(name: str) -> str:
    return files("reports.site").joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")


def is_control(model: str) -> bool:
    """Return True if a model is a compressor, which has no cutoff."""
    return model.startswith("control:")
