"""`tidemark crawl`: months of sources as sealed partitions, without Prefect (docs/adr/0007)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from core import progress
from core.corpus import Seal
from core.errors import TidemarkError, UsageError
from core.month import Month
from core.settings import prefect_server
from core.storage import Store
from flows.console import err, fail_with, out, progress_bars, visible
from flows.options import FirstMonth, LastMonth, Sources, settings_for_tasks, settings_of, window


def crawl_command(
    context: typer.Context,
    source: Sources = None,
    month: FirstMonth = None,
    to: LastMonth = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Keep about this many documents a month, sampled.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample; recorded.")] = 0,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Crawl sealed months anew, as next versions."),
    ] = False,
    reparse: Annotated[
        bool, typer.Option("--reparse", help="Seal next versions from the raw cache.")
    ] = False,
) -> None:
    """Crawl months of sources into sealed Parquet partitions.

    A month that is sealed already is left alone, unless it is partial: then what failed is asked
    for again. Without --month: the last complete month.
    """
    from crawlers.manifest import lack_of
    from tasks.planning import find_refused, plan_crawl

    if replace and reparse:
        raise UsageError("--replace asks the sites, --reparse does not; give one of them")
    settings = settings_of(context)
    refused = find_refused(source, settings)
    months = window(month, to) or [Month.last_complete()]
    partitions, lacks = plan_crawl(source, months, refused)
    for lack in [*refused.values(), *lacks]:
        err.print(f"left out: {lack}", soft_wrap=True)
    crawl_one: Callable[..., Seal]
    if prefect_server():
        settings_for_tasks(context)
        from tasks.crawling import crawl as crawl_one
    else:
        from crawlers.crawl import crawl_partition as crawl_one
    failures = []
    with progress_bars():
        for number, (name, each) in enumerate(partitions, start=1):
            try:
                seal = crawl_one(
                    name, each, Store(settings.home, settings.scratch), settings,
                    limit=limit, seed=seed, replace=replace, reparse=reparse,
                )  # fmt: skip
                lack = f" (partial: {lack_of(seal)})" if seal.is_partial else ""
                out.print(
                    visible(f"{seal.partition}: {seal.num_documents} documents{lack}"),
                    soft_wrap=True,
                )
            except UsageError:
                raise
            except TidemarkError as error:
                failures.append(f"{name} {each}: {error}")
            progress.report("crawl", number, len(partitions))
    fail_with(failures)
