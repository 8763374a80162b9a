"""Images as byte streams: greyscale patches of 64 rows and 128 columns, one byte a pixel.

Source: patches as in Li et al. 2024, section 4.1 (news images); grey is ITU-R BT.601 luma.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from core.errors import ItemUnavailable
from crawlers.user_files import Piece

Pixels = npt.NDArray[np.uint8]

HEIGHT, WIDTH = 64, 128  # pixels of a patch
MAX_PATCHES = 16  # of one image: more of it would say little that is new
MAX_PIXELS = 2**26  # decoded, some 600 MB at most; a camera of today gives 50 million
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_ORIENTATION = 0x0112  # tag of EXIF
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow expects its readers to raise on damaged files, and what flipped bits made them raise.
_DAMAGE = (
    OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error,
)  # fmt: skip


def read_patches(path: Path) -> list[Piece]:
    """Cut an image into patches, without resizing: a grid from the top left corner, row by row.

    Of more than ``MAX_PATCHES`` a smaller grid of them is taken, spread over the whole image. The
    first frame counts; transparency does not. An image is turned as its EXIF data say, so that
    its rows run as people see them.

    Returns:
        The patches, numbered over the whole grid; each 64 × 128 bytes, row by row.

    Raises:
        ItemUnavailable: ``damaged``, also where it ends early; ``too_large`` for ``MAX_PIXELS``;
            ``too_small`` for one patch.
    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata that are not read; sizes are checked here
        try:
            with Image.open(file, formats=_FORMATS) as image:
                grey = _grey(image)
        except Image.DecompressionBombError as error:
            raise ItemUnavailable("too_large", str(error)) from error
        except _DAMAGE as error:
            raise ItemUnavailable("damaged", f"not a whole image: {error}") from error
    return _cut(grey)


def _grey(image: Image.Image) -> Pixels:
    """Decode into an array of bytes, (height, width)."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ItemUnavailable(
            "too_large", f"{width} x {height} pixels, at most {MAX_PIXELS} in all are read"
        )
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    if image.mode.startswith("I;16"):  # which Pillow would cut off at 255
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "transparency" in image.info:
        image = image.convert("RGBA")
    image = image.convert("L")
    return np.asarray(image if turn is None else image.transpose(turn))


def _cut(grey: Pixels) -> list[Piece]:
    height, width = grey.shape
    rows, columns = height // HEIGHT, width // WIDTH
    if not rows * columns:
        raise ItemUnavailable(
            "too_small", f"{width} x {height} pixels, at least {WIDTH} x {HEIGHT} are needed"
        )
    side = int(MAX_PATCHES**0.5)
    num_rows = min(rows, max(side, MAX_PATCHES // columns))
    num_columns = min(columns, MAX_PATCHES // num_rows)
    pieces = []
    for row in _spread(num_rows, rows):
        for column in _spread(num_columns, columns):
            top, left = row * HEIGHT, column * WIDTH
            patch = grey[top : top + HEIGHT, left : left + WIDTH]
            place = {"top": top, "left": left, "image_width": width, "image_height": height}
            pieces.append(Piece(row * columns + column, patch.tobytes(), place))
    return pieces


def _spread(count: int, total: int) -> list[int]:
    """Return ``count`` of the numbers below ``total``, evenly spread; all where they are equal."""
    return [(2 * index + 1) * total // (2 * count) for index in range(count)]
