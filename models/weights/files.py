"""The files of a model: choice of the needed files, checks for completeness, digests.

To check weights, only file names, sizes and headers are read. No code is run.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open

from core.errors import ModelLoadError, kind_and_reason
from core.plugins import import_parts

MODEL_FAILURES = (
    SafetensorError, StrictDataclassError, OSError, ValueError, TypeError, LookupError,
    AttributeError, RuntimeError, ImportError, AssertionError, ArithmeticError, MemoryError,
)  # fmt: skip


ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
# Memory for weights, activations and the allocator, as a multiple of the weights' size.
ROOM_FACTOR = 1.1
GENERATION_CONFIG = "generation_config.json"  # states tokens that end a text; affects no loss
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "chat_template.jinja",
    "*.model",
    "*.tiktoken",
)
WEIGHT_FILES = ("model*.safetensors", "model*.safetensors.index.json")
# The largest known file is a tokenizer of 35 MB.
_TEXT_FILES = ("*config.json", *TOKENIZER_FILES, "*.index.json")
_MOST_TEXT_BYTES = 2**28
_LARGE_BYTES = 2**30  # from this size on, other files are examined
_BLOCK_BYTES = 512  # of ``st_blocks``
_SPARSE = 10  # a file whose bytes on disk are a tenth of its size, or fewer, has holes
ADAPTER_FILES = (ADAPTER_CONFIG, ADAPTER_WEIGHTS)
PICKLED_ADAPTER = "adapter_model.bin"
_SMALL_FILES = (
    "config.json", "model.safetensors.index.json", "tokenizer.json", "tokenizer.model",
    "tokenizer_config.json", "vocab.json", "merges.txt",
)  # fmt: skip
_LFS = b"version https://git-lfs"  # the first bytes of a file that git has in place of a large one
CODE_FILES = "*.py"
EVERYTHING = ("**/*",)  # a pinned folder's digest covers all files that its code could read
# Weights are one file, or parts with an index. transformers loads the first of these that exists.
_WHOLE_OR_PARTS = (
    (
        "model.safetensors",
        re.compile(r"model-\d+-of-\d+\.safetensors|model\.safetensors\.index\.json"),
    ),
    (
        "pytorch_model.bin",
        re.compile(r"pytorch_model-\d+-of-\d+\.bin|pytorch_model\.bin\.index\.json"),
    ),
)


def first_line(error: BaseException) -> str:
    """Return an error's class name and the first line of its message."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()[:300]}" if lines else type(error).__name__


@dataclass(frozen=True)
class Weights:
    """The size of the weights in a folder, as stated by the headers of the files.

    Attributes:
        num_tensors: number of tensors in all files, or None for pickles, which are not opened.
        num_elements: total number of elements of all tensors, or None for pickles.
    """

    num_tensors: int | None
    num_elements: int | None
    num_bytes: int


def choose_files(names: Iterable[str], location: str, is_trusted: bool) -> list[str]:
    """Choose the needed files of a repository: configuration, tokenizer, one set of weights.

    Files with code, and pickles, are chosen only for a model that is trusted (``trust: code``).
    Raise ModelLoadError if there are no weights, or only pickles and the model is not trusted.
    """
    plain = sorted(name for name in names if re.fullmatch(r"[\w.+-]+", name) and name[0] != ".")
    code = (CODE_FILES,) if is_trusted else ()
    patterns = ("config.json", GENERATION_CONFIG, ADAPTER_CONFIG, *TOKENIZER_FILES, *code)
    chosen = [name for name in plain if any(fnmatch.fnmatch(name, p) for p in patterns)]
    safe, pickled = (_choose_set(plain, *names) for names in _WHOLE_OR_PARTS)
    if ADAPTER_CONFIG in plain:
        safe = [name for name in plain if name == ADAPTER_WEIGHTS]
        pickled = [name for name in plain if name == PICKLED_ADAPTER]
    if safe:
        return chosen + safe
    if pickled and not is_trusted:
        raise pickles_error(location, pickled[0], None)
    if not pickled:
        raise ModelLoadError(
            f"{location}: has no weights that transformers loads (model.safetensors, or parts of "
            "it with model.safetensors.index.json)"
        )
    return chosen + pickled


def _choose_set(names: list[str], whole: str, part: re.Pattern[str]) -> list[str]:
    """Return the file of whole weights if there is one, else the parts."""
    return [whole] if whole in names else [name for name in names if part.fullmatch(name)]


