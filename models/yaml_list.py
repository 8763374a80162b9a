"""Reading of YAML files that users write, which may be hostile."""

from __future__ import annotations

from typing import Any

import yaml

from core.errors import MalformedInput
from core.storage.store import Store

_MAX_BYTES = 2**20
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Loader without merge keys, of which a kilobyte may stand for gigabytes."""

    def flatten_mapping(self, node: Any) -> None:
        """Refuse merge keys; otherwise do as the base class."""
        merges = [key for key, _ in node.value if key.tag == _MERGE]
        if merges:
            raise yaml.MarkedYAMLError(
                problem="a merge key (<<); write its keys out", problem_mark=merges[0].start_mark
            )
        super().flatten_mapping(node)


def read_yaml(store: Store, path: str) -> bytes:
    """Return the bytes of a file of models; raise MalformedInput if they are too many."""
    with store.open(path) as file:
        data = file.read(_MAX_BYTES + 1)  # a device has no end
    if len(data) > _MAX_BYTES:
        raise MalformedInput(
            f"{store.url(path)} has more than {_MAX_BYTES:,} bytes; expected a list of models"
        )
    return data


def parse_yaml_list(data: bytes, where: str, is_own: bool = False) -> list[object]:
    """Parse a YAML list of models; an empty file is an empty list.

    With ``is_own``, a parser in C reads a file that comes with tidemark, ten times as fast.

    Raise MalformedInput, which begins with ``where``, for other data.
    """
    loader: Any = getattr(yaml, "CSafeLoader", _Loader) if is_own else _Loader
    try:
        records = yaml.load(data, loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, AttributeError, LookupError, OverflowError) as error:
        # Impossible dates, and numbers of thousands of digits, are no YAMLError.
        raise MalformedInput(f"{where} is not YAML: {error}") from error
    except RecursionError:
        raise MalformedInput(f"{where} is nested too deeply; expected a list of models") from None
    if records is None:
        return []
    if not isinstance(records, list):
        raise MalformedInput(f"{where}: expected a list of models, got {type(records).__name__}")
    return records


def shown(value: object) -> str:
    """Return a short text, or the type of another value, which may be endless by its aliases."""
    return value[:100] if isinstance(value, str) else f"a value of type {type(value).__name__}"
