"""Commands `compress`, `decompress` and `check losses`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from cli.terminal.console import fail_with, out, print_table, progress_bars
from cli.terminal.options import (
    FirstMonth,
    GivenMonth,
    LastMonth,
    ModelNames,
    Sources,
    settings_for_tasks,
    settings_of,
    window,
)
from cli.terminal.registry import FormerOption
from core.errors import MalformedInput, UsageError
from core.month import Period
from core.storage.store import Store

if TYPE_CHECKING:  # importing torch takes seconds
    from core.settings import Settings
    from extras.codec.coding import Compressed

Source = Annotated[Path, Argument(metavar="IN", help="File to read.", show_default=False)]
Target = Annotated[Path, Argument(metavar="OUT", help="File to write.", show_default=False)]


def compress_command(
    context: Context,
    source: Source,
    target: Target,
    model: Annotated[str, Option("--model", "-m", help="Catalogue name, hub id or model folder.")],
) -> None:
    """Compress a text with a language model's probabilities.

    IN is a UTF-8 text. The size of OUT is about the model's loss on the text. To decompress OUT,
    use the same model on the same kind of machine with the same libraries.
    """
    raw = _read(source, target)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise MalformedInput(
            f"{source} is not UTF-8 text (byte {error.start} is 0x{raw[error.start]:02x}); only "
            "texts can be compressed with a language model"
        ) from error
    from extras.codec.coding import compress
    from models.catalogue import find_model

    settings = settings_of(context)
    entry = find_model(model, settings)
    with progress_bars():
        coded = compress(text, entry, settings)
    _write(target, coded.data)
    out.print(f"{target}: {_sizes(coded, len(raw))}", soft_wrap=True)


def decompress_command(
    context: Context,
    source: Source,
    target: Target,
    model: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            help="Present name or folder of the model, if it has moved; with unchanged files.",
        ),
    ] = None,
) -> None:
    """Restore a text that `tidemark compress` compressed."""
    coded = _read(source, target)
    from extras.codec.coding import decompress

    with progress_bars():
        raw = decompress(coded, settings_of(context), model, str(source))
    _write(target, raw)
    out.print(f"{target}: {len(raw):,} bytes", soft_wrap=True)


def verify_losses_command(
    context: Context,
    model: ModelNames = None,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    sample: Annotated[int, Option(min=1, help="Number of chunks per model.")] = 16,
) -> None:
    """Compress a sample of chunks; compare sizes with losses.

    Each chunk is also decompressed. All calls take the same sample, of the default protocol.
    """
    from core.corpus.selection import require_sealed
    from models.catalogue import find_model
    from models.choice import chosen_models

    settings = settings_for_tasks(context)
    if source:
        require_sealed(Store(settings.home), source, window(month, first, last))
    names = model or list(chosen_models(settings))
    for name in names:
        find_model(name, settings)  # fails early if a name is misspelt
    failures = []
    for name in names:
        with progress_bars():
            failures += _verify(name, source, window(month, first, last), sample, settings)
    fail_with(failures)


def _verify(
    name: str,
    sources: list[str] | None,
    months: list[Period] | None,
    num_chunks: int,
    settings: Settings,
) -> list[str]:
    """Check codes against the landed losses of one model; return the problems."""
    from extras.codec.check import check_losses
    from extras.codec.file import PROTOCOL
    from instruments.losses import plan_scoring
    from models.catalogue import find_model

    entry = find_model(name, settings)
    if not entry.backend.codes:
        is_code = entry.backend.is_control
        what = "its loss is a code length already" if is_code else "it has no codec"
        out.print(f"{entry.name}: skipped, {what}")
        return []
    plan = plan_scoring(name, [PROTOCOL], sources, months, settings)
    cells = sorted(set(plan.cells) - set(plan.pending))
    if not cells:
        raise UsageError(
            f"nothing is scored with {entry.name} under protocol {PROTOCOL} of what was asked "
            f"for; run `tidemark score --model {name}` first"
        )
    verdicts = check_losses(cells, entry, settings, num_chunks)
    if not verdicts:
        raise UsageError(f"no chunk of text was measured with {entry.name}, so none can be coded")
    rows = []
    problems = []
    for chunk, coded, problem, note in verdicts:
        ratio = f"{coded / chunk.predicted_bytes:.4f}" if coded and chunk.predicted_bytes else None
        where = f"{chunk.cell.partition} {chunk.document_id} {chunk.chunk_index}"
        rows.append((where, f"{chunk.predicted_bytes:.1f}", coded, ratio, problem or note or "ok"))
        if problem:
            problems.append(f"{entry.name}, chunk {where}: {problem}")
    columns = ["chunk", "predicted bytes", "coded bytes", "ratio", "result"]
    print_table(f"{entry.name}: codes and landed losses", columns, rows)
    return problems


def _sizes(coded: Compressed, num_bytes: int) -> str:
    """Return in words how many bytes were predicted, coded and written."""
    size = len(coded.data)
    chunks = "1 chunk" if coded.num_chunks == 1 else f"{coded.num_chunks:,} chunks"
    return (
        f"{size:,} bytes of {num_bytes:,} ({chunks}: {coded.predicted_bytes:,.1f} predicted, "
        f"{coded.coded_bytes:,} coded; {size - coded.coded_bytes:,} of header)"
    )


def _read(source: Path, target: Path) -> bytes:
    """Return the content of ``source``, after checking that ``target`` can be written."""
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
    path = target.absolute()
    Store(str(path.parent)).write_bytes(path.name, data)


COMMANDS = {
    "Other instruments": {"compress": compress_command, "decompress": decompress_command},
    "Trust": {"check losses": verify_losses_command},
}
FORMER = {"verify-losses": "check losses"}
FORMER_OPTIONS = (FormerOption("--month", "--from", frozenset({"check losses"}), beside="--to"),)
