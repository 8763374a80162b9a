import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from simulator.server import Web


def rows(tidemark: Callable[..., Any], query: str) -> list[dict[str, Any]]:
    ran = tidemark("sql", query, "--format=json")
    assert ran.code == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)
    return found


def write_entry(home: Path, web: Web, served_name: str, **more: object) -> None:
    home.mkdir(exist_ok=True)
    location = f"{web.urls['openai_api']}/v1"
    entry = {"name": "sim", "kind": "api", "location": location, "served_name": served_name}
    entry |= {"api_key": "sim", "released": "2024-02-01", **more}
    (home / "catalogue.yaml").write_text(yaml.safe_dump([entry]))
