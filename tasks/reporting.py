"""The task that writes the site."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.settings import Settings
from reports.site.build import find_current_site, write_site
from tasks.prefect.observe import observe
from tasks.prefect.telling import tell


@task(task_run_name="write the site", cache_policy=NO_CACHE, persist_result=False)
def write_report(settings: Settings) -> str:
    """Write the site unless it shows the published snapshot; return the address of its page."""
    observe()
    current = find_current_site(settings)
    if current is not None:
        return current
    address = write_site(settings)
    tell("reported", address, settings)
    return address
