"""Command `xray`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from cli.terminal.console import err, out
from cli.terminal.options import settings_of


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


COMMANDS = {"Ask": {"xray": xray_command}}
