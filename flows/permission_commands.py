"""`tidemark sources permit` and `permits`: who has allowed what to be crawled, and until when."""

from __future__ import annotations

from typing import Annotated

import typer

from core.errors import UnknownName, UsageError
from core.permissions import read_permission, record_permission
from core.storage import Store
from flows.console import out, print_table, visible
from flows.options import settings_of


def permit_command(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="See `tidemark sources permits`.")],
    note: Annotated[
        str, typer.Option(help="Who permitted what, and where it is written.", metavar="TEXT")
    ],
    until: Annotated[
        str, typer.Option(help="Last day on which a crawl may start (UTC).", metavar="YYYY-MM-DD")
    ],
) -> None:
    """Record a permission to crawl a source that is not crawled without one.

    It is kept under permissions/ of the data root, and in the manifest of all that is crawled by
    it. A later one takes its place; to withdraw it, delete its file.
    """
    reasons = _reasons()
    if source not in reasons:
        raise UnknownName("source", source, sorted(reasons))
    if reasons[source] is None:
        raise UsageError(f"{source} needs no permission; it is crawled as its robots.txt allows")
    permission = record_permission(Store(settings_of(context).home), source, note, until)
    out.print(visible(f"{source}: permitted until {permission.until}: {permission.note}"))


def permits_command(context: typer.Context) -> None:
    """List the sources that need a permission: why, what is recorded, and until when it holds."""
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
    """Why each source needs a permission, None for those that need none."""
    from crawlers.contract import list_sources, load_crawler
    from crawlers.questions.contract import list_question_sources, load_question_crawler

    infos = [load_crawler(name).INFO for name in list_sources()]
    infos += [load_question_crawler(name).INFO for name in list_question_sources()]
    return {info.name: info.permission for info in infos}
