"""Photos and scans as the world has them: turned, deep, inked, profiled, broken, bombs."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms
from tests.disk import largest_file
from tests.unit.reward import pool_ground

from watercolour.api.errors import InfrastructureError, InputError
from watercolour.api.reasons import Reason
from watercolour.render.paint import decode
from watercolour.reward import licences, picture_file, pool_import, pool_intake
from watercolour.reward import pool as pools
from watercolour.reward.pool_import import Rights

OWN = Rights("own")


def save(path: Path, image: Image.Image, kind: str = "PNG", **options: object) -> Path:
    image.save(path, kind, **options)
    return path


def half(first: str, second: str, size: tuple[int, int] = (120, 80)) -> Image.Image:
    """Two colours beside each other."""
    image = Image.new("RGB", size, second)
    image.paste(first, (0, 0, size[0] // 2, size[1]))
    return image


def corner(image: Image.Image, x: float = 0.1, y: float = 0.1) -> tuple[int, ...]:
    found = image.getpixel((int(x * image.width), int(y * image.height)))
    assert isinstance(found, tuple)
    return found


def test_a_photo_stands_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned to the right
    path = save(tmp_path / "a.jpg", half("red", "blue"), "JPEG", exif=exif, quality=95)
    found = picture_file.read(path)
    assert found.size == (80, 120)
    assert corner(found, 0.5, 0.1)[0] > 200
    assert corner(found, 0.5, 0.9)[2] > 200
    assert not Image.open(io.BytesIO(picture_file.png(found))).getexif()


def test_sixteen_bits_keep_their_greys(tmp_path: Path) -> None:
    deep = np.tile(np.linspace(0, 65535, 100).astype(np.uint16), (80, 1))
    found = np.asarray(picture_file.read(save(tmp_path / "a.png", Image.fromarray(deep))))
    assert found.dtype == np.uint8
    assert found[0, :, 0].tolist() == (deep[0] >> 8).tolist()


def test_a_turned_scan_of_sixteen_bits_stands_upright(tmp_path: Path) -> None:
    deep = np.zeros((70, 110), np.uint16)
    deep[:, :55] = 65535
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    path = save(tmp_path / "a.png", Image.fromarray(deep), exif=exif)
    found = picture_file.read(path)
    assert corner(found, 0.1, 0.5)[0] == 0
    assert corner(found, 0.9, 0.5)[0] == 255


def test_a_printer_s_inks_become_colours(tmp_path: Path) -> None:
    image = half("red", "white").convert("CMYK")
    for kind in ("JPEG", "TIFF"):
        found = picture_file.read(save(tmp_path / f"a.{kind}", image, kind))
        assert found.mode == "RGB"
        red, green, blue = corner(found)
        assert red > 200
        assert max(green, blue) < 60


def test_a_colour_profile_is_followed(tmp_path: Path) -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    same = picture_file.read(save(tmp_path / "a.png", half("red", "blue"), icc_profile=lab))
    assert corner(same) == (255, 0, 0)
    broken = save(tmp_path / "b.png", half("red", "blue"), icc_profile=b"no profile at all")
    assert corner(picture_file.read(broken)) == (255, 0, 0)


def test_what_is_transparent_lies_on_white(tmp_path: Path) -> None:
    clear = Image.new("RGBA", (80, 80), (200, 0, 0, 0))
    assert corner(picture_file.read(save(tmp_path / "a.png", clear))) == (255, 255, 255)
    indexed = Image.new("P", (80, 80), 1)
    indexed.putpalette([0, 0, 0, 9, 9, 9])
    path = save(tmp_path / "b.png", indexed, transparency=1)
    assert corner(picture_file.read(path)) == (255, 255, 255)


def bomb(width: int, height: int) -> bytes:
    """A small PNG that says that it is huge."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    body = zlib.compress(b"\0" * 100_000)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", body), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def text_bomb() -> bytes:
    """A small PNG whose comment unfolds to 200 MB."""
    whole = pool_ground.picture(1)
    squeezed = zlib.compress(b"x" * 200_000_000, 9)
    data = b"Comment\0\0" + squeezed
    kind = b"zTXt"
    chunk = struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return whole[:33] + chunk + whole[33:]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (bomb(60_000, 60_000), "far more than 80 million pixels"),
        (bomb(2_000_000_000, 1), "far more than 80 million pixels"),
        (bomb(10_000, 8_100), "10000x8100 pixels, more than 80 million"),
        (text_bomb(), "not a whole PNG"),
        (pool_ground.picture(1)[:200], "not a whole PNG"),
        (b"", "not a whole PNG"),
        (b"<html>404</html>", "not a whole PNG"),
        (b"GIF89a" + bytes(200), "not a whole PNG"),
        (pool_ground.picture(1, 32), "32x32 pixels, less than 64"),
    ],
)
def test_what_is_no_picture_is_named(data: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.png: ") as caught:
        picture_file.read(path)
    assert told in caught.value.message


def test_a_bomb_in_a_pool_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    folder = pool_ground.make(tmp_path / "mine", ["love", "okay"])
    data = bomb(60_000, 60_000)
    pools.painting_path(folder, "p_001").write_bytes(data)
    records = (folder / pools.RECORDS).read_text()
    (folder / pools.RECORDS).write_text(
        records.replace(pools.digest(pool_ground.picture(1)), pools.digest(data))
    )
    with pytest.raises(InputError, match=r"p_001\.png: (60000x60000|not a whole PNG)"):
        pools.load(folder)


@pytest.mark.parametrize(
    ("fit", "top", "side"),
    [("whole", (0, 0, 255), (0, 0, 255)), ("crop", (255, 0, 0), (0, 0, 255))],
)
def test_a_picture_becomes_square(fit: str, top: tuple[int, ...], side: tuple[int, ...]) -> None:
    image = Image.new("RGB", (60, 120), "blue")
    image.paste("red", (6, 6, 54, 114))
    found = picture_file.square(image, 64, fit)
    assert found.size == (64, 64)
    assert corner(found, 0.5, 0.5) == (255, 0, 0)
    assert corner(found, 0.5, 0.01) == top
    assert corner(found, 0.01, 0.5) == side


# Into the pool.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pool_ground.make(tmp_path / "mine", ["love", None])


def take(folder: Path, *files: Path, rights: Rights = OWN) -> pool_import.Imported:
    return pool_import.import_references(
        folder,
        files,
        {path.name: rights for path in files},
        subject="a jellyfish",
        tier="love",
        fit="whole",
    )


def test_a_real_painting_becomes_a_reference_with_its_author(folder: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "scan.jpg", half("red", "blue"), "JPEG")
    done = take(folder, path, rights=Rights("cc by 4.0", "Anna Artist, Jellyfish", "a museum"))
    assert done.added == ["jellyfish_001"]
    record = pools.read_records(folder)[-1]
    assert record.licence == "CC-BY-4.0"
    assert record.attribution == "Anna Artist, Jellyfish"
    assert record.source == "a museum"
    loaded = {reference.name: reference for reference in pools.load(folder).references}
    assert loaded["jellyfish_001"].sketch == ""
    assert decode(loaded["jellyfish_001"].painting).shape == (64, 64, 3)


def test_a_picture_is_taken_once(folder: Path, tmp_path: Path) -> None:
    one = save(tmp_path / "a.png", half("red", "blue"))
    other = save(tmp_path / "b.jpg", half("red", "blue"), "JPEG", quality=98, subsampling=0)
    done = take(folder, one, other)
    assert done.added == ["jellyfish_001"]
    assert done.twins == [(str(other), "jellyfish_001")]


def test_two_paintings_of_a_pool_that_are_one_picture_are_refused(folder: Path) -> None:
    records = pools.read_records(folder)
    twin = records[0].model_copy(update={"name": "again"})
    painting = Image.open(io.BytesIO(pool_ground.picture(1)))
    out = io.BytesIO()
    painting.save(out, "PNG", compress_level=1)
    assert out.getvalue() != pool_ground.picture(1)
    pool_intake.add(folder, twin, out.getvalue(), "// another")
    with pytest.raises(InputError, match="'p_001' and 'again' are the same picture"):
        pools.load(folder)


def test_nothing_is_taken_if_one_file_is_broken(folder: Path, tmp_path: Path) -> None:
    good = save(tmp_path / "a.png", half("red", "blue"))
    bad = tmp_path / "b.png"
    bad.write_bytes(b"no")
    before = (folder / pools.RECORDS).read_bytes()
    with pytest.raises(InputError, match=r"b\.png"):
        take(folder, good, bad)
    assert (folder / pools.RECORDS).read_bytes() == before


def test_a_full_disk_leaves_no_half_of_a_painting(folder: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", half("red", "blue"))
    held = sorted(p for p in folder.rglob("*") if p.name != ".lock")
    size = (folder / pools.RECORDS).stat().st_size
    with largest_file(size + 10), pytest.raises(InfrastructureError) as caught:
        take(folder, path)
    assert caught.value.reason == Reason.DISK_FULL
    assert sorted(p for p in folder.rglob("*") if p.name != ".lock") == held


@pytest.mark.parametrize(
    ("rights", "told"),
    [
        (Rights("all mine"), "'all mine': this licence is not known"),
        (Rights(""), "this licence is not known"),
        (Rights("CC-BY-4.0"), "CC-BY-4.0 wants its author named"),
    ],
)
def test_a_licence_has_to_be_known_and_kept(
    rights: Rights, told: str, folder: Path, tmp_path: Path
) -> None:
    path = save(tmp_path / "a.png", half("red", "blue"))
    with pytest.raises(InputError) as caught:
        take(folder, path, rights=rights)
    assert told in caught.value.message
    assert "a.png" in caught.value.message


def test_a_picture_without_a_licence_is_refused(folder: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", half("red", "blue"))
    with pytest.raises(InputError, match="no licence is given for it"):
        pool_import.import_seeds(folder, [path], {})


@pytest.mark.parametrize(
    ("text", "name"),
    [("CC BY-SA 3.0", "CC-BY-SA-3.0"), ("cc0", "CC0-1.0"), ("cc_by", "CC-BY-4.0"), ("Own", "own")],
)
def test_licences_are_known_by_their_spellings(text: str, name: str) -> None:
    assert licences.find(text).name == name


def test_rights_come_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "credits.csv"
    table.write_text("file,licence,attribution,extra\na.jpg,CC-BY-4.0,Anna,x\nb.jpg,cc0,,\n")
    assert pool_import.read_metadata(table) == {
        "a.jpg": Rights("CC-BY-4.0", "Anna"),
        "b.jpg": Rights("cc0"),
    }
    table.write_text("name,licence\na.jpg,cc0\n")
    with pytest.raises(InputError, match="lacks the column 'file'"):
        pool_import.read_metadata(table)


def test_seeds_are_kept_with_their_rights_and_each_once(folder: Path, tmp_path: Path) -> None:
    large = save(tmp_path / "a.jpg", half("red", "blue", (3000, 1500)), "JPEG")
    rights = {"a.jpg": Rights("CC-BY-4.0", "Anna")}
    assert pool_import.import_seeds(folder, [large], rights).added == ["seed_001"]
    assert pool_import.import_seeds(folder, [large], rights).twins == [(str(large), "seed_001")]
    (seed,) = pool_import.load_seeds(folder)
    assert (seed.licence, seed.attribution) == ("CC-BY-4.0", "Anna")
    assert decode(seed.picture).shape == (512, 1024, 3)
    assert len(pools.read_records(folder)) == 2
