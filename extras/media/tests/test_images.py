import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from core.errors import ItemUnavailable
from crawlers.pieces import HEIGHT, WIDTH, Piece
from extras.media.images import MAX_PATCHES, read_patches
from tests.crawlers.conftest import refused


def _picture(height: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A picture whose patches all differ, and whose rows differ from its columns."""
    row, column = np.mgrid[:height, :width]
    return ((row * 3 + column * 7 + (row // 64) * 40 + (column // 128) * 90) % 256).astype(np.uint8)


def _save(path: Path, image: Image.Image, format_: str = "PNG", **options: Any) -> Path:
    image.save(path, format_, **options)
    return path


def _pixels(piece: Piece) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(piece.data, dtype=np.uint8).reshape(HEIGHT, WIDTH)


def test_a_grid_is_cut_from_the_top_left_row_by_row(tmp_path: Path) -> None:
    picture = _picture(200, 300)  # 3 rows of 2 patches, and margins
    pieces = read_patches(_save(tmp_path / "a", Image.fromarray(picture)))
    assert [piece.index for piece in pieces] == [0, 1, 2, 3, 4, 5]
    for piece, (top, left) in zip(
        pieces, [(0, 0), (0, 128), (64, 0), (64, 128), (128, 0), (128, 128)], strict=True
    ):
        expected = {"top": top, "left": left, "image_width": 300, "image_height": 200}
        assert piece.place == expected
        assert (_pixels(piece) == picture[top : top + 64, left : left + 128]).all()


@pytest.mark.parametrize(
    ("height", "width", "rows", "columns"),
    [
        (64, 128, {0}, {0}),
        (1080, 1920, {2, 6, 10, 14}, {1, 5, 9, 13}),  # 16 rows of 15
        (64, 128 * 40, {0}, set(range(1, 40, 5)) | {3, 8, 13, 18, 23, 28, 33, 38}),
        (64 * 8, 128 * 2, set(range(8)), {0, 1}),
        (64 * 20, 128, {0, 1, 3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19}, {0}),
    ],
)
def test_of_a_large_image_patches_are_spread(
    tmp_path: Path, height: int, width: int, rows: set[int], columns: set[int]
) -> None:
    pieces = read_patches(_save(tmp_path / "a", Image.fromarray(_picture(height, width))))
    assert {int(piece.place["top"]) // HEIGHT for piece in pieces} == rows
    assert {int(piece.place["left"]) // WIDTH for piece in pieces} == columns
    assert len(pieces) == len(rows) * len(columns) <= MAX_PATCHES
    assert len({piece.index for piece in pieces}) == len(pieces)


def test_grey_is_luma(tmp_path: Path) -> None:
    colours = np.zeros((64, 128, 3), dtype=np.uint8)
    colours[:, :32, 0] = 255
    colours[:, 32:64, 1] = 255
    colours[:, 64:96, 2] = 255
    [piece] = read_patches(_save(tmp_path / "a", Image.fromarray(colours)))
    # 0.299, 0.587 and 0.114 of 255
    assert _pixels(piece)[5, [0, 40, 80, 120]].tolist() == [76, 150, 29, 0]


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "WEBP", "GIF"])
def test_formats(tmp_path: Path, format_: str) -> None:
    smooth = np.mgrid[:64, :128][1].astype(np.uint8)
    options = {"lossless": True} if format_ == "WEBP" else {}
    path = _save(tmp_path / "name.of.no.format", Image.fromarray(smooth), format_, **options)
    [piece] = read_patches(path)
    assert np.abs(_pixels(piece).astype(int) - smooth).max() <= (3 if format_ == "JPEG" else 0)


@pytest.mark.parametrize("format_", ["PNG", "WEBP", "GIF"])
def test_the_first_frame_counts(tmp_path: Path, format_: str) -> None:
    first, second = (Image.new("L", (128, 64), value) for value in (40, 200))
    options = {"lossless": True} if format_ == "WEBP" else {}
    path = _save(
        tmp_path / "a", first.convert("RGB"), format_, save_all=True,
        append_images=[second.convert("RGB")], **options,
    )  # fmt: skip
    assert set(read_patches(path)[0].data) == {40}


def test_16_bits_keep_their_upper_half_and_transparency_is_passed_over(tmp_path: Path) -> None:
    deep = np.full((64, 128), 0xAB12, dtype=np.uint16)
    [piece] = read_patches(_save(tmp_path / "a", Image.fromarray(deep)))
    assert set(piece.data) == {0xAB}
    [piece] = read_patches(_save(tmp_path / "b", Image.new("RGBA", (128, 64), (90, 90, 90, 0))))
    assert set(piece.data) == {90}
    palette = Image.new("P", (128, 64), 3)
    palette.putpalette([70] * 768)
    [piece] = read_patches(_save(tmp_path / "c", palette, transparency=bytes(range(256))))
    assert set(piece.data) == {70}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_as_it_says(tmp_path: Path, orientation: int) -> None:
    seen = _picture(64, 128)
    undo = {  # the stored form for each orientation of the camera
        1: seen, 2: seen[:, ::-1], 3: seen[::-1, ::-1], 4: seen[::-1], 5: seen.T,
        6: np.rot90(seen), 7: seen[::-1, ::-1].T, 8: np.rot90(seen, -1),
    }  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(undo[orientation]))
    [piece] = read_patches(_save(tmp_path / "a", stored, exif=exif))
    assert (_pixels(piece) == seen).all()


@pytest.mark.parametrize("size", [(127, 64), (128, 63), (64, 128), (1, 1)])
def test_an_image_smaller_than_a_patch(tmp_path: Path, size: tuple[int, int]) -> None:
    with refused("too_small", f"{size[0]} x {size[1]} pixels"):
        read_patches(_save(tmp_path / "a", Image.new("L", size)))


@pytest.mark.parametrize("size", [(8193, 8192), (20_000, 20_000)])  # ours; Pillow's own limit
def test_a_bomb_is_not_decoded(tmp_path: Path, size: tuple[int, int]) -> None:
    path = _save(tmp_path / "a", Image.new("1", size))
    assert path.stat().st_size < 100_000
    with refused("too_large"):
        read_patches(path)


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "WEBP", "GIF"])
def test_damage_is_found_or_harmless(tmp_path: Path, format_: str) -> None:
    rng = np.random.default_rng(0)
    noisy = (_picture(64, 128) // 2 + rng.integers(0, 60, (64, 128))).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noisy).save(buffer, format_)
    whole = buffer.getvalue()
    path = tmp_path / "a"
    for end in np.linspace(12, len(whole) - 40, 25).astype(int):  # the last bytes may be markers
        path.write_bytes(whole[:end])
        with refused("damaged"):
            read_patches(path)
    num_damaged = 0
    for _ in range(100):
        broken = bytearray(whole)
        for position in rng.integers(8, len(whole) if rng.integers(2) else 80, 4):
            broken[position] = rng.integers(256)
        path.write_bytes(broken)
        try:
            pieces = read_patches(path)
        except ItemUnavailable as error:
            assert error.reason in {"damaged", "too_small", "too_large"}
            num_damaged += 1
        else:
            assert all(len(piece.data) == HEIGHT * WIDTH for piece in pieces)
    assert num_damaged > 10


def test_other_formats_are_not_opened(tmp_path: Path) -> None:
    for format_ in ("BMP", "TIFF", "PPM"):
        with refused("damaged"):
            read_patches(_save(tmp_path / "a", Image.new("L", (128, 64)), format_))
