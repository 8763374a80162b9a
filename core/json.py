"""The type of JSON objects that are received and not validated yet, or are sent."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
