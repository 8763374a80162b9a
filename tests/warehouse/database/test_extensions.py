import re
from pathlib import Path


def test_every_connection_is_offline() -> None:
    root = Path(__file__).parents[3]
    calls = [
        f"{file.name}: {call}"
        for room in ("warehouse", "reports", "instruments")
        for file in (root / room).rglob("*.py")
        for call in re.findall(r"(?<!`)duckdb\.connect\((.*)", file.read_text())
        if "OFFLINE" not in file.read_text() or "config=" not in call
    ]
    assert calls == []
