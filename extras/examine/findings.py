"""The figures of an examination, read from the published views of its sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.settings import Settings
from extras.examine.budget import PROTOCOL
from warehouse.read.query import query

Row = Mapping[str, Any]

# One row each, or none. A view that has no row of the model has a reason in `unmeasured`.
_ONE_ROW = {
    "cutoff": """
        select e.*, case when t.is_found then t.jump end as jump_bits_per_byte
        from estimated_cutoff as e
        inner join internal.cutoff_tests as t
            on e.model = t.model and e.protocol = t.protocol and t.source is null
        where e.model = $model and e.protocol = $protocol and e.scope = 'all'
    """,
    "gap": """
        from train_test_gap where model = $model and protocol = $protocol and scope = 'all'
    """,
    "adjusted_gap": """
        from control_adjusted_gap
        where model = $model and protocol = $protocol and scope = 'all'
    """,
    "ageing": "from ageing where model = $model and protocol = $protocol and source is null",
    "cost": "from run_costs where model = $model and protocol = $protocol",
}
_MANY_ROWS = {
    "cutoff_by_source": """
        from estimated_cutoff
        where model = $model and protocol = $protocol and scope = 'source'
        order by source
    """,
    "level": """
        select model, bits_per_byte, bits_per_byte_low, bits_per_byte_high, basis, rank, reason
        from headline order by bits_per_byte
    """,
    "unmeasured": """
        select source, month, left_out_of, reason from unmeasured
        where model = $model and protocol = $protocol order by all
    """,
}


@dataclass(frozen=True)
class Findings:
    """The rows of the views about one model; a figure without a row is None."""

    cutoff: Row | None
    gap: Row | None
    adjusted_gap: Row | None
    ageing: Row | None
    cost: Row | None
    cutoff_by_source: list[Row] = field(default_factory=list)
    level: list[Row] = field(default_factory=list)
    unmeasured: list[Row] = field(default_factory=list)
    simulated: list[str] = field(default_factory=list)  # sources whose texts a program made up

    def reason(self, view: str) -> str | None:
        """Return why a view has no figure of the model over all sources, or no interval."""
        reasons = [
            str(row["reason"])
            for row in self.unmeasured
            if row["left_out_of"] == view and row["source"] is None
        ]
        return "; ".join(dict.fromkeys(reasons)) or None


def read_findings(model: str, settings: Settings) -> Findings:
    """Read the figures of a model from the snapshot of the sample's data root."""
    parameters = {"model": model, "protocol": PROTOCOL}

    def rows(sql: str) -> list[Row]:
        used = {name: value for name, value in parameters.items() if f"${name}" in sql}
        return list(query(settings, sql, used).to_pylist())

    ones: dict[str, Any] = {name: next(iter(rows(sql)), None) for name, sql in _ONE_ROW.items()}
    many: dict[str, Any] = {name: rows(sql) for name, sql in _MANY_ROWS.items()}
    simulated = [str(row["source"]) for row in rows("from simulated_sources order by source")]
    return Findings(**ones, **many, simulated=simulated)