def folder_digest(folder: Path, patterns: tuple[str, ...] = ()) -> str:
    """Return a digest (16 hex digits) of names and contents of files that decide losses.

    ``patterns`` select the files besides config.json; by default, tokenizer and safetensors. Raise
    ModelLoadError if a file cannot be read.
    """
    patterns = patterns or (*TOKENIZER_FILES, *WEIGHT_FILES)
    paths = {path for pattern in ("config.json", *patterns) for path in folder.glob(pattern)}
    folders = {path for path in paths if path.is_dir()}
    digest = hashlib.sha256()
    if patterns == EVERYTHING:
        for path in sorted(each for each in folders if each.is_symlink()):
            target = os.path.relpath(path.resolve(), folder.resolve())
            digest.update(f"{path.relative_to(folder).as_posix()} -> {target}\n".encode())
    try:
        for path in sorted(paths - folders):
            refuse_endless(path, folder)
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    except OSError as error:
        raise ModelLoadError(f"{folder}: cannot be read ({error})") from error
    return digest.hexdigest()[:16]


def linked_files(folder: Path) -> list[Path]:
    """Return the files of the hub's cache to which links in a model's folder lead.

    Raise ModelLoadError for any other link out of the folder. What it leads to is no part of the
    model, and no digest of the folder pins it.
    """
    own = folder.resolve()
    blobs = own.parent.parent / "blobs"  # beside models--org--name/snapshots/<commit>
    is_cached = own.parent.name == "snapshots" and blobs.parent.name.startswith("models--")
    found = []
    for path in own.rglob("*"):
        if not path.is_symlink():
            continue
        target = Path(os.path.realpath(path))
        next_link = Path(os.path.normpath(path.parent / path.readlink()))
        if target.is_relative_to(own) and next_link.is_relative_to(own):
            continue
        if not is_cached or target.parent != blobs or target != next_link:
            raise ModelLoadError(
                f"{folder}: {path.relative_to(own)} is a link to {target}, outside of the model's "
                "folder; a model with code reads its own files only, so put a copy in its place"
            )
        found.append(target)
    return found


def refuse_endless(path: Path, folder: Path) -> None:
    """Raise ModelLoadError for a file that would be read for hours, or without end."""
    # A file of the kernel has no stated size, and may have no end, as a device has none.
    if not path.is_file() or path.resolve().is_relative_to("/proc"):
        raise ModelLoadError(f"{folder}: {path.name} is not a regular file")
    found = path.stat()
    is_text = any(fnmatch.fnmatch(path.name, each) for each in _TEXT_FILES)
    if found.st_size < (_MOST_TEXT_BYTES if is_text else _LARGE_BYTES):
        return
    if path.suffix == ".safetensors":
        _shapes(path, str(folder))  # the header states where the file ends
    num_on_disk = found.st_blocks * _BLOCK_BYTES
    if is_text or 0 < num_on_disk < found.st_size / _SPARSE:
        raise ModelLoadError(
            f"{folder}: {path.name} has {found.st_size:,} bytes, which no model needs or which are "
            "holes of a sparse file; get the file again"
        )


def pickles_error(location: str, name: str, folder: Path | None) -> ModelLoadError:
    """Return the error for pickled weights of a model that is not trusted."""
    return ModelLoadError(
        f"{location}: its weights are pickles only ({name}); pickles may run code when they are "
        f"loaded; {advise_trust(location, folder)}"
    )


def advise_trust(location: str, folder: Path | None) -> str:
    """Return what to do to run a model with code; ``folder`` has its files, if they are here."""
    from models.catalogue import list_shipped

    name = next((each.name for each in list_shipped() if each.location == location), None)
    what = name or f"{Path(location).name.lower() or 'NAME'} {location}"
    if folder is not None and name is None:
        is_own = folder == Path(location).expanduser()  # else a folder of the hub's cache
        what += f" --revision {folder_digest(folder, EVERYTHING) if is_own else folder.name}"
    return (
        "read the code; to run it in a process without network, "
        f"`tidemark models add {what} --trust code`"
    )


def examine_weights(folder: Path, location: str, is_trusted: bool) -> Weights:
    """Check that all files of a model's weights exist and are complete; return the weights' size.

    Raise ModelLoadError if weights are missing, cut off or damaged, or if the index names files
    outside the folder.
    """
    paths = weight_paths(folder, location, is_trusted)
    num_bytes = sum(path.stat().st_size for path in paths)
    if paths[0].suffix != ".safetensors":
        return Weights(None, None, num_bytes)
    shapes = [shape for path in paths for shape in _shapes(path, location)]
    return Weights(len(shapes), sum(math.prod(shape) for shape in shapes), num_bytes)


def is_whole(folder: Path, is_trusted: bool) -> bool:
    """Return True if a cached folder has all files that its own index and configuration require."""
    names = [path.name for path in folder.iterdir()]
    try:
        choose_files(names, str(folder), is_trusted)
        if ADAPTER_CONFIG not in names:
            weight_paths(folder, str(folder), is_trusted)
    except ModelLoadError:
        return False
    return True


