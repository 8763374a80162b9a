"""Commands `xray` and `min-k`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from cli.terminal.console import err, out, print_rows
from cli.terminal.options import settings_of
from core.errors import UsageError
from core.storage.store import Store


def xray_command(
    context: Context,
    document: Annotated[list[str], Option(help="SOURCE/YYYY-MM/ID; repeat for several.")],
    model: Annotated[list[str], Option("--model", "-m", help="Language model; give two.")],
    protocol: Annotated[str | None, Option(help="Default: TIDEMARK_PROTOCOL.")] = None,
    with_min_k: Annotated[bool, Option("--min-k", help="Run the models for Min-K%++.")] = False,
    output: Annotated[Path, Option("--out", help="Folder to write to.")] = Path("tidemark-xray"),
) -> None:
    """Compare two models on chosen documents, token by token.

    A Parquet table and a page per document are written. Tokens are aligned where both tokenizers
    have a boundary. Columns: extras/xray/README.md.
    """
    settings = settings_of(context)
    from extras.xray.tracing import write_xrays

    name = protocol or settings.protocol
    for found in write_xrays(settings, document, model, name, with_min_k, output):
        for each in found.view.models:
            figures = [f"{each.num_tokens:,} tokens", f"{each.nats:.3f} nats"]
            scores = each.scores.items()
            figures += [f"{name} {score:.3f}" for name, score in scores if score is not None]
            out.print(f"{each.name}: {', '.join(figures)}", soft_wrap=True)
        out.print(f"page {output / found.page}", soft_wrap=True)
        if not found.view.is_open:
            licence = found.view.facts["licence"]
            says = f"warning: its licence {licence!r} is not known as open: do not publish"
            err.print(f"{says} the page", soft_wrap=True)


def min_k_command(
    context: Context,
    source: Annotated[list[str], Option(help="Source of a benchmark's texts; repeat for more.")],
    against: Annotated[
        str | None, Option(help="Source of like texts that no model has seen.", metavar="SOURCE")
    ] = None,
    model: Annotated[
        list[str] | None, Option("--model", "-m", help="Language model; default: all.")
    ] = None,
) -> None:
    """Print Min-20% of a benchmark's texts by model.

    A model that knows the benchmark better than others do stands first. Import the texts with an
    open licence, and score them with TIDEMARK_KEPT_DOCUMENTS at the number of texts.
    """
    settings = settings_of(context)
    from extras.xray.benchmark_texts import compare_sources

    found = compare_sources(Store(settings.home), source, against, model or [])
    if not found:
        raise UsageError("the named models have no kept losses of these sources")
    print_rows("Min-20% in nats; near 0: likely seen", found)


COMMANDS = {"Ask": {"xray": xray_command, "min-k": min_k_command}}
