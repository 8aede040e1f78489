"""The painter's colours: hex values by subject and by part of the picture.

A palette names the pigments of a flower's washes from the first, pale one to the last, dark one,
the pigments of its heart, and those of the air around it. Few values on purpose: each becomes one
token of a small tokenizer, and a policy can tell a subject by them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Pigments of one flower, as ``#rrggbb``."""

    pale: tuple[str, ...]
    body: tuple[str, ...]
    deep: tuple[str, ...]
    heart: tuple[str, ...]
    air: tuple[str, ...]


SUBJECTS: dict[str, Palette] = {
    "a peach hibiscus": Palette(
        pale=("#f9c6a8", "#f7b090"),
        body=("#f2906e", "#ee7d5f"),
        deep=("#d4483f", "#b8304a"),
        heart=("#7d1830", "#f2b632"),
        air=("#fbdcc4", "#cfe3dc"),
    ),
    "a blue iris": Palette(
        pale=("#a9b8ec", "#8ea2e6"),
        body=("#5f78d8", "#4a5fc4"),
        deep=("#33409c", "#4b2f8f"),
        heart=("#f2c23a", "#2a2468"),
        air=("#d3dcf4", "#e6dcf0"),
    ),
    "a red poppy": Palette(
        pale=("#f4927a", "#ef7a62"),
        body=("#e04a36", "#d43428"),
        deep=("#a81c22", "#86141f"),
        heart=("#2c1a24", "#4a4a2a"),
        air=("#f6d6c8", "#d6e4cc"),
    ),
    "a yellow daisy": Palette(
        pale=("#fbe48c", "#f8d95e"),
        body=("#f5c52e", "#efb31c"),
        deep=("#d98e14", "#c9740f"),
        heart=("#8a4a16", "#5c3014"),
        air=("#fbf0c4", "#cfe4ee"),
    ),
}

#: Pigments of no flower: what a hurried hand mixes.
WRONG: tuple[Palette, ...] = (
    Palette(
        pale=("#8a7a66", "#7d8470"),
        body=("#6b5a48", "#5a6152"),
        deep=("#44382c", "#3a3f38"),
        heart=("#2a2420", "#55503c"),
        air=("#b8ac98", "#9aa090"),
    ),
    Palette(
        pale=("#3fe03a", "#30d8e8"),
        body=("#e830d0", "#14c832"),
        deep=("#6a10c8", "#1040e0"),
        heart=("#ff00a0", "#00e0ff"),
        air=("#f0ff40", "#ff70d0"),
    ),
)

LEAF: tuple[str, ...] = ("#8fb070", "#6f9450", "#4f7840")
PAPER: tuple[str, ...] = ("#faf5ea", "#f7f2e8", "#fdfaf2")
DARK_GROUND: tuple[str, ...] = ("#2a3038", "#4a4440")
GARISH_GROUND: tuple[str, ...] = ("#e02828", "#20c040", "#f0e010", "#2848e0")
