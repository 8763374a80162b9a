"""Commands that start in an instant: the third-party packages that they may import."""

import json
import os
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

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
# cloudpickle and numpy come with pyarrow.
QUERY = SETTINGS | {"_duckdb", "cloudpickle", "duckdb", "numpy", "pyarrow"}
# The sets of later commands hold those of former ones, so one process runs all.
COMMANDS = [
    (["--help"], TERMINAL),
    (["--version"], PARAMETERS),
    (["sql", "--help"], SETTINGS),
    (["corpus", "show", "--help"], SETTINGS),
    (["sql", "select 1"], QUERY),
]
CODE = """
import json, sys
before = set(sys.modules)
from cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["tidemark", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
    print()
    print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def test_commands_import_no_heavy_library(settings: Settings) -> None:
    with open_warehouse(settings):
        pass
    publish(settings)
    home = settings.home
    environment = {"PATH": os.defpath, "HOME": home, "TIDEMARK_HOME": home}
    root = Path(__file__).parents[2]
    asked = json.dumps([arguments for arguments, _ in COMMANDS])
    done = run_process(sys.executable, "-c", CODE, asked, env=environment, check=True, cwd=root)
    ours = {path.name for path in root.iterdir() if path.is_dir()}
    packages = packages_distributions().keys() - ours
    listed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(listed) == len(COMMANDS)
    for (arguments, allowed), names in zip(COMMANDS, listed, strict=True):
        assert set(names) & packages <= allowed, arguments
    assert {"duckdb", "pyarrow"} <= set(listed[-1])


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
