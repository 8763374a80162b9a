import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from importlib import resources
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deployments" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
TARGET = "tidemark-workers.target"
LEAST_VERSION = 250  # of systemd: the first whose systemd-analyze rates files
Directives = dict[tuple[str, str], list[str]]


def read_unit(name: str) -> Directives:
    """Return the values of a unit's directives, by section and name."""
    found: Directives = defaultdict(list)
    section = ""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[section, key].append(value)
    return found


def command_of(unit: Directives) -> list[str]:
    return shlex.split(unit["Service", "ExecStart"][0])


def is_worker(unit: Directives) -> bool:
    return "worker" in command_of(unit)


def test_server_deploy_workers_and_both_services_of_the_report_have_units() -> None:
    commands = {name: command_of(read_unit(name))[:3] for name in UNITS}
    opt = "/opt/tidemark/bin"
    assert commands == {
        "tidemark-deploy.service": [f"{opt}/tidemark", "deploy"],
        "tidemark-gpus@.service": [f"{opt}/tidemark", "worker", "--gpus"],
        "tidemark-metrics.service": [f"{opt}/tidemark", "metrics", "--host"],
        "tidemark-serve.service": [f"{opt}/tidemark", "serve", "--host"],
        "tidemark-server.service": [f"{opt}/prefect", "server", "start"],
        "tidemark-worker@.service": [f"{opt}/prefect", "worker", "start"],
    }


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_confined_and_started_again(name: str) -> None:
    unit = read_unit(name)
    expected = {
        "User": "tidemark",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "SystemCallErrorNumber": "EPERM",
    }
    assert {key: unit["Service", key] for key in expected} == {
        key: [value] for key, value in expected.items()
    }
    is_oneshot = unit["Service", "Type"] == ["oneshot"]
    assert unit["Service", "Restart"] == ([] if is_oneshot else ["always"])


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_leaves_open_what_its_program_needs(name: str) -> None:
    unit = read_unit(name)
    if name != "tidemark-server.service":
        # polars, torch, V8 of the browser and of charts make code at run time.
        assert ("Service", "MemoryDenyWriteExecute") not in unit
    if name in ("tidemark-server.service", "tidemark-deploy.service") or is_worker(unit):
        assert unit["Service", "StateDirectory"]  # else nothing is writable
    if is_worker(unit):
        assert ("Service", "ProtectProc") not in unit  # hidden processes would count as dead
        assert {"user", "net", "ipc"} <= {*unit["Service", "RestrictNamespaces"][0].split()}
        calls = " ".join(unit["Service", "SystemCallFilter"]).split()
        landlock = {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
        assert landlock | {"@system-service", "seccomp"} <= {*calls}
        assert unit["Service", "TimeoutStopSec"] == ["90"]  # tidemark worker needs up to 60 s
    if "--gpus" in command_of(unit):
        # ProtectClock restricts devices, too: it allows the clock's alone.
        closed = ("PrivateDevices", "ProtectClock", "DevicePolicy", "DeviceAllow")
        assert not [key for key in closed if ("Service", key) in unit]


def test_a_worker_takes_a_limited_number_of_runs() -> None:
    unit = read_unit("tidemark-worker@.service")
    command = command_of(unit)
    assert command[command.index("--limit") + 1] == "${WORKER_LIMIT}"
    assert "WORKER_LIMIT=1" in unit["Service", "Environment"]
    of_crawl = read_unit("tidemark-worker@crawl.service.d/limit.conf")
    compose = yaml.safe_load((ROOT / "deployments" / "compose.yaml").read_text(encoding="utf-8"))
    in_compose = compose["services"]["crawl-worker"]["command"]
    limit = in_compose[in_compose.index("--limit") + 1]
    assert of_crawl["Service", "Environment"] == [f"WORKER_LIMIT={limit}"]


def test_one_target_stops_and_starts_all_workers() -> None:
    workers = [name for name in UNITS if is_worker(read_unit(name))]
    assert workers == ["tidemark-gpus@.service", "tidemark-worker@.service"]
    for name in workers:
        unit = read_unit(name)
        assert unit["Unit", "PartOf"] == [TARGET]
        # What comes after the target ends before it, so that stopping the target waits for workers.
        assert TARGET in unit["Unit", "After"][0].split()
        assert unit["Install", "WantedBy"] == [TARGET]
    assert (FOLDER / TARGET).is_file()


def test_an_upgrade_stops_all_workers_before_the_server_migrates() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    block = page.partition("\n## Upgrade\n")[2].partition("```sh\n")[2].partition("```")[0]
    steps = re.findall(r"^systemctl (\w+) (\S+)", block, re.MULTILINE)
    assert steps == [
        ("stop", TARGET),
        ("stop", "tidemark-server"),
        ("start", "tidemark-server"),
        ("start", "tidemark-deploy"),
        ("start", TARGET),
        ("restart", "tidemark-serve"),
    ]


def test_the_wheel_has_the_units(tmp_path: Path) -> None:
    """Build the wheel of the package ``deployments`` alone, by the rules of pyproject.toml."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__", ".env", "*.env")
    shutil.copytree(ROOT / "deployments", tmp_path / "deployments", ignore=ignored)
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    [wheel] = (tmp_path / "dist").iterdir()
    packed = {*zipfile.ZipFile(wheel).namelist()}
    files = [path for path in (ROOT / "deployments").rglob("*") if path.is_file()]
    expected = {
        str(path.relative_to(ROOT))
        for path in files
        if "__pycache__" not in path.parts and (path.suffix != ".env" and path.name != ".env")
    }
    assert expected <= packed
    name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    assert wheel.name.startswith(name.replace("-", "_") + "-")


def test_the_units_are_found_in_the_installed_package() -> None:
    found = {each.name for each in (resources.files("deployments") / "systemd").iterdir()}
    assert {*UNITS, TARGET} <= found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units, with the programs of this environment."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze, of the package systemd")
    said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, check=True)
    version = int(said.stdout.split()[1])
    if version < LEAST_VERSION:
        pytest.skip(f"needs systemd {LEAST_VERSION}, for the rating of files; this is {version}")
    folder = tmp_path_factory.mktemp("units")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    for path in folder.rglob("*.service"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("/opt/tidemark/bin", str(Path(sys.executable).parent)))
    return folder


def test_systemd_finds_no_fault_in_a_unit(installed: Path) -> None:
    units = [installed / name for name in [*UNITS, TARGET]]
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *units]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS)
def test_systemd_rates_a_unit_as_safe(name: str, installed: Path) -> None:
    rate = ["systemd-analyze", "security", "--offline=true", "--threshold=40", "--no-pager"]
    done = subprocess.run([*rate, installed / name], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    exposure = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert exposure is not None, said
    assert float(exposure[1]) <= 4
    assert done.returncode == 0
