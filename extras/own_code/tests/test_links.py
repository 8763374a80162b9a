"""Links in the folder of a model with code, also those that are replaced after the digest."""

import sys
from pathlib import Path

import pytest

from core.errors import ModelLoadError
from core.settings import Settings
from extras.own_code.engines import _spec
from models.weights.checkpoint import open_checkpoint
from tests.forks import ROOT, run_process
from tests.models.weights.test_own_code import own_model

READ = """
import sys
from pathlib import Path
from extras.own_code.guard import confine
home, *names = map(Path, sys.argv[1:])
own = names[: len(names) // 2]
confine([Path(sys.prefix), Path(sys.base_prefix)], home, own)
for path in names[len(names) // 2 :]:
    try:
        print(path.read_text())
    except PermissionError:
        print("refused")
"""


@pytest.mark.usefixtures("confinement")
def test_a_link_gives_no_right_to_its_target(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "c"
    blobs = tmp_path / "models--a--b" / "blobs"
    home = tmp_path / "home"
    for folder in (snapshot, blobs, home, tmp_path / "out"):
        folder.mkdir(parents=True)
    (tmp_path / "out" / "secret").write_text("secret")
    (blobs / "kept").write_text("kept")
    (blobs / "swapped").symlink_to(tmp_path / "out" / "secret")
    (snapshot / "kept").symlink_to("../../blobs/kept")
    (snapshot / "swapped").symlink_to("../../blobs/swapped")
    (snapshot / "link").symlink_to(tmp_path / "out" / "secret")
    (snapshot / "folder").symlink_to(tmp_path / "out")
    own = [snapshot, blobs / "kept", blobs / "swapped", tmp_path / "missing"]
    names = ["kept", "swapped", "link", "folder/secret"]
    read = [snapshot / name for name in names]
    done = run_process(sys.executable, "-c", READ, home, *own, *read, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["kept", "refused", "refused", "refused"]


def test_links_are_examined_again_before_the_start(
    folder: Path, settings: Settings, tmp_path: Path
) -> None:
    entry = own_model(folder, "")
    files = open_checkpoint(str(folder), entry.revision, settings, is_trusted=True)
    assert _spec(files, tmp_path)["folders"] == [str(folder)]
    (folder / "own.py").unlink()
    (folder / "own.py").symlink_to("/etc/passwd")
    with pytest.raises(ModelLoadError, match=r"own.py is a link to /etc/passwd, outside"):
        _spec(files, tmp_path)
