"""Commands `check`, `release`, `compress` and `decompress`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

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
from core.errors import MalformedInput, UsageError
from core.month import Month, Period
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:  # importing torch takes seconds
    from core.settings import Settings
    from instruments.maintenance.reproduction import Reproduction
    from models.codec import Compressed
    from warehouse.read.check import Finding


check_app = typer.Typer(invoke_without_command=True)
_QUICK = "sound, as far as quick checks tell; --deep reads everything"


@check_app.callback()
def check_command(
    context: typer.Context,
    deep: Annotated[
        bool, Option("--deep", help="Also read every chunk, and all files of corpus/ and losses/.")
    ] = False,
) -> None:
    """Check the published snapshot, or what a command below names.

    Faults are listed, and nothing is changed. The exit code is 1 if there is a fault.
    """
    if context.invoked_subcommand is not None:
        if deep:
            raise UsageError(f"give --deep after `check`, without {context.invoked_subcommand}")
        return
    from warehouse.read.check import check_home
    from warehouse.read.query import local_snapshot

    settings = settings_of(context)
    with local_snapshot(settings) as path, progress_bars():
        findings = list(check_home(path, Store(settings.home), deep))
    _report(findings, "sound" if deep else _QUICK)


@check_app.command("warehouse")
def check_warehouse_command(context: typer.Context) -> None:
    """Check every row of the published snapshot, without reading other files."""
    from warehouse.read.check import check_database
    from warehouse.read.query import local_snapshot

    with local_snapshot(settings_of(context)) as path, progress_bars():
        findings = list(check_database(path, is_deep=True))
    _report(findings, "sound")


@check_app.command("corpus")
def check_corpus_command(context: typer.Context) -> None:
    """Check that sealed files are as sealed, and removed documents are gone."""
    from warehouse.read.check import check_corpus

    settings = settings_of(context)
    with progress_bars():
        findings = list(check_corpus(Store(settings.home)))
    _report(findings, "sound")


def _report(findings: list[Finding], praise: str) -> None:
    for finding in findings:
        _print_finding(finding)
    if findings:
        raise typer.Exit(1)
    out.print(praise)


def _print_finding(finding: Finding) -> None:
    from warehouse.database.statements import show

    num = counted(finding.num_rows, "row")
    out.print(f"{finding.check}: {num}")
    lines = [finding.meaning, *map(show, finding.rows)]
    if finding.num_rows > len(finding.rows):
        lines.append(f"… and {finding.num_rows - len(finding.rows):,} more")
    for line in [*lines, f"What to do: {finding.remedy}"]:
        out.print(f"    {line}".replace("\n", " "), soft_wrap=True)


def release_command(
    context: typer.Context,
    month: Annotated[str, Argument(help="Last month of the release.", metavar="YYYY-MM")],
    output: Annotated[
        Path | None, Option(help="A new folder. Default: releases/YYYY-MM of the data root.")
    ] = None,
) -> None:
    """Copy the snapshot, up to a month, as a citable release.

    All checks of `tidemark check --deep` run first. A release is never overwritten.
    """
    from warehouse.read.release import make_release

    settings = settings_of(context)
    with progress_bars():
        address = make_release(settings, Month(month), output)
    out.print(f"{address}: verify it with `sha256sum -c SHA256SUMS`", soft_wrap=True)


def reproduce_command(
    context: typer.Context,
    cell: Annotated[
        str,
        Argument(help="MODEL/SOURCE/MONTH/PROTOCOL; MONTH: YYYY-MM or undated.", metavar="CELL"),
    ],
    release: Annotated[
        str | None,
        Option(
            help="Release to compare with: a month, or a folder. Default: compare with the "
            "published snapshot.",
            metavar="YYYY-MM|FOLDER",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option("--model", "-m", help="Present name or folder of the model, if it has moved."),
    ] = None,
) -> None:
    """Score one cell again, and compare the losses with those landed.

    Nothing is changed. Text and model must be unchanged. The exit code is 1 if the loss of the
    cell, or of a chunk, differs by more than 1e-6 of the cell's loss.
    """
    settings = settings_for_tasks(context)
    from instruments.maintenance.reproduction import reproduce

    found = reproduce(settings, cell, release, model)
    _print_comparison(cell, found)
    if not found.is_reproduced:
        raise typer.Exit(1)


def _print_comparison(cell: str, found: Reproduction) -> None:
    rows = [
        ("nats", repr(found.landed_nats), repr(found.rescored_nats)),
        *(
            (name, found.then.get(name), found.now.get(name))
            for name in dict.fromkeys([*found.then, *found.now])
        ),
    ]
    print_table(cell, ["", "landed", "now"], rows)
    out.print(f"relative difference       {found.relative_difference:.1e}")
    out.print(f"largest chunk difference  {found.largest_chunk_nats:.1e} nats")
    out.print(f"chunks                    {found.num_chunks:,}")
    if found.num_unmatched:
        out.print(f"chunks that do not match  {found.num_unmatched:,}")
    if not found.is_same_scoring:
        out.print("scored otherwise now: the protocol, the dtype or tidemark's code has changed")
    out.print("reproduced" if found.is_reproduced else "NOT reproduced")


Source = Annotated[Path, Argument(metavar="IN", help="File to read.", show_default=False)]
Target = Annotated[Path, Argument(metavar="OUT", help="File to write.", show_default=False)]


def compress_command(
    context: typer.Context,
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
    from models.catalogue import find_model
    from models.codec import compress

    settings = settings_of(context)
    entry = find_model(model, settings)
    with progress_bars():
        coded = compress(text, entry, settings)
    _write(target, coded.data)
    out.print(f"{target}: {_sizes(coded, len(raw))}", soft_wrap=True)


def decompress_command(
    context: typer.Context,
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
    from models.codec import decompress

    with progress_bars():
        raw = decompress(coded, settings_of(context), model, str(source))
    _write(target, raw)
    out.print(f"{target}: {len(raw):,} bytes", soft_wrap=True)


def verify_losses_command(
    context: typer.Context,
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
    from models.catalogue import find_model
    from models.choice import chosen_models

    settings = settings_for_tasks(context)
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
    from instruments.losses import plan_scoring
    from models.catalogue import find_model
    from models.codec.check import check_losses
    from models.codec.file import PROTOCOL

    entry = find_model(name, settings)
    if not entry.backend.codes:
        is_code = entry.backend.is_control
        what = "its loss is a code length already" if is_code else "it has no codec"
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
    rows, problems = [], []
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
