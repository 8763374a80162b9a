"""A PostgreSQL server of its own, for the catalogue of a lake."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loopback import free_port

PASSWORD = "s3cret'pass word"


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[int]:
    """Run a server on loopback, with its files in a folder; yield its port."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("needs PostgreSQL: run `make servers`")
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")  # it refuses to run as root
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    port = free_port()

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, f"{programs[-1]}/{program}", "-D", f"{folder}/data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder)

    access = ("-A", "scram-sha-256", "-U", "tidemark", "--pwfile", str(secret))
    run("initdb", "-E", "UTF8", "--no-sync", *access)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", options, "start")
    try:
        yield port
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "stop")


def connection_string(port: int) -> str:
    """Return the address of the server's database, with its password."""
    password = PASSWORD.replace("'", r"\'")
    return (
        f"postgres:host=127.0.0.1 port={port} user=tidemark dbname=postgres password='{password}'"
    )
