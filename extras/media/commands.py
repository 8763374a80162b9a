"""Command `import media`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Context

from cli.imports import GivenMonth, Replace, SourceName, Undated, partition_of, print_seal
from cli.terminal.options import settings_of
from core.storage.store import Store


def import_media_command(
    context: Context,
    path: Annotated[Path, Argument(help="A file or a folder of images, or of recordings.")],
    source: SourceName,
    month: GivenMonth = None,
    undated: Undated = False,
    replace: Replace = False,
) -> None:
    """Import your own images or recordings, to be scored as bytes.

    They become one sealed partition. Images (PNG, JPEG, WebP, GIF) become greyscale patches of 64
    rows and 128 columns, up to 16 per image. Recordings (WAV, FLAC, Ogg, MP3) become 16 kHz mono
    PCM in pieces of 4 s. Each patch or piece is a document. Files that are damaged, too small or of
    another format are dropped.
    """
    from extras.media.importing import import_media

    partition = partition_of(source, month, undated)
    print_seal(import_media(path, partition, Store(settings_of(context).home), replace))


COMMANDS = {"Collect text": {"import media": import_media_command}}
FORMER = {"import-media": "import media"}
