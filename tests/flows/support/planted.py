"""Planted secrets: their encodings, and the texts of files, processes and databases to search."""

import base64
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow.parquet as pq
import zstandard


def forms(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret, quote(secret, safe=""), base64.b64encode(raw).decode().rstrip("=")[:-1], raw.hex(),
    }  # fmt: skip


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the decompressed content of each file below a folder."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompress(data)
        yield str(path), data.decode("latin-1")
        if path.suffix == ".parquet":
            yield str(path), str(pq.read_table(path).to_pylist())
        if path.suffix == ".duckdb":
            with duckdb.connect(path, read_only=True) as connection:
                for name in connection.sql("select schema || '.' || name from (show all tables)"
                                           ).fetchall():  # fmt: skip
                    yield f"{path} {name[0]}", str(connection.sql(f"from {name[0]}").fetchall())


def places_of(secret: str, texts: list[tuple[str, str]]) -> list[str]:
    return sorted({where for form in forms(secret) for where, text in texts if form in text})


@contextlib.contextmanager
def watched_processes() -> Iterator[set[str]]:
    """Collect the arguments of all processes of this machine while the ``with`` block runs."""
    seen: set[str] = set()
    end = threading.Event()

    def watch() -> None:
        while not end.wait(0.1):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes().replace(b"\0", b" ").decode("latin-1"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()
