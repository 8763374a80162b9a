"""The task that writes the site."""

from __future__ import annotations

import logging
from pathlib import Path
from urllib.parse import quote

from prefect import task
from prefect.artifacts import create_link_artifact
from prefect.cache_policies import NO_CACHE

from core.environment import prefect_server
from core.settings import Settings
from reports.site.build import find_current_site, write_site
from tasks.prefect import events
from tasks.prefect.observe import observe

_log = logging.getLogger(__name__)


@task(task_run_name="write the site", cache_policy=NO_CACHE, persist_result=False)
def write_report(settings: Settings) -> str:
    """Write the site from the published snapshot; return the address of its first page.

    A site that is newer than the snapshot stays.
    """
    observe()
    current = find_current_site(settings)
    if current:
        return current
    address = write_site(settings)
    events.reported(address)
    if prefect_server():
        show_link(address, settings)
    return address


def show_link(address: str, settings: Settings) -> None:
    """Show a link to the site on the server: the setting ``report_url``, or else the address.

    A failure is only logged.
    """
    link = settings.report_url or (address if "://" in address else Path(address).as_uri())
    # Percent-encode characters that could end the brackets of the link or begin markup.
    safe = quote(link, safe="!#$%&'*+,/:;=?@^{|}", errors="replace")
    try:
        create_link_artifact(safe, "the site", key="tidemark-report", description="The report.")
    except Exception as error:  # noqa: BLE001 - Prefect's and httpx's are no family
        _log.warning("the link to the report is not shown on the Prefect server: %s", error)
