"""Commands in forks of one process with all imports done, so that tests can kill them fast."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def run_process(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"check": False, **options}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


class Forks:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin and process.stdout
        self._feed, self._says = process.stdin, process.stdout
        assert self._says.readline() == "warm\n"

    def start(self, job: object) -> int:
        """Return the process id of the fork that does the job; ``wait`` before the next."""
        self._feed.write(json.dumps(job) + "\n")
        self._feed.flush()
        return int(self._says.readline())

    def wait(self) -> int:
        """Return the fork's exit code; -9 where a kill came before the end."""
        return int(self._says.readline())

    def run(self, job: object, kill_after: float | None = None) -> int:
        child = self.start(job)
        if kill_after is not None:
            time.sleep(kill_after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return self.wait()


@contextlib.contextmanager
def forking(
    script: str, environment: Mapping[str, str], cwd: Path = ROOT, arguments: Sequence[str] = ()
) -> Iterator[Forks]:
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**environment, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Forks(process)
        assert process.stdin
        process.stdin.close()


def serve(work: Callable[[Any], None]) -> None:
    print("warm", flush=True)  # noqa: T201
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _be(work, json.loads(line))
        print(child, flush=True)  # noqa: T201
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _be(work: Callable[[Any], None], job: Any) -> None:
    os.dup2(2, 1)  # what the job prints is none of the answers
    code = 1
    try:
        work(job)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - told, as at the end of any process
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(code)
