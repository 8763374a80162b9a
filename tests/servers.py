"""A real Prefect server, workers and PostgreSQL on loopback, which tests may kill."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import requests
from filelock import FileLock

from tests.loopback import PATIENCE_S, free_port

PREFECT = Path(sys.executable).parent / "prefect"
ROOT = Path(__file__).resolve().parents[1]
START_S = 900  # its first start migrates a database; seconds, on a busy machine minutes
LEASES_ON_DISK = "prefect.server.concurrency.lease_storage.filesystem"  # docs/operate.md tells why
ANSWER_S = 150  # seconds: SQLite lets a request wait for a minute, and busy machines lock it long


class PrefectServer:
    """A server that can be killed and started again; its database outlives it.

    ``folder``: database, logs and PREFECT_HOME. ``template``: shared, with a migrated database;
    unused if ``settings`` set another one in ``PREFECT_API_DATABASE_CONNECTION_URL``.
    """

    def __init__(self, folder: Path, template: Path, **settings: str) -> None:
        self.folder = folder
        self.port = free_port()
        self._template = template / "prefect.db"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{PREFECT.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_API_URL": self.url,
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": LEASES_ON_DISK,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            **self._settings,
        }

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server does not run")
        return self._process.pid

    def start(self) -> None:
        (self.folder / "prefect").mkdir(parents=True, exist_ok=True)
        if "PREFECT_API_DATABASE_CONNECTION_URL" in self._settings:
            self._run()
            return
        database = self.folder / "prefect" / "prefect.db"
        self._template.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self._template}.lock"):
            if not self._template.exists():
                self._run()
                self.stop()
                shutil.copyfile(database, self._template)
        if not database.exists():
            shutil.copyfile(self._template, database)
        self._run()

    def _run(self) -> None:
        self._process = self._prefect("server.log", "server", "start", "--no-ui")
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(requests.RequestException):
                if requests.get(f"{self.url}/ready", timeout=5).ok:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop(signal.SIGKILL)
                log_text = (self.folder / "server.log").read_text(errors="replace")
                raise RuntimeError(f"the Prefect server does not start:\n{log_text[-3000:]}")
            time.sleep(0.2)

    def _prefect(
        self, log_name: str, *arguments: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        with (self.folder / log_name).open("ab") as log:
            return subprocess.Popen(
                [PREFECT, *arguments], env={**self.environment, **environment}, cwd=ROOT,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def ask(
        self, method: str, path: str, body: object = None, auth: tuple[str, str] | None = None
    ) -> Any:
        """Call the API and return its response; retry while the database is locked."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = requests.request(
                method, f"{self.url}/{path}", json=body, auth=auth, timeout=ANSWER_S
            )
            if answer.status_code != 503 or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert answer.ok, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        if self._process is not None:
            end_group(self._process, with_signal)
        self._process = None

    @contextlib.contextmanager
    def worker(
        self, pool: str, *options: str, **environment: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        log = f"worker-{pool}-{time.monotonic_ns()}.log"
        process = self._prefect(log, "worker", "start", "--pool", pool, *options, **environment)
        try:
            yield process
        finally:
            # A flow run's process is in a group of its own, and would outlive its worker.
            is_alive = process.poll() is None
            runs = psutil.Process(process.pid).children(recursive=True) if is_alive else []
            end_group(process, signal.SIGKILL)
            for run in runs:
                with contextlib.suppress(psutil.NoSuchProcess):
                    run.kill()


@contextlib.contextmanager
def shared_server(folder: Path, template: Path, **settings: str) -> Iterator[PrefectServer]:
    """Yield a server that all processes of a run of tests share.

    The process that asks first starts it. It stops it when all others have left.
    """
    users = folder / "users"
    lock = FileLock(f"{folder}.lock")
    port = folder / "port"
    users.mkdir(parents=True, exist_ok=True)
    # A process may use it twice: folders of tests have fixtures of their own.
    own = users / f"{os.getpid()}-{time.monotonic_ns()}"
    server = PrefectServer(folder, template, **settings)
    with lock:
        is_owner = not port.exists()
        if is_owner:
            server.start()
            port.write_text(str(server.port))
        else:
            server.port = int(port.read_text())
        own.touch()
    try:
        yield server
    finally:
        own.unlink()
        while is_owner:
            with lock:
                pids = {int(user.name.partition("-")[0]) for user in users.iterdir()}
                if not any(map(psutil.pid_exists, pids)):
                    port.unlink()
                    server.stop()
                    break
            time.sleep(0.2)


class PostgreSQL:
    """A PostgreSQL server on loopback, killable; every user may enter the parents of ``folder``."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise RuntimeError("needs PostgreSQL: run deployments/install-postgresql.sh")
        self._programs = found[-1]
        self._as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        folder.mkdir()
        if self._as_user:
            shutil.chown(folder, "postgres")  # it refuses to run as root
        self._run("initdb", "-A", "trust", "-U", "tidemark", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://tidemark@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        self._run("pg_ctl", "-w", "-l", f"{self._folder}/log", "-o", options, "start")

    def kill(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def dump(self, path: Path) -> None:
        """Write all tables of the database, as SQL."""
        command = [f"{self._programs}/pg_dump", self.url.replace("+asyncpg", "")]
        with path.open("wb") as file:
            subprocess.run(command, check=True, stdout=file)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, f"{self._programs}/{program}", "-D", f"{self._folder}/data"]
        subprocess.run(
            [*command, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=self._folder
        )


def end_group(process: subprocess.Popen[bytes], with_signal: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, with_signal)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
