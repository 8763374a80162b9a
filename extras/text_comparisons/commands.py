"""Commands `corpus diff` and `corpus compare`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Context, Option

from cli.corpus import Row, SourceArgument
from cli.terminal.console import out, print_table, progress_bars
from cli.terminal.options import FirstMonth, GivenMonth, LastMonth, Sources, settings_of, window
from cli.terminal.registry import FormerOption
from core import progress
from core.errors import UsageError
from core.month import Period
from core.storage.store import Store

if TYPE_CHECKING:
    from core.corpus.partition import Seal


def diff_command(
    context: Context,
    source: SourceArgument,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    versions: Annotated[
        bool, Option("--versions", help="Compare each version with the previous version.")
    ] = False,
) -> None:
    """Print how much the text of each month differs from the previous and the first month.

    The difference is 1 - similarity, as in appendix B of Li et al. 2024. This command only prints
    differences; `tidemark corpus compare` stores them. --versions compares versions of a month.
    """
    settings = settings_of(context)
    store = Store(settings.home)
    months = window(month, first, last)
    with progress_bars():
        if versions:
            rows = diff_versions(store, source, months)
        else:
            rows = diff_months(store, source, months, settings.corpus_as_of)
    columns = ["month", "against", "method", "documents", "bytes", "difference"]
    print_table(f"{source}: 1 - similarity", columns, rows)


def compare_texts_command(
    context: Context,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    against: Annotated[
        Literal["first", "previous"] | None,
        Option(help="Compare only with this month. Default: with both."),
    ] = None,
) -> None:
    """Compare the text of months with earlier ones, and publish.

    Each sealed month is compared with the previous and the first month of its source. View
    text_difference shows the stored differences. Stored comparisons are not repeated.
    """
    from extras.text_comparisons.comparing import compare_texts, plan_comparisons
    from extras.text_comparisons.difference import Against
    from warehouse.read.publish import publish

    settings = settings_of(context)
    plan = plan_comparisons(
        Store(settings.home),
        source,
        window(month, first, last),
        [Against(against)] if against else list(Against),
        settings.corpus_as_of,
    )
    with progress_bars():
        made = compare_texts(plan, settings)
    publish(settings)
    out.print(f"{made} of {len(plan)} comparisons made, {len(plan) - made} were landed already")


def diff_months(
    store: Store, source: str, months: Sequence[Period] | None, as_of: dt.datetime | None
) -> list[Row]:
    """Return rows that compare each month with the previous and the first month."""
    from extras.text_comparisons.comparing import plan_comparisons

    plan = plan_comparisons(store, [source], months, as_of=as_of)
    pairs = [(each.earlier, each.later) for each in plan]
    if not pairs:
        raise UsageError(f"{source} has no two months to compare; crawl or import more of it")
    return _compare(
        store, [(str(b.partition.month), str(a.partition.month), a, b) for a, b in pairs]
    )


def diff_versions(store: Store, source: str, months: Sequence[Period] | None) -> list[Row]:
    """Return rows that compare each version of the months with the previous version."""
    from core.corpus.partition import list_sealed, list_versions

    jobs = []
    for newest in list_sealed(store, source):
        if months is not None and newest.partition.month not in months:
            continue
        versions = [seal for seal in list_versions(store, newest.partition) if seal.is_text]
        for before, after in zip(versions, versions[1:], strict=False):
            name = f"{newest.partition.month or 'undated'} version {after.version}"
            jobs.append((name, f"version {before.version}", before, after))
    if not jobs:
        raise UsageError(f"no month of {source} has two versions to compare")
    return _compare(store, jobs)


def _compare(store: Store, jobs: Sequence[tuple[str, str, Seal, Seal]]) -> list[Row]:
    """Compare the texts of each pair of months; return the rows of the table."""
    from extras.text_comparisons.difference import measure_difference

    rows: list[Row] = []
    for number, (name, other, earlier, later) in enumerate(jobs, start=1):
        found = measure_difference(store, earlier, later)
        value = found.reason if found.difference is None else f"{found.difference:.4f}"
        rows.append((name, other, found.method, found.num_documents, found.num_bytes, value))
        progress.report("compare texts", number, len(jobs))
    return rows


COMMANDS = {"Collect text": {"corpus diff": diff_command, "corpus compare": compare_texts_command}}
FORMER = {"compare-texts": "corpus compare"}
FORMER_OPTIONS = (
    FormerOption("--month", "--from", frozenset({"corpus compare", "corpus diff"}), beside="--to"),
)
