"""`tidemark take-over`: the warehouse is written from here, where its former place is lost."""

from __future__ import annotations

import typer

from flows.console import out, visible
from flows.options import settings_of


def take_over_command(context: typer.Context) -> None:
    """Write the warehouse from this machine from now on; the one that did until now is refused.

    For when that machine's scratch folder is lost. It begins with what is published; what was
    scored since lands when it is asked for again (`tidemark score`, `tidemark run`).
    """
    from warehouse.writer import take_over

    settings = settings_of(context)
    is_new = take_over(settings)
    what = "is written from here now" if is_new else "has been written from here before"
    out.print(visible(f"the warehouse of {settings.home} {what}"), soft_wrap=True)
