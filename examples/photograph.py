"""A photograph, drawn in ink: an ordinary PyCUDA program, here run by pygpu.

    python -m pygpu run examples/photograph.py [FOLDER]

Grey, blur, edges, contrast and a histogram, computed with PyCUDA's arrays and nothing else; each
result is compared with a second computation, written another way in numpy, and the drawing goes
to FOLDER (demo-output). The same stages run on numpy's arrays too, so the table compares like
with like. The exit status is 1 if a result is wrong.

PyCUDA computes on arrays without gaps. So the picture is one long row of pixels, in which the
next column is a step of 1 away and the next row a step of its width. Pixels that wrap around from
the end of one row to the start of the next are cut off at the end (`crop`).
"""

import sys
import time
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pycuda.autoinit
import pycuda.driver as drv
from PIL import Image
from pycuda import gpuarray
from tqdm import tqdm

REACH = 6  # the distance in pixels from a result to the last pixel that it depends on
BINS = 64
TOLERANCE = 1e-4  # of a scale from black, 0, to white, 1


# ---- the stages: `xp` is gpuarray or numpy ------------------------------------------------------


def grey(planes):
    red, green, blue = (planes[i].astype(np.float32) for i in range(3))
    return red * (0.299 / 255) + green * (0.587 / 255) + blue * (0.114 / 255)


def blur(x, width):
    """The binomial filter 1 4 6 4 1 along the rows, then along the columns."""
    for step in (1, width):
        outer = x[: -4 * step] + x[4 * step :]
        inner = x[step : -3 * step] + x[3 * step : -step]
        x = outer * (1 / 16) + inner * (4 / 16) + x[2 * step : -2 * step] * (6 / 16)
    return x


def edges(x, width):
    """The length of Sobel's gradient."""

    def change(x, step):
        return x[2 * step :] - x[: -2 * step]

    def smooth(x, step):
        return x[: -2 * step] + x[step:-step] * 2 + x[2 * step :]

    across, down = smooth(change(x, 1), width), smooth(change(x, width), 1)
    return (across * across + down * down) ** 0.5


def crop(xp, x, width):
    """The picture as rows and columns, without the pixels that wrapped around."""
    rows = x.shape[0] // width
    picture = xp.empty((rows, width - REACH), np.float32)
    picture[...] = x[: rows * width].reshape(rows, width)[:, : width - REACH]
    return picture


def contrast(xp, x):
    """Ink on paper: black where `x` is at least three deviations above its mean."""
    mean = number(xp.sum(x)) / x.size
    deviation = (number(xp.sum(x * x)) / x.size - mean**2) ** 0.5
    ink = x * (1 / (mean + 3 * deviation))
    return 1 - xp.minimum(xp.maximum(ink, 0), 1)


def histogram(xp, x):
    """The number of pixels in each of the equal steps from 0 to 1."""
    limits = np.arange(1, BINS) / BINS
    below = [number(xp.sum((x < float(limit)).astype(np.int32))) for limit in limits]
    return np.diff([0, *below, x.size]).astype(int)


def number(x):
    return float(x.get() if isinstance(x, gpuarray.GPUArray) else x)


def draw(xp, planes, width, times):
    """All stages; adds the seconds that each takes to `times`."""

    def stage(name, function, *arguments):
        start = time.perf_counter()
        result = function(*arguments)
        if xp is gpuarray:
            drv.Context.synchronize()
        times[name] = times.get(name, 0.0) + time.perf_counter() - start
        return result

    sent = stage("send", gpuarray.to_gpu if xp is gpuarray else np.copy, planes)
    lightness = stage("grey", grey, sent)
    soft = stage("blur", blur, lightness, width)
    lines = stage("edges", lambda: crop(xp, edges(soft, width), width))
    drawing = stage("contrast", contrast, xp, lines)
    counts = stage("histogram", histogram, xp, drawing)
    fetched = stage("fetch", drawing.get if xp is gpuarray else drawing.copy)
    return fetched, counts


# ---- the same, another way: in two dimensions, in float64, with whole kernels -------------------


def expected_drawing(pixels):
    def correlate(x, kernel):
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape)
        return np.einsum("ijkl,kl->ij", windows, kernel)

    lightness = pixels @ np.array([0.299, 0.587, 0.114]) / 255
    binomial = np.array([1, 4, 6, 4, 1]) / 16
    soft = correlate(lightness, np.outer(binomial, binomial))
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    lines = np.hypot(correlate(soft, sobel), correlate(soft, sobel.T))[:-1]
    return 1 - np.clip(lines / (lines.mean() + 3 * lines.std()), 0, 1)


# ---- the program --------------------------------------------------------------------------------


def photograph():
    """A pavilion by danielbuechele (CC BY 2.0): a picture in scikit-learn's package."""
    try:
        (path,) = (file for file in files("scikit-learn") if file.name == "china.jpg")
    except (PackageNotFoundError, TypeError, ValueError):
        sys.exit("the photograph is missing: pip install --no-deps scikit-learn")
    return Image.open(path.locate()).convert("RGB")


def planes_of(image):
    """The three colours one after the other, each as one long row, and the width."""
    return np.moveaxis(np.asarray(image), 2, 0).reshape(3, -1).copy(), image.width


def table(title, device, host):
    print(f"\n{title:<26}{'device':>10}{'numpy':>10}{'numpy / device':>18}")
    for name in device:
        ratio = host[name] / device[name]
        print(f"{name:<26}{device[name] * 1e3:>7.2f} ms{host[name] * 1e3:>7.2f} ms{ratio:>18.2f}")


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
    image = photograph()
    print(f"{image.width} x {image.height} pixels on {pycuda.autoinit.device.name()}")

    planes, width = planes_of(image)
    device, host, repeats = {}, {}, 20
    draw(gpuarray, planes, width, {})  # once before the clock starts
    for _ in range(repeats):
        drawing, counts = draw(gpuarray, planes, width, device)
        draw(np, planes, width, host)
    table(
        "stage",
        {name: seconds / repeats for name, seconds in device.items()},
        {name: seconds / repeats for name, seconds in host.items()},
    )

    expected = expected_drawing(np.asarray(image))
    difference = float(np.abs(drawing - expected).max())
    expected_counts = np.histogram(drawing, BINS, (0, 1))[0]
    print(f"\nlargest difference from numpy: {difference:.1e} (allowed: {TOLERANCE:.0e})")
    print(f"histogram: {'equal' if np.array_equal(counts, expected_counts) else 'DIFFERENT'}")

    device, host = {}, {}
    sizes = [image.resize((image.width * k, image.height * k)) for k in (2, 3, 4)]
    for larger in tqdm([larger for larger in sizes for _ in range(3)], "larger", unit="picture"):
        planes, width = planes_of(larger)
        name = f"{larger.width * larger.height / 1e6:.1f} million pixels"
        for xp, times in ((gpuarray, device), (np, host)):
            stages = {}
            draw(xp, planes, width, stages)
            times[name] = min(times.get(name, np.inf), sum(stages.values()))
    table("all stages", device, host)

    folder.mkdir(exist_ok=True)
    margin = REACH // 2
    rows, columns = drawing.shape
    before = np.asarray(image)[margin : margin + rows, margin : margin + columns]
    after = np.repeat((drawing * 255).astype(np.uint8)[:, :, None], 3, axis=2)
    Image.fromarray(np.hstack([before, after])).save(folder / "photograph.png")
    print(f"\nbefore and after: {folder / 'photograph.png'}")
    correct = difference <= TOLERANCE and np.array_equal(counts, expected_counts)
    sys.exit(0 if correct else 1)


if __name__ == "__main__":
    main()
