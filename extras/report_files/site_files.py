"""Functions that write files beside the site."""

from __future__ import annotations

from extras.report_files.charts import write_figures
from extras.report_files.small_database import write_small_database

__all__ = ["write_figures", "write_small_database"]
