"""`tidemark compress`, `decompress` and `verify-losses`: losses as real code lengths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import MalformedInput, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from flows.console import fail_with, out, print_table, progress_bars, visible
from flows.options import (
    FirstMonth,
    LastMonth,
    ModelNames,
    Sources,
    settings_for_tasks,
    settings_of,
    window,
)

if TYPE_CHECKING:  # torch takes seconds to import
    from models.codec import Compressed

Source = Annotated[Path, typer.Argument(metavar="IN", help="File to read.", show_default=False)]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="File to write.", show_default=False)]


def compress_command(
    context: typer.Context,
    source: Source,
    target: Target,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Catalogue name, hub id or model folder.")
    ],
) -> None:
    """Compress a text with a language model's probabilities.

    IN is any UTF-8 text. The file is as long as the model's loss on it, and can be decompressed
    with the same model on the same kind of machine with the same libraries.
    """
    raw = _read(source, target)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise MalformedInput(
            f"{source} is not UTF-8 text (byte {error.start} is 0x{raw[error.start]:02x}); only "
            "texts can be compressed with a language model"
        ) from error
    from models.catalogue import find_model
    from models.codec import compress

    settings = settings_of(context)
    entry = find_model(model, settings)
    with progress_bars():
        coded = compress(text, entry, settings)
    _write(target, coded.data)
    out.print(visible(f"{target}: {_sizes(coded, len(raw))}"), soft_wrap=True)


def decompress_command(
    context: typer.Context,
    source: Source,
    target: Target,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Where the model is now. Default: where it was; its files must be the same.",
        ),
    ] = None,
) -> None:
    """Restore a text that `tidemark compress` compressed, or say why that cannot be done."""
    coded = _read(source, target)
    from models.codec import decompress

    with progress_bars():
        raw = decompress(coded, settings_of(context), model, str(source))
    _write(target, raw)
    out.print(visible(f"{target}: {len(raw):,} bytes"), soft_wrap=True)


def verify_losses_command(
    context: typer.Context,
    model: ModelNames = None,
    source: Sources = None,
    month: FirstMonth = None,
    to: LastMonth = None,
    sample: Annotated[int, typer.Option(min=1, help="Chunks of each model.")] = 16,
) -> None:
    """Code a sample of scored chunks and check that their sizes agree with their losses.

    The same chunks each time, of the cells under the default protocol. Each is decoded again.
    """
    from models.catalogue import find_model

    settings = settings_for_tasks(context)
    names = model or list(settings.models)
    for name in names:
        find_model(name, settings)  # a misspelt one is found before another is coded for long
    failures = []
    for name in names:
        with progress_bars():
            failures += _verify(name, source, window(month, to), sample, settings)
    fail_with(failures)


def _verify(
    name: str,
    sources: list[str] | None,
    months: list[Month] | None,
    num_chunks: int,
    settings: Settings,
) -> list[str]:
    """Print what a model's chunks are like; return what disagrees."""
    from models.catalogue import find_model
    from models.codec import CODED_KINDS
    from models.codec_check import check_losses
    from models.codec_text import PROTOCOL
    from tasks.scoring import plan_scoring

    entry = find_model(name, settings)
    if entry.kind not in CODED_KINDS:
        what = "its loss is a code length already" if entry.kind == "control" else "it has no codec"
        out.print(f"{entry.name}: skipped, {what}")
        return []
    cells = plan_scoring(name, [PROTOCOL], sources, months, settings).done
    if not cells:
        raise UsageError(
            f"nothing is scored with {entry.name} under protocol {PROTOCOL} of what was asked "
            f"for; run `tidemark score --model {name}` first"
        )
    verdicts = check_losses(cells, entry, settings, num_chunks)
    if not verdicts:
        raise UsageError(f"no chunk of text was measured with {entry.name}, so none can be coded")
    rows = []
    for chunk, coded, problem, note in verdicts:
        ratio = f"{coded / chunk.predicted_bytes:.4f}" if coded and chunk.predicted_bytes else None
        where = f"{chunk.cell.partition} {chunk.document_id} {chunk.chunk_index}"
        result = problem or note or "ok"
        rows.append((where, f"{chunk.predicted_bytes:.1f}", coded, ratio, result))
    columns = ["chunk", "predicted bytes", "coded bytes", "ratio", "result"]
    print_table(f"{entry.name}: codes and landed losses", columns, rows)
    return [
        f"{entry.name}, chunk {row[0]}: {v.problem}"
        for row, v in zip(rows, verdicts, strict=True)
        if v.problem
    ]


def _sizes(coded: Compressed, num_bytes: int) -> str:
    """Say what a compressed text's size is made of."""
    size = len(coded.data)
    chunks = "1 chunk" if coded.num_chunks == 1 else f"{coded.num_chunks:,} chunks"
    return (
        f"{size:,} bytes of {num_bytes:,} ({chunks}: {coded.predicted_bytes:,.1f} predicted, "
        f"{coded.coded_bytes:,} coded; {size - coded.coded_bytes:,} of header)"
    )


def _read(source: Path, target: Path) -> bytes:
    """Read the one file, having made sure that the other can be written."""
    if target.exists() and not target.is_file():
        raise UsageError(f"{target} is no file; give a name to write to")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.absolute().parent} is no folder; make it first")
    if target.exists() and source.exists() and target.samefile(source):
        raise UsageError(f"{source} would be written over; give another name to write to")
    try:
        return source.read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from error


def _write(target: Path, data: bytes) -> None:
    """Write a file whole, or leave what is there."""
    path = target.absolute()
    Store(str(path.parent)).write_bytes(path.name, data)
