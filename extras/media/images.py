"""Decoding of images, and cutting into greyscale patches (Li et al. 2024, section 4.1)."""

from __future__ import annotations

import struct
import warnings
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from core.errors import ItemUnavailable
from crawlers.pieces import HEIGHT, WIDTH, Piece

MAX_PATCHES = 16  # maximum patches of one image; more would add little new data
MAX_PIXELS = 2**26  # maximum per image (600 MB decoded); cameras have 50 million pixels (2026)
_IMAGE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_ORIENTATION = 0x0112  # EXIF tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Errors that Pillow raises on damaged files: documented ones, and ones seen after bit flips.
_DAMAGE = (
    OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error,
)  # fmt: skip


def read_patches(path: Path) -> list[Piece]:
    """Cut an image into greyscale patches: a grid from the top left corner, row by row.

    The image is first rotated by its EXIF data, and never resized. A patch has 64 rows of 128
    bytes. If the grid has more than ``MAX_PATCHES`` patches, only that many are kept, spread over
    the image. A patch's number is its position in the whole grid, row by row. Of an animation, only
    the first frame is used. Raise ItemUnavailable with a reason: ``damaged`` (or truncated),
    ``too_large`` (more than ``MAX_PIXELS``) or ``too_small`` (less than one patch).
    """
    grey = _decode(path)
    rows, columns = _grid(grey)
    side = int(MAX_PATCHES**0.5)
    num_rows = min(rows, max(side, MAX_PATCHES // columns))
    num_columns = min(columns, MAX_PATCHES // num_rows)
    chosen = product(_spread(num_rows, rows), _spread(num_columns, columns))
    return [_patch(grey, row * columns + column) for row, column in chosen]


def draw_patches(path: Path, rank: Callable[[int], bytes]) -> list[Piece]:
    """Cut ``MAX_PATCHES`` patches or fewer from an image's grid, those of the lowest rank first.

    Raise the errors of ``read_patches``.
    """
    grey = _decode(path)
    rows, columns = _grid(grey)
    return [_patch(grey, index) for index in sorted(range(rows * columns), key=rank)[:MAX_PATCHES]]


def _decode(path: Path) -> npt.NDArray[np.uint8]:
    """Return an image in grey; raise an error if it is damaged or too large."""
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore Pillow's warnings: ``_grey`` checks the size
        try:
            with Image.open(file, formats=_IMAGE_FORMATS) as image:
                return _grey(image)
        except Image.DecompressionBombError as error:
            raise ItemUnavailable("too_large", str(error)) from error
        except _DAMAGE as error:
            raise ItemUnavailable("damaged", f"not a whole image: {error}") from error


def _grey(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Decode an image to greyscale bytes; shape (height, width)."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ItemUnavailable(
            "too_large", f"{width} x {height} pixels, at most {MAX_PIXELS} in all are read"
        )
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    if image.mode.startswith("I;16"):  # Pillow would clip 16-bit values at 255
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "transparency" in image.info:
        image = image.convert("RGBA")
    image = image.convert("L")
    return np.asarray(image if turn is None else image.transpose(turn))


def _grid(grey: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Return the number of rows and columns of patches; ItemUnavailable if there is none."""
    height, width = grey.shape
    rows = height // HEIGHT
    columns = width // WIDTH
    if not rows * columns:
        raise ItemUnavailable(
            "too_small", f"{width} x {height} pixels, at least {WIDTH} x {HEIGHT} are needed"
        )
    return rows, columns


def _patch(grey: npt.NDArray[np.uint8], index: int) -> Piece:
    """Return the patch of an image at a place, counted row by row."""
    height, width = grey.shape
    row, column = divmod(index, width // WIDTH)
    top = row * HEIGHT
    left = column * WIDTH
    data = grey[top : top + HEIGHT, left : left + WIDTH].tobytes()
    place = {"top": top, "left": left, "image_width": width, "image_height": height}
    return Piece(index, data, place)


def _spread(count: int, total: int) -> list[int]:
    """Return ``count`` evenly spread numbers from 0 to ``total - 1``; ``count`` <= ``total``."""
    return [(2 * index + 1) * total // (2 * count) for index in range(count)]
