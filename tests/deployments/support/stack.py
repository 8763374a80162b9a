"""The services of compose.yaml without Docker, as processes with the same commands.

This requires Linux: each service has a loopback address in place of its host name, with the same
ports. Volumes are folders. Users, read-only file systems and restarts are not reproduced.
PostgreSQL and Caddy must be installed (deployments/install-*.sh).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.deployments.support.compose_file import ComposeError, Service, read_services

ROOT = Path(__file__).resolve().parents[3]
COMPOSE = ROOT / "deployments" / "compose.yaml"
START_S = 300  # maximum start time of a service in s, long enough for Prefect's first migration
STOP_S = 10  # seconds from SIGTERM to SIGKILL
_POSTGRESQL = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_PATH = ":".join(map(str, [Path(sys.executable).parent, *_POSTGRESQL[-1:]]))


class Process:
    """A process that runs a service, with its address, its folders and its log."""

    def __init__(self, service: Service, folder: Path, addresses: Mapping[str, str]) -> None:
        self.service = service
        self.address = addresses[service.name]
        self._addresses = addresses
        self._home = folder / service.name
        self._home.mkdir(parents=True)
        self.folders = {"/app": ROOT}
        for target, source in service.mounts.items():
            place = self._home / target.strip("/") if source is None else Path(source)
            self.folders[target] = place if place.is_absolute() else folder / "volumes" / place
            if not self.folders[target].is_file():
                self.folders[target].mkdir(parents=True, exist_ok=True)
        self._log = self._home / "log"
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """The last 3,000 characters of the log."""
        return self._log.read_text(errors="replace")[-3000:] if self._log.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the container, with paths and hosts of this machine."""
        service = self.service
        hosts = {
            k: self._addresses.get(v, v) for k, v in service.environment.items() if "HOST" in k
        }
        ours = {k: self.on_this_machine(v) for k, v in (service.environment | hosts).items()}
        bare = {"PATH": f"{_PATH}:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
        if service.name == "proxy" and os.geteuid() != 0:  # only root may use ports below 1024
            bare |= {"HTTP_PORT": "8081", "HTTPS_PORT": "8443"}
        return {"HOME": str(self._home), **service.settings, **ours, **bare}

    def on_this_machine(self, text: str) -> str:
        """Replace container paths and hosts by local ones; replaced text is not replaced again."""
        paths = "|".join(map(re.escape, sorted(self.folders, key=len, reverse=True)))
        hosts = "|".join(map(re.escape, self._addresses))
        found = re.compile(
            rf"(?<![\w./-])(?P<path>{paths})(?=/|:|$)|(?<![\w.-])(?P<host>{hosts})(?=:\d)"
            r"|(?<![\d.])(?:127\.0\.0\.1|0\.0\.0\.0)(?![\d.])"
        )

        def here(match: re.Match[str]) -> str:
            if match["path"]:
                return str(self.folders[match["path"]])
            return self._addresses[match["host"]] if match["host"] else self.address

        return found.sub(here, text)

    def start(self) -> None:
        """Start the process, or start it again after ``stop``."""
        argv = [self.on_this_machine(word) for word in self.service.argv]
        user = None
        if self.service.image.startswith("postgres:"):
            argv, user = self._prepare_postgresql()
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                argv, env=self.environment, cwd=self._folder(), stdout=log, stderr=log,
                start_new_session=True, user=user, group=user,
            )  # fmt: skip

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        if self._popen is None:
            raise ComposeError(f"{self.service.name} has not been started")
        return self._popen

    def _folder(self) -> Path:
        return Path(self.on_this_machine(self.service.folder))

    def _prepare_postgresql(self) -> tuple[list[str], str | None]:
        """Create the database if missing, as the image does; return the command and its user."""
        data, environment = self.folders["/var/lib/postgresql/data"], self.environment
        user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        database, secret = data / "database", data / "password"

        def run(*argv: str | Path, stdin: str = "") -> None:
            subprocess.run(
                argv, input=stdin.encode(), check=True, user=user, group=user, cwd=data,
                env=environment, stdout=subprocess.DEVNULL,
            )  # fmt: skip

        if not database.exists():
            secret.write_text(environment["POSTGRES_PASSWORD"])
            for path in (data, secret):
                shutil.chown(path, user or os.geteuid())
            name = environment["POSTGRES_USER"]
            how = ("-A", "scram-sha-256", "-E", "UTF8", "--no-sync", "-U", name, "--pwfile", secret)
            run("initdb", *how, "-D", database)
            secret.unlink()
            database_name = environment["POSTGRES_DB"].replace('"', '""')
            create = f'create database "{database_name}"'
            run("postgres", "--single", "-D", database, "postgres", stdin=create)
        # fsync is off, because the folder is temporary and need not survive a power cut.
        options = [f"listen_addresses={self.address}", "unix_socket_directories=", "fsync=off"]
        given = [word for option in options for word in ("-c", option)]
        return ["postgres", "-D", str(database), *given], user

    def is_healthy(self) -> bool:
        """Return True if healthy, or without a health check; raise ComposeError if it has ended."""
        if self._process.poll() is not None:
            raise ComposeError(f"{self.service.name} has ended:\n{self.log}")
        if self.service.health is None:
            return True
        check = [self.on_this_machine(word) for word in self.service.health]
        done = subprocess.run(check, env=self.environment, capture_output=True, check=False)
        return done.returncode == 0

    def await_end(self) -> None:
        """Wait for the end; raise ComposeError for a failure, or after ``START_S`` seconds."""
        try:
            code = self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            code = -1
        if code:
            raise ComposeError(f"{self.service.name} failed ({code}):\n{self.log}")

    def await_health(self) -> None:
        """Wait until ``is_healthy``; raise ComposeError after ``START_S`` seconds."""
        deadline = time.monotonic() + START_S
        while not self.is_healthy():
            if time.monotonic() > deadline:
                raise ComposeError(f"{self.service.name} does not become healthy:\n{self.log}")
            time.sleep(0.5)

    def stop(self) -> None:
        """Stop the process and all processes that it started."""
        if self._popen is None:
            return
        # On SIGTERM, PostgreSQL would wait until its clients disconnect.
        is_database = self.service.image.startswith("postgres:")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGINT if is_database else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(STOP_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()


def start_all(services: Mapping[str, Service], folder: Path) -> Iterator[Process]:
    """Start each service as soon as its dependencies meet their conditions; yield each process."""
    network = f"127.{1 + secrets.randbelow(250)}.{secrets.randbelow(250)}"
    addresses = {name: f"{network}.{host}" for host, name in enumerate(services, start=2)}
    running: dict[str, Process] = {}
    for name, service in services.items():
        for on, condition in service.depends_on.items():
            if condition == "service_completed_successfully":
                running[on].await_end()
            elif condition == "service_healthy":
                running[on].await_health()
        running[name] = Process(service, folder, addresses)
        running[name].start()
        yield running[name]


@contextlib.contextmanager
def stack(folder: Path, variables: Mapping[str, str]) -> Iterator[dict[str, Process]]:
    """Run all services during the ``with`` block, which begins when all services are healthy.

    ``folder`` is for the files of the services; user ``postgres`` must have access. ``variables``
    are those of ``.env``. Raise ComposeError if a program is missing, or a service fails.
    """
    for program in ("caddy", "initdb"):
        if shutil.which(program, path=f"{_PATH}:/usr/local/bin:/usr/bin:/bin") is None:
            raise ComposeError(f"{program} is not installed: see deployments/install-*.sh")
    running: dict[str, Process] = {}
    try:
        for process in start_all(read_services(COMPOSE, variables), folder):
            running[process.service.name] = process
        for process in running.values():
            if process.service.health is not None:
                process.await_health()
        yield running
    finally:
        for process in reversed(running.values()):
            process.stop()
