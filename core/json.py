"""The type of a JSON object that is not validated yet, or that is only sent out."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
