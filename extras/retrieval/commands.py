"""Commands `forecast retrieve` and `forecast effect`."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from typer import Context, Option

from cli.terminal.console import err, out, print_rows
from cli.terminal.options import FirstMonth, GivenMonth, LastMonth, month_window, settings_for_tasks
from core.errors import UsageError
from core.progress import counted
from core.storage.store import Store


def retrieve_command(
    context: Context,
    source: Annotated[
        str, Option("--source", "-s", help="Source of the questions.", metavar="NAME")
    ],
    text: Annotated[
        list[str] | None,
        Option("--text", help="Source of text to search; default: all.", metavar="NAME"),
    ] = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    number: Annotated[
        int, Option("--passages", help="Passages for a question, at most.", min=1, max=20)
    ] = 3,
    replace: Annotated[
        bool, Option("--replace", help="Replace questions that are sealed with other passages.")
    ] = False,
) -> None:
    """Give sealed questions the passages that were known before each question opened.

    They are sealed as the source NAME:documents, which `tidemark forecast answer` asks next to
    NAME. Passages come from openly licensed texts of the sealed corpus, by BM25.
    """
    settings = settings_for_tasks(context)
    from extras.retrieval.retrieving import retrieve

    months = month_window(month, first, last) or []
    store = Store(settings.home, settings.scratch)
    found, left_out = retrieve(store, source, months, text or [], number, replace)
    for reason, count in left_out.most_common():
        err.print(f"left out: {counted(count, 'document')} {reason}", soft_wrap=True)
    for each in found:
        lack = f", {each.num_without:,} without a passage" if each.num_without else ""
        out.print(f"{each.seal}: {counted(each.seal.num_questions, 'question')}{lack}",
                  soft_wrap=True)  # fmt: skip
    if not found:
        out.print("no passage was found for any question")


def effect_command(context: Context) -> None:
    """Compare accuracy with and without documents, on questions after each model's cutoff."""
    settings = settings_for_tasks(context)
    from warehouse.read.query import query

    found = query(settings, statement()).to_pylist()
    if not found:
        raise UsageError(
            "no model of known cutoff has answered a source of questions with and without documents"
            "; see `tidemark forecast retrieve`, then `tidemark forecast answer`"
        )
    print_rows("accuracy with documents, less without", found)


def statement() -> str:
    """Return the SQL of the comparison."""
    return files("extras.retrieval").joinpath("effect.sql").read_text(encoding="utf-8")


COMMANDS = {
    "Other instruments": {
        "forecast retrieve": retrieve_command,
        "forecast effect": effect_command,
    },
}
