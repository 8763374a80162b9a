import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.prefect_yaml import read_deployments
from simulator.server import Response
from tests.deployments.support.compose_file import (
    ComposeError,
    interpolated,
    read_image,
    read_services,
)
from tests.forks import run_process
from tests.loopback import serving

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deployments" / "compose.yaml"
SECRETS = {"POSTGRES_PASSWORD": "p$w", "PREFECT_AUTH": "user:password"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return loaded


def validated(compose: dict[str, Any]) -> list[str]:
    from compose_spec import PyCompose

    plain = {key: value for key, value in compose.items() if not key.startswith("x-")}
    names: list[str] = PyCompose.from_yaml(json.dumps(plain)).service_names()
    return names


def test_the_dockerfile_is_as_hadolint_wants_it() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    done = run_process(hadolint, "Dockerfile", cwd=ROOT)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_compose_file_is_one(compose: dict[str, Any]) -> None:
    names = validated(interpolated(compose, SECRETS))
    assert {*names} == {*compose["services"]}


@pytest.mark.parametrize("name", list(yaml.safe_load(COMPOSE.read_text())["services"]))
def test_every_service_is_confined_and_watched(name: str, compose: dict[str, Any]) -> None:
    service = compose["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert ("healthcheck" in service) == (name != "deploy")
    assert service["restart"] == ("no" if name == "deploy" else "unless-stopped")
    if name != "proxy":
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    for condition in service.get("depends_on", {}).values():
        assert condition["condition"] != "service_started"


def test_no_secret_is_in_the_files(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, value in service["environment"].items():
            if re.search("PASSWORD|AUTH_STRING|SECRET|TOKEN|KEY", name) and value is not None:
                assert re.fullmatch(r"\$\{\w+:[?-].*\}", value), name
    example = (COMPOSE.parent / ".env.example").read_text(encoding="utf-8")
    assert "\nPOSTGRES_PASSWORD=\n" in example
    assert "\nPREFECT_AUTH=\n" in example
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"deployments/.env", "deployments/worker.env"} <= {*ignored}
    assert {"**/.env", "**/worker.env"} <= {*(ROOT / ".dockerignore").read_text().splitlines()}


def test_every_variable_of_the_compose_file_is_explained() -> None:
    example = (COMPOSE.parent / ".env.example").read_text(encoding="utf-8")
    named = {*re.findall(r"\$\{(\w+)", COMPOSE.read_text(encoding="utf-8"))} - {"TIDEMARK_IMAGE"}
    assert {name for name in named if not re.search(rf"^#?{name}=", example, re.M)} == set()


def test_images_are_pinned_and_run_as_nobody_special() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG PYTHON=python:3\.11\.\d+-slim-bookworm$", text, re.MULTILINE)
    for stage in text.split("\nFROM ")[2:]:
        users = re.findall(r"^USER (.+)$", stage, re.MULTILINE)
        assert not users or users[-1] == "1000:1000"
    for image in re.findall(r"image: \$\{(?!TIDEMARK)\w+:-(.+)\}", COMPOSE.read_text()):
        assert re.fullmatch(r"\w+:\d+\.\d+(\.\d+)?-\w+", image)
    assert "--require-hashes --no-deps \\\n           -r requirements.txt" in text


def test_every_package_is_copied_into_the_image() -> None:
    import tomllib

    copied = re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = {name.removesuffix("*") for name in included}
    assert {*copied} == packages
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert packages <= {line.removeprefix("!") for line in allowed}


def test_an_image_is_read_with_the_stages_it_is_made_from() -> None:
    tidemark = read_image(ROOT / "Dockerfile", "tidemark")
    assert (tidemark.entrypoint, tidemark.command) == (["tidemark"], ["--help"])
    assert tidemark.environment["TIDEMARK_HOME"] == "/data"
    assert tidemark.folder == "/data"
    assert read_image(ROOT / "Dockerfile", "crawler") == tidemark
    with pytest.raises(ComposeError, match="no stage nothing, only build, base"):
        read_image(ROOT / "Dockerfile", "nothing")


def test_profiles_choose_who_scores() -> None:
    def workers(profiles: str) -> set[str]:
        services = read_services(COMPOSE, {**SECRETS, "COMPOSE_PROFILES": profiles})
        return {name for name in services if name.endswith("worker")}

    assert workers("cpu") == {"crawl-worker", "cpu-worker"}
    assert workers("gpu") == {"crawl-worker", "gpu-worker"}
    assert workers("gpus") == {"crawl-worker", "gpus-worker"}
    assert workers("") == {"crawl-worker"}


def test_every_pool_of_a_deployment_has_a_worker(compose: dict[str, Any]) -> None:
    commands = [each.get("command", []) for each in compose["services"].values()]
    pools = {each[each.index("--pool") + 1] for each in commands if "--pool" in each}
    assert ["worker", "--gpus", "all"] in commands  # serves both pools of GPUs
    assert pools | {"gpu", "gpu-all"} == {each.work_pool.name for each in read_deployments()}


def test_only_the_worker_of_models_behind_servers_reads_their_keys(checkout: Path) -> None:
    services = read_services(checkout, {**SECRETS, "COMPOSE_PROFILES": "api,cpu"})
    read = {name for name, each in services.items() if "TIDEMARK_API_KEYS__SIM" in each.settings}
    assert read == {"api-worker"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the compose file and the Dockerfile, with files of settings beside it."""
    folder = tmp_path / "deployments"
    folder.mkdir()
    for path in (COMPOSE, COMPOSE.parent / "Caddyfile"):
        shutil.copy(path, folder)
    shutil.copy(ROOT / "Dockerfile", tmp_path)
    (folder / "worker.env").write_text(
        'TIDEMARK_PERIOD_SOURCES=["govuk:week"]\nTIDEMARK_MODELS=["gpt2"]\n'
        "TIDEMARK_HOME=/elsewhere\nAWS_ACCESS_KEY_ID=of-worker.env\n"
    )
    (folder / "api.env").write_text("TIDEMARK_API_KEYS__SIM=planted")
    return folder / COMPOSE.name


def test_every_service_of_tidemark_has_its_environment_and_the_data(checkout: Path) -> None:
    services = read_services(checkout, {**SECRETS, "COMPOSE_PROFILES": "cpu,gpu,gpus,api"})
    of_tidemark = {name for name, each in services.items() if "tidemark:" in each.image}
    clients = of_tidemark - {"prefect-server", "report", "metrics"}
    assert clients == {"deploy", *(name for name in services if name.endswith("-worker"))}
    for name in of_tidemark - {"prefect-server"}:
        service = services[name]
        assert service.mounts["/data"] == "data", name
        assert service.environment["TIDEMARK_HOME"] == "/data", name
        # The object store's keys are those of .env, for all services.
        assert "AWS_ACCESS_KEY_ID" not in service.environment | service.settings, name
    for name in clients:
        service = services[name]
        assert service.environment["PREFECT_API_URL"] == "http://prefect-server:4200/api", name
        assert service.environment["PREFECT_API_AUTH_STRING"] == "user:password", name
        assert service.settings["TIDEMARK_PERIOD_SOURCES"] == '["govuk:week"]', name
        assert service.settings["TIDEMARK_MODELS"] == '["gpt2"]', name


def test_what_is_in_env_reaches_every_service_of_tidemark(checkout: Path) -> None:
    store = {"TIDEMARK_HOME": "s3://bucket/x", "AWS_ACCESS_KEY_ID": "key", "AWS_ENDPOINT_URL": "e"}
    asked = {**SECRETS, **store, "TIDEMARK_NOTIFY_URL": "https://hooks.example.org/x"}
    services = read_services(checkout, {**asked, "COMPOSE_PROFILES": "cpu,gpu,gpus,api"})
    for name, service in services.items():
        if "tidemark:" in service.image and name != "prefect-server":
            assert store.items() <= service.environment.items(), name
    assert services["deploy"].environment["TIDEMARK_NOTIFY_URL"] == "https://hooks.example.org/x"
    told = [name for name, each in services.items() if "TIDEMARK_NOTIFY_URL" in each.environment]
    assert told == ["deploy"]


@pytest.mark.parametrize(
    ("given", "url"),
    [({}, "https://localhost"), ({"REPORT_SITE": "r.example.org"}, "https://r.example.org")],
)
def test_the_address_of_the_report_is_the_proxy_s(
    given: dict[str, str], url: str, checkout: Path
) -> None:
    services = read_services(checkout, {**SECRETS, **given})
    assert services["proxy"].environment["REPORT_SITE"] == url.removeprefix("https://")
    for name in ("crawl-worker", "report"):  # who writes the site, and who serves it
        assert services[name].environment["TIDEMARK_REPORT_URL"] == url


def test_every_worker_takes_a_limited_number_of_runs(compose: dict[str, Any]) -> None:
    commands = [each.get("command", []) for each in compose["services"].values()]
    limits = {
        each[each.index("--pool") + 1]: each[each.index("--limit") + 1]
        for each in commands
        if "--pool" in each
    }
    assert limits == {"crawl": "8", "gpu": "1", "api": "1"}


def test_an_upgrade_stops_every_worker_first(checkout: Path) -> None:
    page = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
    block = page.partition("\n## Upgrade\n")[2].partition("```sh\n")[2].partition("```")[0]
    prefix = "docker compose --file deployments/compose.yaml "
    lines = [line for line in block.splitlines() if line.startswith(prefix)]
    steps = [shlex.split(line.removeprefix(prefix), comments=True) for line in lines]
    services = read_services(checkout, {**SECRETS, "COMPOSE_PROFILES": "cpu,gpu,gpus,api"})
    workers = {name for name, each in services.items() if "worker" in each.argv}
    assert {*steps[0][1:]} == workers
    assert [step[0] for step in steps] == ["stop", "exec", "build", "run", "up"]


def test_services_come_after_what_they_depend_on() -> None:
    services = [*read_services(COMPOSE, {**SECRETS, "COMPOSE_PROFILES": "cpu"}).values()]
    for index, service in enumerate(services):
        assert {*service.depends_on} <= {before.name for before in services[:index]}


def test_a_missing_secret_is_named() -> None:
    with pytest.raises(ComposeError, match=r"PREFECT_AUTH has no value: give it in deployments/\."):
        read_services(COMPOSE, {"POSTGRES_PASSWORD": "x"})


def test_variables_are_put_in_as_compose_does() -> None:
    text = "${A} ${B:-b} ${A:-b} ${A:?why} $$A ${C}"
    assert interpolated({"x": [text]}, {"A": "$1"}) == {"x": ["$1 b $1 $1 $A "]}


@pytest.mark.parametrize(("status", "code"), [(200, 0), (404, 1), (503, 1)])
def test_a_health_check_tells_what_answers_from_what_does_not(status: int, code: int) -> None:
    with serving(lambda _: Response(status)) as address:
        check = [sys.executable, str(ROOT / "deployments" / "answers.py"), address]
        proxy = {"http_proxy": "http://[::]:1"}
        done = run_process(*check, env=proxy)
    assert done.returncode == code
    assert done.stderr.startswith(address) == (code == 1)
