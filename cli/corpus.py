"""Commands `tidemark corpus`, about sealed text and its differences."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer import Argument, Option

from cli.terminal.console import err, out, print_table
from cli.terminal.options import settings_of
from core.errors import UsageError, did_you_mean
from core.periods import parse_period
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:
    from core.corpus.partition import Partition, Seal

corpus_app = typer.Typer(no_args_is_help=True, help="Inspect and accept sealed text.")

SourceArgument = Annotated[str, Argument(help="Source.", metavar="SOURCE")]
MonthArgument = Annotated[str, Argument(help='Month, or "undated".', metavar="YYYY-MM")]


def _partition(source: str, month: str) -> Partition:
    from core.corpus.partition import Partition

    return Partition(source, None if month == "undated" else parse_period(month))


@corpus_app.command("show")
def show_command(
    context: typer.Context,
    source: SourceArgument,
    month: MonthArgument,
    version: Annotated[
        int | None, Option(min=1, help="Default: the newest, limited by TIDEMARK_CORPUS_AS_OF.")
    ] = None,
    held: Annotated[bool, Option("--held", help="Show the version that is held back.")] = False,
    dropped: Annotated[
        bool, Option("--dropped", help="Also list each dropped item and the reason.")
    ] = False,
    paths: Annotated[
        bool, Option("--paths", help="Print only the paths of the Parquet files, one per line.")
    ] = False,
) -> None:
    """Print the manifest of a sealed month: its origin, and counts of kept and dropped items."""
    settings = settings_of(context)
    store = Store(settings.home)
    partition = _partition(source, month)
    seal = choose_seal(store, partition, version, held, settings.corpus_as_of)
    if paths:
        for path in seal.parts:
            out.print(store.url(path), soft_wrap=True)
        return
    print_table(f"{partition}", ["manifest", "says"], describe_seal(store, seal))
    if dropped:
        columns = ["item", "outcome", "reason", "detail"]
        print_table("not kept", columns, list_dropped(store, seal))


@corpus_app.command("text")
def text_command(
    context: typer.Context,
    document: Annotated[str, Argument(help="Id (column document_id).", metavar="DOCUMENT")],
) -> None:
    """Print the text of one document; its title, address, date and rights go to stderr.

    The text is as it was scored, from the newest version of the month that has the document.
    """
    from core.corpus.lookup import find_document

    found = find_document(Store(settings_of(context).home), document)
    err.print(f"{found.seal.partition}, version {found.seal.version}", highlight=False)
    for name, value in found.facts.items():
        if value is not None:
            err.print(f"{name}: {escape(str(value))}", highlight=False, soft_wrap=True)
    typer.echo(found.text)


@corpus_app.command("accept")
def accept_command(
    context: typer.Context,
    source: SourceArgument,
    month: MonthArgument,
    why: Annotated[str, Option(help="Reason to accept the month; the manifest records it.")],
) -> None:
    """Seal a month that failed a check and is held back; first look at `corpus show --held`."""
    from core.corpus.sealing import accept_held

    partition = _partition(source, month)
    seal = accept_held(Store(settings_of(context).home), partition, why)
    out.print(f"{partition}: {counted(seal.num_documents, 'document')}, version {seal.version}")


Row = tuple[object, ...]

# Keys of a manifest that are printed first, in this order.
_FIRST = (
    "kind", "status", "ended_early", "held_because", "accepted", "window", "started_at", "ended_at",
    "sealed_at", "num_documents", "num_bytes", "content", "digest", "content_digest", "forgotten",
)  # fmt: skip
_ACCOUNT = ("requested", "kept", "dropped", "failed", "repeated")
_LEFT_OUT = ("source", "month", "version", "files", "defects", *_ACCOUNT)


def choose_seal(
    store: Store, partition: Partition, version: int | None, held: bool, as_of: dt.datetime | None
) -> Seal:
    """Return the seal of the requested version of a partition."""
    from core.corpus.partition import list_sealed_sources, list_versions, read_seal
    from core.corpus.sealing import read_held

    if held:
        seal = read_held(store, partition)
    elif version is None:
        seal = read_seal(store, partition, as_of)
    else:
        versions = {each.version: each for each in list_versions(store, partition)}
        seal = versions.get(version)
    if seal is not None:
        return seal
    known = [str(each.version) for each in list_versions(store, partition)]
    is_held = read_held(store, partition) is not None
    if not known and not is_held:
        meant = did_you_mean(partition.source, list_sealed_sources(store))
        raise UsageError(
            f"nothing is sealed of {partition} under {store.root}; {meant}"
            "see `tidemark sources list`"
        )
    held_too = "; something is held back (--held)" if is_held and not held else ""
    raise UsageError(
        f"there is no such version of {partition} under {store.root} (sealed versions: "
        f"{', '.join(known) or 'none'}{held_too})"
    )


def describe_seal(store: Store, seal: Seal) -> list[Row]:
    """Return printable fields of a manifest, and counts of documents by licence and language."""
    manifest = seal.manifest
    rows: list[Row] = [("version", _of_versions(store, seal)), ("folder", store.url(seal.folder))]
    rows += [(name, _as_text(manifest[name])) for name in _FIRST if manifest.get(name) is not None]
    rows += _account(manifest)
    rows += _defects(manifest)
    for name in ("licence", "language"):
        rows.append((f"{name}s of documents", _count_by_value(_column(store, seal, name))))
    rest = [name for name in manifest if name not in (*_FIRST, *_LEFT_OUT)]
    return rows + [(name, _as_text(manifest[name])) for name in rest if manifest[name] is not None]


def _of_versions(store: Store, seal: Seal) -> str:
    """Return the version's number among all versions, such as "1 of 2", for display."""
    from core.corpus.partition import list_versions
    from core.corpus.sealing import read_held

    if PurePosixPath(seal.folder).name == "held":
        return "held back"
    versions = [each.version for each in list_versions(store, seal.partition)]
    held = "; another is held back (--held)" if read_held(store, seal.partition) else ""
    return f"{seal.version} of {len(versions)}{held}"


