"""Writes the pictures of the gallery: PNG from pixels, SVG from curves, with nothing but numpy.

A program of the gallery takes the folder for its picture as an argument; the default is
`demo-output`.
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np

COLOURS = ("#2a6fb0", "#d1702a", "#3a8f4b", "#8a4fa0")


def _path(name):
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
    folder.mkdir(parents=True, exist_ok=True)
    print(f"picture: {folder / name}")
    return folder / name


def save_png(name, pixels):
    """Writes pixels of shape (rows, columns) or (rows, columns, 3).

    Floating-point pixels go from 0, black, to 1.
    """
    pixels = np.asarray(pixels)
    if pixels.dtype.kind == "f":
        pixels = np.clip(pixels * 255 + 0.5, 0, 255)
    pixels = pixels.astype(np.uint8)
    rows, columns = pixels.shape[:2]
    lines = np.insert(pixels.reshape(rows, -1), 0, 0, axis=1)  # each row begins with its filter, 0
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0 if pixels.ndim == 2 else 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    with _path(name).open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in chunks:
            check = zlib.crc32(kind + data)
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check))


def heat_colours(values):
    """Returns RGB pixels for numbers from 0 to 1: black, red, yellow, white."""
    return np.clip(np.stack([3 * values, 3 * values - 1, 3 * values - 2], axis=-1), 0, 1)


def save_curves(name, curves, width=640, height=240):
    """Writes curves, a dictionary of one-dimensional arrays, each with its name."""
    low = min(np.min(values) for values in curves.values())
    high = max(np.max(values) for values in curves.values())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, ((label, values), colour) in enumerate(zip(curves.items(), COLOURS)):
        x = np.linspace(10, width - 10, len(values))
        y = height - 10 - (np.asarray(values) - low) / (high - low) * (height - 20)
        points = " ".join(f"{a:.0f},{b:.1f}" for a, b in zip(x, y))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        parts.append(f'<text x="16" y="{20 + 16 * number}" fill="{colour}">{label}</text>')
    _path(name).write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")