def weight_paths(folder: Path, location: str, is_trusted: bool) -> list[Path]:
    """Return the files of weights that transformers would load, sorted by name.

    Raise ModelLoadError if files are missing, the index is broken, or pickles are not trusted.
    """
    names = [path.name for path in folder.iterdir() if path.is_file()]
    indices = ["model.safetensors.index.json", "pytorch_model.bin.index.json"]
    wholes = [whole for whole, _ in _WHOLE_OR_PARTS]
    for whole, index in zip(wholes, indices, strict=True):
        if whole in names or index in names:
            if whole == "pytorch_model.bin" and not is_trusted:
                raise pickles_error(location, whole, folder)
            return [folder / whole] if whole in names else _parts(folder / index, location)
    raise ModelLoadError(
        f"{location}: has no weights; expected model.safetensors, or parts of it with "
        "model.safetensors.index.json, as save_pretrained writes them"
    )


def _parts(index: Path, location: str) -> list[Path]:
    """Return the files that an index of weights names; raise ModelLoadError if one is missing."""
    try:
        parts = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelLoadError(
            f"{location}: {index.name} is no index of weights ({kind_and_reason(error)}); "
            "get the file again"
        ) from error
    for part in parts:
        if not isinstance(part, str) or not re.fullmatch(r"[\w+-][\w.+-]*", part):
            raise ModelLoadError(
                f"{location}: {index.name} names {part!r}, which is no file of the model's folder; "
                "nothing outside it is read"
            )
        if not (index.parent / part).is_file():
            raise ModelLoadError(
                f"{location}: {part} is missing, one of {len(parts)} files of weights that "
                f"{index.name} names; get the file again"
            )
    if not parts:
        raise ModelLoadError(f"{location}: {index.name} names no files, so there are no weights")
    return [index.parent / part for part in parts]


def refuse_pointers(folder: Path, location: str) -> None:
    """Raise ModelLoadError if git LFS has a pointer in the place of config, index or tokenizer."""
    for name in _SMALL_FILES:
        if _is_pointer(folder / name):
            raise ModelLoadError(
                f"{location}: {name} is a pointer of git LFS and not the file; `git lfs pull` in "
                "the folder brings it"
            )


def _is_pointer(path: Path) -> bool:
    """Return True if git LFS has a pointer in the place of a file; False if it is unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(len(_LFS)) == _LFS
    except OSError:
        return False


def _shapes(path: Path, location: str) -> list[list[int]]:
    """Return the shape of every tensor of a file; opening the file checks header and size."""
    try:
        with safe_open(path, framework="numpy") as file:
            return [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        if _is_pointer(path):
            raise ModelLoadError(
                f"{location}: {path.name} is a pointer of git LFS and not the weights; "
                "`git lfs pull` in the folder brings them"
            ) from error
        raise ModelLoadError(
            f"{location}: the weights cannot be loaded: {path.name} ({path.stat().st_size} bytes) "
            f"is cut off or damaged ({error}); get the file again"
        ) from error


def read_base(folder: Path, location: str) -> tuple[str, str | None]:
    """Return location and revision of an adapter's base model.

    The location is a folder relative to the adapter's folder or, if there is none, a hub id. Raise
    ModelLoadError if adapter_config.json is broken, or names no model.
    """
    path = folder / ADAPTER_CONFIG
    refuse_endless(path, folder)
    try:
        config = json.loads(path.read_bytes())
        base = config["base_model_name_or_path"]
        revision = config.get("revision")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelLoadError(
            f"{location}: holds an adapter, but {ADAPTER_CONFIG} does not say for which model "
            f"({kind_and_reason(error)}); expected base_model_name_or_path, as peft writes it"
        ) from error
    if not isinstance(base, str) or not base.strip() or not isinstance(revision, str | None):
        raise ModelLoadError(
            f"{location}: holds an adapter, but {ADAPTER_CONFIG} names {base!r} at revision "
            f"{revision!r} as its model; expected a folder or a hub id"
        )
    own = folder / Path(base).expanduser()  # if ``base`` is absolute, the result is ``base``
    return (str(own.resolve()) if own.is_dir() else base), revision or None


def adapter_part(location: str) -> ModuleType:
    """Return the module of an extra that merges adapters; raise ModelLoadError without one."""
    for part in import_parts("adapters"):
        return part
    raise ModelLoadError(
        f"{location}: holds an adapter, which extras/adapters merges into its model, and that "
        "folder is missing; merge it with peft and save the model"
    )
