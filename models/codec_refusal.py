"""What decides a probability's last bits, and the refusal to decode where any of it differs.

Floating-point sums depend on their order, and their order on the library's version, the
processor's instructions, the number of threads and the shapes. A short pass that comes out the same
is no proof that a long one does, so each known difference is refused even then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from core.errors import MalformedInput, ModelLoadError, NotReproducible
from models.checkpoint import CheckpointFiles
from models.codec_file import Dtype, Header
from models.codec_text import PROTOCOL
from models.machine import describe_device, library_versions
from models.model_files import choose_files, folder_digest
from models.protocols import get_protocol
from models.stepwise import StepwiseModel, probe_digest

_DTYPES: dict[torch.dtype, Dtype] = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
}
# What is recorded for people alone: the format and its checks say whether our own code fits.
_INFORMATIVE = {"tidemark"}


def folder_files_digest(folder: Path) -> str:
    """Return 16 hex digits over a folder's files of configuration, tokenizer and weights.

    Raises:
        ModelLoadError: the folder has no weights, or a file cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir() if path.is_file()]
    except OSError as error:
        raise ModelLoadError(f"{folder}: cannot be read ({error})") from error
    chosen = choose_files(names, str(folder), allow_pickle=True)
    return folder_digest(folder, tuple(chosen))


def model_digest(files: CheckpointFiles) -> str:
    """Return the digest of a model's files; for an adapter, its own, "+", and its base's.

    Raises:
        ModelLoadError: as ``folder_files_digest``.
    """
    parts = [files.folder] if files.adapter is None else [files.adapter, files.folder]
    return "+".join(map(folder_files_digest, parts))


def dtype_name(files: CheckpointFiles) -> Dtype:
    """Return the weights' dtype as the settings name it."""
    return _DTYPES[files.dtype]


def environment(files: CheckpointFiles) -> dict[str, str]:
    """Return hardware, implementation of attention and versions, as a header records them."""
    hardware = describe_device(files.device)
    if files.device.type == "cpu":  # the same processor may be told to use fewer instructions
        hardware += f" {torch.backends.cpu.get_cpu_capability()}"
    return {
        "attention": files.attention,
        "hardware": hardware,
        **library_versions("numpy", "tokenizers", "transformers"),
        "torch": torch.__version__,  # with its build: CPU, or which CUDA
    }


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let torch compute with so many threads for the while."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_protocol(header: Header, where: str) -> None:
    """Refuse a protocol that this tidemark does not cut by.

    Raises:
        NotReproducible: another name, or another definition under the name.
    """
    known = get_protocol(PROTOCOL)
    if (header.protocol, header.protocol_digest) != (known.name, known.digest):
        raise NotReproducible(
            f"{where} is cut into chunks by protocol {header.protocol} "
            f"({header.protocol_digest}); this tidemark decodes {known.name} ({known.digest}) alone"
        )


def check_device(header: Header, where: str) -> None:
    """Refuse a device that is not here.

    Raises:
        NotReproducible: no such device.
    """
    if header.device == "cpu" or (header.device == "cuda" and torch.cuda.is_available()):
        return
    raise NotReproducible(
        f"{where} was written on {header.device} ({header.environment.get('hardware')}), which "
        "torch does not find here; decode it on such a machine"
    )


def check_files(header: Header, files: CheckpointFiles, where: str) -> None:
    """Refuse other weights, another tokenizer, other libraries or other hardware.

    Raises:
        NotReproducible: says what differs.
    """
    if (found := model_digest(files)) != header.digest:
        raise NotReproducible(
            f"{where} was written with {header.model} of digest {header.digest} (revision "
            f"{header.revision}); {files.location} has digest {found}: other weights or another "
            "tokenizer"
        )
    context = get_protocol(PROTOCOL).effective_context(files.context)
    here = environment(files)
    known = here | {"context": str(context), "dtype": dtype_name(files)}
    recorded = header.environment | {"context": str(header.context), "dtype": header.dtype}
    differences = [
        f"{name} {recorded.get(name, 'unknown')} (here {known.get(name, 'unknown')})"
        for name in sorted({*known, *recorded} - _INFORMATIVE)
        if recorded.get(name) != known.get(name)
    ]
    if differences:
        raise NotReproducible(
            f"{where} was written with {', '.join(differences)}; the probabilities would differ "
            "in their last bits, and the text would be lost at the first of them"
        )


def check_pass(header: Header, model: StepwiseModel, most_rows: int, where: str) -> None:
    """Refuse where a short pass of the recorded shape does not give the recorded floats.

    Args:
        header: of the file.
        model: takes the steps, with the recorded number of threads.
        most_rows: that are coded together with this model here.
        where: the file's name.

    Raises:
        MalformedInput: larger groups than tidemark makes.
        NotReproducible: other floats.
    """
    if header.batch > min(most_rows, max(1, header.num_chunks)):
        raise MalformedInput(
            f"{where}: groups of {header.batch} chunks, where there are {header.num_chunks} and "
            f"at most {most_rows} fit"
        )
    if header.keeps_state != model.keeps_state or probe_digest(model, header.batch) != header.probe:
        raise NotReproducible(
            f"{where} was written where the model gave other floats than it gives here (by a short "
            "pass on fixed tokens): another build of a library, another processor or another "
            "setting of torch; decode it where it was written"
        )
