"""Twenty ways to spoil a painting, each of which a scorer worth its name must notice. Pure.

Seeded where there is chance in it, and measured in shares of the side, so that a painting of any
size is spoilt alike.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont, ImageOps

#: A painting and a source of chance to a spoilt painting of the same size.
Degrade = Callable[[Image.Image, np.random.Generator], Image.Image]

Pixels = NDArray[np.float64]


def _array(image: Image.Image) -> Pixels:
    return np.asarray(image, np.float64)


def _image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), "RGB")


def paper(image: Image.Image) -> tuple[int, int, int]:
    """The sheet's colour: the median of its border."""
    pixels = _array(image)
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    r, g, b = (int(value) for value in np.median(edge, axis=0))
    return r, g, b


def pigment(image: Image.Image) -> tuple[int, int, int]:
    """The mean colour of what differs from the sheet."""
    pixels = _array(image)
    far = np.abs(pixels - np.array(paper(image))).sum(axis=2) > 60
    mean = pixels[far].mean(axis=0) if far.any() else np.array([128.0, 64.0, 64.0])
    r, g, b = (int(value) for value in mean)
    return r, g, b


def blur(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Out of focus."""
    return image.filter(ImageFilter.GaussianBlur(image.width * 0.04))


def hue_shift(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Every hue turned by 150 degrees: leaves become violet, and so on."""
    hue, saturation, value = image.convert("HSV").split()
    turned = hue.point([(h + 106) % 256 for h in range(256)])
    return Image.merge("HSV", (turned, saturation, value)).convert("RGB")


def giant_blob(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """One flat disc in the painting's own colour, and nothing else."""
    sheet = Image.new("RGB", image.size, paper(image))
    centre, radius = image.width / 2, image.width * 0.4
    ImageDraw.Draw(sheet).circle((centre, centre), radius, fill=pigment(image))
    return sheet


def noise(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Grain all over the sheet."""
    return _image(_array(image) + rng.normal(0, 45, (image.height, image.width, 3)))


def white_out(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Washed out until a fifth of the paint is left."""
    return Image.blend(image, Image.new("RGB", image.size, "white"), 0.8)


def text_overlay(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Words written across it."""
    spoilt, side = image.copy(), image.width
    draw, font = ImageDraw.Draw(spoilt), ImageFont.load_default(side * 0.16)
    for place, word in enumerate(("A LOVELY", "WATER-", "COLOUR", "10 / 10")):
        draw.text((side * 0.06, side * (0.08 + 0.22 * place)), word, fill="black", font=font)
    return spoilt


def duplicate_petals(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Its middle pasted again and again, all over the sheet."""
    side = image.width
    piece = image.crop((int(side * 0.35), int(side * 0.35), int(side * 0.65), int(side * 0.65)))
    spoilt = image.copy()
    for x, y in rng.uniform(-0.1, 0.85, (24, 2)):
        spoilt.paste(piece, (int(x * side), int(y * side)))
    return spoilt


def compressed(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Saved as a JPEG of the least quality."""
    file = io.BytesIO()
    image.save(file, "JPEG", quality=3)
    return Image.open(file).convert("RGB")


def mosaic(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """In squares of a sixteenth of the side."""
    small = image.resize((16, 16), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.NEAREST)


def posterised(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Two levels a channel: flat patches with hard edges."""
    return ImageOps.posterize(image, 1)


def inverted(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """A negative."""
    return ImageOps.invert(image)


def grey(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Without its colours."""
    return ImageOps.grayscale(image).convert("RGB")


def torn(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Cut into sixteen squares that are put together in another order."""
    cut = image.width // 4
    boxes = [(x * cut, y * cut, x * cut + cut, y * cut + cut) for y in range(4) for x in range(4)]
    spoilt = image.copy()
    for box, other in zip(boxes, rng.permutation(16), strict=True):
        spoilt.paste(image.crop(boxes[int(other)]), box[:2])
    return spoilt


def cut_paper(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Four flat colours, as if cut from paper."""
    smooth = image.filter(ImageFilter.ModeFilter(max(3, image.width // 24 | 1)))
    return smooth.quantize(4, dither=Image.Dither.NONE).convert("RGB")


def scribbled(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Scribbled over with one pen."""
    spoilt, side = image.copy(), image.width
    points = [(x * side, y * side) for x, y in rng.uniform(0, 1, (90, 2))]
    ImageDraw.Draw(spoilt).line(points, fill=(40, 40, 60), width=max(1, side // 90))
    return spoilt


def hatched(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Even stripes over the whole sheet."""
    spoilt, side = image.copy(), image.width
    draw = ImageDraw.Draw(spoilt)
    for place in range(-side, side, max(3, side // 24)):
        draw.line(((place, 0), (place + side, side)), fill=(70, 60, 60), width=max(1, side // 100))
    return spoilt


def muddy(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """All of it stirred into brown."""
    brown = Image.new("RGB", image.size, (96, 78, 52))
    return Image.blend(image, brown, 0.65)


def pepper(image: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A fifth of its points black or white."""
    pixels = _array(image)
    chance = rng.random(pixels.shape[:2])
    pixels[chance < 0.1], pixels[chance > 0.9] = 0, 255
    return _image(pixels)


def erased(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """All but a corner of it rubbed out."""
    spoilt, side = Image.new("RGB", image.size, paper(image)), image.width
    part = (0, 0, side // 2, side // 2)
    spoilt.paste(image.crop(part), part[:2])
    return spoilt


def squeezed(image: Image.Image, _: np.random.Generator) -> Image.Image:
    """Squeezed into a narrow strip of the sheet."""
    narrow = image.resize((image.width // 5, image.height), Image.Resampling.BICUBIC)
    spoilt = Image.new("RGB", image.size, paper(image))
    spoilt.paste(narrow, (image.width * 2 // 5, 0))
    return spoilt


ALL: Mapping[str, Degrade] = {
    one.__name__: one
    for one in (
        blur,
        hue_shift,
        giant_blob,
        noise,
        white_out,
        text_overlay,
        duplicate_petals,
        compressed,
        mosaic,
        posterised,
        inverted,
        grey,
        torn,
        cut_paper,
        scribbled,
        hatched,
        muddy,
        pepper,
        erased,
        squeezed,
    )
}


def spoil(painting: bytes, name: str, seed: int = 0) -> bytes:
    """A painting spoilt in the named way, as PNG."""
    with Image.open(io.BytesIO(painting)) as opened:
        image = opened.convert("RGB")
    file = io.BytesIO()
    ALL[name](image, np.random.default_rng(seed)).save(file, "PNG")
    return file.getvalue()
