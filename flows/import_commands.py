"""`tidemark import-texts` and `import-media`: files of one's own as sealed partitions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from core.corpus import Partition, Seal
from core.errors import UsageError
from core.month import Month
from core.storage import Store
from flows.console import out
from flows.options import settings_of

SourceName = Annotated[str, typer.Option(help="Name of the source to import as.", metavar="NAME")]
GivenMonth = Annotated[
    str | None, typer.Option(help="The month that the content is from.", metavar="YYYY-MM")
]
Undated = Annotated[bool, typer.Option("--undated", help="The content has no month.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="Seal as the next version of what is sealed there.")
]


class TextFormat(StrEnum):
    """Formats that `import-texts` reads."""

    AUTO = "auto"
    JSON_LIST = "json-list"
    JSONL = "jsonl"
    PARQUET = "parquet"
    FOLDER = "folder"


def import_texts_command(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A file or a folder of texts.")],
    source: SourceName,
    month: GivenMonth = None,
    undated: Undated = False,
    format: Annotated[TextFormat, typer.Option(help="How the texts are stored.")] = TextFormat.AUTO,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Clean like crawled text; default: keep every character."),
    ] = False,
    min_chars: Annotated[
        int, typer.Option(min=1, help="Drop and count texts of fewer characters.")
    ] = 100,
    replace: Replace = False,
) -> None:
    """Import texts of your own as one sealed partition.

    Formats: json-list (a JSON list of strings, as Uncheatable Eval publishes), jsonl (objects with
    a `text`), parquet (a `text` column), folder (one text a file). Records that are empty, shorter
    than --min-chars or longer than TIDEMARK_MAX_DOCUMENT_BYTES are dropped and counted, with
    --clean duplicates, too; a malformed file is refused and nothing is written.
    """
    from crawlers.import_texts import ImportOptions, import_texts

    partition = _partition(source, month, undated)
    settings = settings_of(context)
    chosen = ImportOptions(
        format=format.value,
        clean=clean,
        min_chars=min_chars,
        max_document_bytes=settings.max_document_bytes,
        replace=replace,
    )
    _print_import(import_texts(path, partition, Store(settings.home, settings.scratch), chosen))


def import_media_command(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="A file or a folder of images, or of recordings.")],
    source: SourceName,
    month: GivenMonth = None,
    undated: Undated = False,
    replace: Replace = False,
) -> None:
    """Import images or recordings of your own as one sealed partition, to be scored as bytes.

    Images (PNG, JPEG, WebP, GIF) are cut into greyscale patches of 64 rows and 128 columns, up to
    16 an image; recordings (WAV, FLAC, Ogg, MP3) become 16 kHz mono PCM, cut every 4 seconds. Each
    is a document. Files that are damaged, too small or of another format are dropped and counted.
    """
    from crawlers.import_media import import_media

    partition = _partition(source, month, undated)
    _print_import(import_media(path, partition, Store(settings_of(context).home), replace))


def _partition(source: str, month: str | None, undated: bool) -> Partition:
    if (month is None) == (not undated):
        raise UsageError("say either --month YYYY-MM or --undated")
    return Partition(source, Month(month) if month else None)


def _print_import(seal: Seal) -> None:
    out.print(f"{seal.partition}: {seal.num_documents} documents")
    dropped = seal.manifest.get("dropped")
    if isinstance(dropped, dict) and dropped:
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(dropped.items()))
        out.print(f"dropped: {counts}")
