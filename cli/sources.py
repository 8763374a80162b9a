"""Commands that crawl; docs/adr/0007-direct-commands.md states their use of Prefect."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import do_each, err, fail_with, out, print_table
from cli.terminal.options import (
    FirstMonth,
    GivenMonth,
    LastMonth,
    Sources,
    settings_for_tasks,
    settings_of,
    window,
)
from core.errors import UnknownName, UsageError
from core.month import Period
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:
    from core.corpus.partition import Seal

sources_app = typer.Typer(no_args_is_help=True, help="The sources of text.")


def crawl_command(
    context: typer.Context,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    limit: Annotated[
        int | None, Option(min=1, help="Sample about this many documents per month.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of the sample.")] = 0,
    replace: Annotated[
        bool, Option("--replace", help="Crawl sealed months again, and seal new versions.")
    ] = False,
    reparse: Annotated[
        bool, Option("--reparse", help="Seal new versions from cached responses.")
    ] = False,
) -> None:
    """Crawl months of sources into sealed Parquet partitions.

    Sealed months are skipped, but failed items of an incomplete month are requested again. Without
    --month, the last complete month is crawled.
    """
    from core.environment import prefect_server
    from crawlers.crawling.manifest import lack_of
    from instruments.planning import last_period, plan_crawl

    if replace and reparse:
        raise UsageError("--replace requests pages again, --reparse does not; give one of them")
    settings = settings_of(context)
    months = window(month, first, last) or [last_period(source)]
    plan = plan_crawl(source, months, settings)
    for lack in chain(plan.refused, *plan.lacks.values()):
        err.print(f"left out: {lack}", soft_wrap=True)
    crawl_one: Callable[..., Seal]
    if prefect_server():
        settings_for_tasks(context)
        from tasks.crawling import crawl as crawl_one
    else:
        from crawlers.crawling.crawl import crawl_partition

        crawl_one = partial(crawl_partition, store=Store(settings.home, settings.scratch))

    def crawl_month(name: str, each: Period) -> None:
        seal = crawl_one(
            name, each, settings=settings, limit=limit, seed=seed, replace=replace, reparse=reparse,
        )  # fmt: skip
        lack = f" (partial: {lack_of(seal)})" if seal.is_partial else ""
        line = f"{seal.partition}: {counted(seal.num_documents, 'document')}{lack}"
        out.print(line, soft_wrap=True)

    jobs = {f"{name} {each}": partial(crawl_month, name, each) for name, each in plan.partitions}
    fail_with(do_each("crawl", jobs))


@sources_app.command("list")
def sources_list(
    context: typer.Context,
    as_json: Annotated[bool, Option("--json", help="Print JSON, with all facts.")] = False,
) -> None:
    """List the sources: kind, status, lag, available months, the last sealed month.

    `tidemark sources show SOURCE` has licence, stand-in, sites and all sealed months.
    """
    from crawlers.crawling.source_list import list_source_facts

    facts = list_source_facts(settings_of(context))
    if as_json:
        out.print_json(json.dumps([asdict(each) for each in facts]))
        return
    rows = []
    for each in facts:
        lag = None if each.lag_days is None else f"{each.lag_days}d"
        months = each.first_month and f"{each.first_month}…{each.last_month or ''}"
        outcome = "" if each.last_outcome == "complete" else f" {each.last_outcome}"
        sealed = each.last_sealed and f"{each.last_sealed}{outcome}"
        rows.append((each.source, each.kind, each.status, lag, months, sealed))
    print_table("sources", ["source", "kind", "status", "lag", "months", "last sealed"], rows)


@sources_app.command("show")
def sources_show(
    context: typer.Context,
    source: Annotated[str, Argument(help="Name of a source.", metavar="SOURCE")],
) -> None:
    """Show all facts of a source: licence, what it stands in for, sites, sealed months."""
    from crawlers.crawling.source_list import list_source_facts

    facts = {each.source: each for each in list_source_facts(settings_of(context))}
    found = facts.get(source)
    if found is None:
        raise UnknownName("source", source, list(facts))
    rows = [(name.replace("_", " "), _shown(each)) for name, each in asdict(found).items()]
    print_table(source, ["fact", "value"], rows)


def _shown(value: object) -> object:
    """Return a list or mapping as one line of text, and other values unchanged."""
    if isinstance(value, dict):
        value = [f"{key}: {each}" for key, each in value.items()]
    return ", ".join(map(str, value)) or None if isinstance(value, list) else value


@sources_app.command("permit")
def permit_command(
    context: typer.Context,
    source: Annotated[str, Argument(help="One of `tidemark sources permits`.")],
    note: Annotated[
        str, Option(help="Who permitted what, and where the permission is.", metavar="TEXT")
    ],
    until: Annotated[
        str, Option(help="Last day on which a crawl may start (UTC).", metavar="YYYY-MM-DD")
    ],
) -> None:
    """Record the permission to crawl a source that may be crawled only with permission.

    The permission is stored in permissions/ of the data root, and in the manifest of each crawl. A
    later permission replaces an earlier one. To withdraw a permission, delete its file.
    """
    from core.corpus.permissions import record_permission

    reasons = _reasons()
    if source not in reasons:
        raise UnknownName("source", source, sorted(reasons))
    if reasons[source] is None:
        raise UsageError(f"{source} needs no permission; it is crawled as its robots.txt allows")
    permission = record_permission(Store(settings_of(context).home), source, note, until)
    out.print(f"{source}: permitted until {permission.until}: {permission.note}")


@sources_app.command("permits")
def permits_command(context: typer.Context) -> None:
    """List the sources that need a permission, with the reason and the recorded permission."""
    from core.corpus.permissions import read_permission

    store = Store(settings_of(context).home)
    rows: list[tuple[object, ...]] = []
    for source, why in sorted(_reasons().items()):
        if why is None:
            continue
        permission = read_permission(store, source)
        if permission is None:
            rows.append((source, "none recorded", None, None, None, why))
        else:
            state = "in force" if permission.is_in_force() else "over"
            recorded = permission.recorded_at.isoformat(timespec="seconds")
            rows.append((source, state, permission.until, permission.note, recorded, why))
    columns = ["source", "permission", "until", "note", "recorded", "needed because"]
    print_table("permissions", columns, rows)


def _reasons() -> dict[str, str | None]:
    """Return for each source why it needs a permission, or None if it needs no permission."""
    from crawlers.questions.contract import list_question_sources, load_question_crawler
    from crawlers.registry import list_all_sources, load_crawler

    infos = [load_crawler(name).INFO for name in list_all_sources()]
    infos += [load_question_crawler(name).INFO for name in list_question_sources()]
    return {info.name: info.permission for info in infos}
