"""The task that writes the site."""

from __future__ import annotations

from contextlib import suppress

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.errors import MalformedInput
from core.settings import Settings
from instruments.landing import read_left
from reports.site.build import find_current_site, write_site
from tasks.prefect import events
from tasks.prefect.artifacts import show_report
from tasks.prefect.observe import observe
from tasks.prefect.tracing import span
from warehouse.read.publish import is_current


@task(task_run_name="write the site", cache_policy=NO_CACHE, persist_result=False)
def write_report(settings: Settings) -> str:
    """Write the site from the published snapshot; return the address of its first page.

    A site that is newer than the snapshot stays.
    """
    observe()
    if current := find_current_site(settings):
        return current
    with span("page"):
        address = write_site(settings)
    events.reported(address)
    show_report(address, settings)
    return address


def find_finished_report(run: str, settings: Settings) -> str | None:
    """Return the site's address if the report of a run has nothing to land, publish or write."""
    with suppress(MalformedInput):  # the flow ``report`` reports it
        if not read_left(run, settings) and is_current(settings):
            return find_current_site(settings)
    return None
