"""Fixtures of the tests of models."""

import sys

import pytest

from tests.forks import ROOT, run_process
from tests.models.conftest import *  # noqa: F403
from tests.models.conftest import _few_threads, _one_thread

__all__ = ["_few_threads", "_one_thread", "confinement"]


@pytest.fixture(scope="session")
def confinement(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip a test on a system that cannot confine processes, such as Linux before 6.2."""
    home = tmp_path_factory.mktemp("confined")
    code = "import pathlib, sys; from extras.own_code.guard import confine; "
    code += "confine([], pathlib.Path(sys.argv[1]))"
    done = run_process(sys.executable, "-c", code, home, cwd=ROOT)
    if "models with trust: code" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
