"""The readers of this extra, by the suffix of the file."""

from __future__ import annotations

from extras.web_archives.epub import read_epub
from extras.web_archives.warc import read_archive

READERS = {".warc": read_archive, ".wet": read_archive, ".epub": read_epub}
# Files whose texts are of many publishers, and may not be passed on.
ARCHIVES = (".warc", ".wet")
