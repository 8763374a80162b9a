"""Queries and findings of the page of published rates."""

from pathlib import Path
from typing import Any

import duckdb

from extras.imported_results import findings

QUERY = Path(findings.__file__).parent / "queries" / "published_rates.sql"


def test_models_without_families_have_colours() -> None:
    with duckdb.connect() as database:
        database.execute(
            "create table models as select 'm' || i as model, null as family, null as cutoff, "
            "null as cutoff_provenance from range(10) as t(i)"
        )
        database.execute(
            "create table monthly_loss as select model, 's' as source, 'published' as protocol, "
            "true as is_text, date '2020-01-01' + to_months(k::int) as month, "
            "1 + 0.01 * k * right(model, 1)::int as compression_rate from models, range(24) as u(k)"
        )
        rows = database.sql(QUERY.read_text(encoding="utf-8")).pl()
    last = rows.filter("is_named").sort("relative", descending=True)
    assert last["model"].to_list() == [f"m{number}" for number in range(9, -1, -1)]
    assert last["place"].to_list() == [*range(1, 9), None, None]


def test_findings_count_and_claim_no_effect() -> None:
    rows: list[dict[str, Any]] = [
        {"model": f"m-{size}", "family": "m", "parameters": size, "change": change}
        for size, change in ((1, 0.1), (7, 0.3), (70, 0.2))
    ]
    title = findings.growth_finding([*rows, {**rows[0], "family": None}])
    assert title == "The larger of two sizes of a family lost more on newer text in 1 of 2 pairs"
    printed = [*rows, {"model": "Gzip", "change": 0.5}]
    told = "Li et al. print worse rates for 2023 in 3 of 3 cases of 3 models"
    assert findings.printed_rates_finding(printed) == told
    assert findings.growth_finding(rows[:1]) == "Rates of 1 model, as published"
    rows.append({"model": "control:zlib", "change": -0.1})
    title = findings.published_gaps_finding(rows, "2022", 2023)
    assert title.endswith("for 2023 than for 2022; so have 0 of 1 compressors")
