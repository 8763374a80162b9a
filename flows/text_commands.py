"""`tidemark compare-texts`: how different the months' texts are."""

from __future__ import annotations

from typing import Annotated

import typer

from core.storage import Store
from core.text_difference import Against
from flows.console import out, progress_bars
from flows.options import FirstMonth, LastMonth, Sources, settings_of, window


def compare_texts_command(
    context: typer.Context,
    source: Sources = None,
    month: FirstMonth = None,
    to: LastMonth = None,
    against: Annotated[
        Against | None, typer.Option(help="Only the first, or only the previous month.")
    ] = None,
) -> None:
    """Compare the text of sealed months with the month before and with the source's first.

    The differences land for view text_difference. What is compared already is skipped.
    """
    from warehouse.publish import publish
    from warehouse.text_comparisons import compare_texts, plan_comparisons

    settings = settings_of(context)
    plan = plan_comparisons(
        Store(settings.home),
        source,
        window(month, to),
        [against] if against else list(Against),
        settings.corpus_as_of,
    )
    with progress_bars():
        made = compare_texts(plan, settings)
    publish(settings)
    out.print(f"{made} of {len(plan)} comparisons made, {len(plan) - made} were landed already")
