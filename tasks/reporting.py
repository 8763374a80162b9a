"""Tasks that write the pages of the report."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.settings import Settings
from reports.forecasts import write_forecasts as write_forecasts_page
from reports.page import write_report as write_page
from reports.puzzles import write_puzzles as write_puzzles_page
from tasks.prefect import events
from tasks.prefect.artifacts import show_report
from tasks.prefect.observe import observe
from tasks.prefect.tracing import span


@task(cache_policy=NO_CACHE, persist_result=False)
def write_report(settings: Settings) -> str:
    """Write the report page from the published snapshot; return its address."""
    observe()
    with span("page"):
        address = write_page(settings)
    events.reported(address)
    show_report(address, settings)
    return address


@task(cache_policy=NO_CACHE, persist_result=False)
def write_forecasts(settings: Settings) -> str:
    """Write the report page of forecasts from the published snapshot; return its address."""
    observe()
    with span("forecasts"):
        return write_forecasts_page(settings)


@task(cache_policy=NO_CACHE, persist_result=False)
def write_puzzles(settings: Settings) -> str:
    """Write the report page of puzzles from the published snapshot; return its address."""
    observe()
    with span("puzzles"):
        return write_puzzles_page(settings)
