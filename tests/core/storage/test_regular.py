import os
from pathlib import Path

import pytest

from core.errors import MalformedInput
from core.storage.regular import require_regular


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "rows.parquet"
    os.mkfifo(pipe)
    link = tmp_path / "link.parquet"
    link.symlink_to(pipe)
    for path in (pipe, link, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(MalformedInput, match="no regular file"):
            require_regular(path)


def test_files_and_links_to_files_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a\n")
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    for path in (file, link, tmp_path, tmp_path / "none.csv"):
        require_regular(path)