def _account(manifest: Mapping[str, object]) -> Iterator[Row]:
    """Yield rows with the numbers of requested, kept, dropped, failed and repeated documents."""
    if "requested" not in manifest:
        return
    sums: dict[str, int] = {}
    for name in _ACCOUNT[1:]:  # these add up to the first, the requested documents
        value = manifest.get(name, 0)
        sums[name] = sum(value.values()) if isinstance(value, dict) else int(str(value))
    total = " + ".join(f"{num:,} {name}" for name, num in sums.items())
    yield "requested", f"{manifest['requested']:,} = {total}"
    for name in ("dropped", "failed"):
        reasons = manifest.get(name)
        if isinstance(reasons, dict) and reasons:
            yield name, ", ".join(f"{num:,} {reason}" for reason, num in reasons.items())


def _defects(manifest: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row per kind of defect, such as left-over markup, with the share of texts."""
    defects = manifest.get("defects", {})
    for name, found in defects.items():
        if isinstance(found, dict) and defects["texts"]:
            share = f"{found['texts']:,} of {defects['texts']:,} ({found['share_of_texts']:.1%})"
            places = f"{found['places']:,} places, {found['per_million_chars']:.1f} per million"
            yield f"texts with {name}", f"{share}; {places} characters"


def _column(store: Store, seal: Seal, name: str) -> Iterator[object]:
    from core.corpus.partition import read_documents

    for batch in read_documents(store, seal, columns=[name], batch_rows=8192):
        yield from batch[name].to_pylist()


def _count_by_value(values: Iterator[object]) -> str:
    counts = Counter(str(value) for value in values)
    return ", ".join(f"{num:,} {value}" for value, num in counts.most_common())


def _as_text(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_as_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(str(_as_text(each)) for each in value)
    return value


def list_dropped(store: Store, seal: Seal) -> list[Row]:
    """Return (id, outcome, reason, detail) of each dropped or failed item."""
    import zstandard

    path = f"{seal.folder}/dropped.jsonl.zst"
    if not store.exists(path):
        return []
    with store.open(path) as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        items = [json.loads(line) for line in reader.read().splitlines()]
    names = ("native_id", "outcome", "reason", "detail")
    return [tuple(item[name] for name in names) for item in items]
