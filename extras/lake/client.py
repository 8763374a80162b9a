"""The DuckDB client of package duckdb-cli, which runs SQL scripts with DuckDB's extensions.

The extensions are packaged for DuckDB 1.5.5 alone, and the library that tidemark uses is a later
one. A client of version 1.5.5 is a program of its own, so both fit into one environment.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from core.errors import UsageError, WarehouseError
from core.json import JsonObject

INSTALL = "pip install --no-deps -r extras/lake/requirements.txt"
# The two forms of a password in a libpq connection string: in a URI, or as password=value.
_PASSWORDS = re.compile(
    r"""(?P<before>://[^:@/\s]*:|\b\w*password\s*=\s*)
        (?P<password>(?<=:)\S*(?=@)|'(?:[^'\\]|\\.)*'|[^\s'"&]+)""",
    re.VERBOSE | re.IGNORECASE,
)


def quoted(text: str) -> str:
    """Return a text as a quoted SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def run_script(statements: list[str], doing: str) -> list[JsonObject]:
    """Run statements in a new client; return the rows of the last statement.

    The script is passed through stdin, because other users of a machine see a program's arguments.
    The client ends at the first error, which undoes an open transaction.

    Raises:
        UsageError: there is no client.
        WarehouseError: a statement failed; the message has no password.
    """
    lines = [".bail on", "set autoinstall_known_extensions = false;"]
    lines += [f"{statement};" for statement in statements]
    command = [str(_find_client()), "-batch", "-json", "-init", "/dev/null"]
    ended = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise WarehouseError(f"cannot {doing}: {without_passwords(ended.stderr.strip())}")
    return _last_rows(ended.stdout)


def _last_rows(output: str) -> list[JsonObject]:
    """Return the rows of the last statement with rows: each prints one JSON array."""
    decoder = json.JSONDecoder()
    rows: list[JsonObject] = []
    rest = output.strip()
    while rest:
        rows, end = decoder.raw_decode(rest)
        rest = rest[end:].strip()
    return rows


def without_passwords(text: str) -> str:
    """Return a text with passwords of connection strings replaced by asterisks."""
    return _PASSWORDS.sub(r"\g<before>***", text)


def load_statements(*names: str) -> Iterator[str]:
    """Yield statements that load extensions: those of packages, or those the client installed."""
    for name in names:
        yield f"load {quoted(_packaged(name) or name)}"


def _packaged(name: str) -> str | None:
    """Return the path of an extension that pip installed; None if it did not."""
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    if package is None or package.origin is None:
        return None
    files = sorted(Path(package.origin).parent.glob(f"extensions/*/{name}.duckdb_extension"))
    return str(files[-1]) if files else None


def _find_client() -> Path:
    """Return the client of this environment, or that of the PATH."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("duckdb", path=beside) or shutil.which("duckdb")
    if found is None:
        raise UsageError(f"a lake needs the DuckDB client; install it: {INSTALL}")
    return Path(found)


def key_statement() -> str:
    """Return the statement that gives DuckDB the object store's address, region and keys.

    Raises:
        WarehouseError: the configuration of the object store is wrong.
    """
    import botocore.session  # type: ignore[import-untyped]
    import fsspec
    from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

    try:
        session = botocore.session.Session()
        used = fsspec.config.conf.get("s3", {})  # what a Secret block gave, for instance
        if used.get("key"):
            session.set_credentials(used["key"], used["secret"], used.get("token"))
        client = session.create_client("s3", endpoint_url=used.get("endpoint_url"))
        keys = session.get_credentials()
    except BotoCoreError as error:
        raise WarehouseError(f"the object store cannot be reached: {error}") from error
    address = urlsplit(client.meta.endpoint_url)
    options = {
        "endpoint": quoted(address.netloc),
        "use_ssl": str(address.scheme == "https").lower(),
        "url_style": "'path'",
        "region": quoted(client.meta.region_name or "us-east-1"),
    }
    if keys is not None:
        frozen = keys.get_frozen_credentials()
        options["key_id"] = quoted(frozen.access_key)
        options["secret"] = quoted(frozen.secret_key)
        if frozen.token:
            options["session_token"] = quoted(frozen.token)
    listed = ", ".join(f"{name} {value}" for name, value in options.items())
    return f"create secret (type s3, {listed})"
