"""Commands that start in an instant: the third-party packages that they may import."""

import json
import os
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from core.settings import Settings
from tests.forks import run_process
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

TERMINAL = {
    "annotated_doc", "attr", "attrs", "markdown_it", "mdurl", "pygments", "rich", "shellingham",
    "typer",
}  # fmt: skip
# typer converts parameters with pydantic.
PARAMETERS = TERMINAL | {
    "annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection",
}  # fmt: skip
SETTINGS = PARAMETERS | {"dotenv", "platformdirs", "pydantic_settings"}
# cloudpickle and numpy come with pyarrow, zstandard with fsspec.
QUERY = SETTINGS | {
    "_duckdb", "cloudpickle", "duckdb", "fsspec", "numpy", "pyarrow", "zstandard",
}  # fmt: skip
CODE = """
import sys
before = set(sys.modules)
from cli.main import main
sys.argv = ["tidemark", *sys.argv[1:]]
try:
    main()
finally:
    import json
    print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def imported_by(home: Path, *arguments: str) -> set[str]:
    environment = {"PATH": os.defpath, "HOME": str(home), "TIDEMARK_HOME": str(home)}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", CODE, *arguments]
    done = run_process(*command, env=environment, check=True, cwd=root)
    ours = {path.name for path in root.iterdir() if path.is_dir()}
    found = set(json.loads(done.stdout.splitlines()[-1]))
    return (found & packages_distributions().keys()) - ours


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], TERMINAL),
        (["--version"], PARAMETERS),
        (["sql", "--help"], SETTINGS),
        (["corpus", "show", "--help"], SETTINGS),
    ],
)
def test_help_and_version_import_no_heavy_library(
    tmp_path: Path, arguments: list[str], allowed: set[str]
) -> None:
    assert imported_by(tmp_path, *arguments) <= allowed


def test_a_query_imports_the_database_besides(settings: Settings) -> None:
    with open_warehouse(settings):
        pass
    publish(settings)
    found = imported_by(Path(settings.home), "sql", "select 1")
    assert found <= QUERY
    assert {"duckdb", "pyarrow"} <= found


def test_the_flow_that_scores_imports_no_model_library(tmp_path: Path) -> None:
    code = "import sys, flows.monthly; print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    done = run_process(
        sys.executable,
        "-c",
        code,
        env={"HOME": str(tmp_path)},
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"
