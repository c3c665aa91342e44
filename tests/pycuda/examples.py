"""Runs the example programs of PyCUDA's source package, unmodified, over pygpu.

    .venv/bin/python tests/pycuda/examples.py [--output FOLDER] [--limit SECONDS] [NAME ...]

Each program runs under `python -m pygpu run` on the backend in PYGPU_BACKEND, in its own folder.
The printed table has a line for each: `ok`, `failed` with the last line of its errors, `needs` with
a package that is not installed, or `left out` with the reason. The exit status is 1 if one failed.
Programs that open matplotlib windows use a backend without display. pip installs the packages:

    .venv/bin/python -m pip install scipy matplotlib jinja2 cheetah3 codepy cgen pillow
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import pycuda_names  # noqa: E402

LEFT_OUT = {
    "gl_interop": "OpenGL, and a window",
    "light_field_3d_viewer": "OpenGL, and a window",
    "sobel_filter": "OpenGL, and a window",
    "mandelbrot": "a window of Tk",
    "mandelbrot_interactive": "a window of Enthought's traits, which is no longer published",
    "2d_fft": "pyfft, whose last release (2012) is for Python 2",
    "demo_meta_matrixmul_cheetah": "a template that the source package does not hold",
    "thrust_interop": "codepy, which compiles with nvcc and Boost.Python",
    "simple_rgb2gray": "scipy.misc.imread, which scipy 1.2 took out",
    "cai_cupy_arrays": "CuPy, which needs a real NVIDIA GPU",
    "arithmetic_example": "a grid of 218.13 blocks, which PyCUDA refuses, too",
    "demo_struct": "Function.prepare(block=), which PyCUDA no longer takes",
    "game_of_life": "draws until its window is closed",
    "cai_numba": "Numba's CUDA target, which needs a real NVIDIA GPU",
}

# Arguments that a program requires.
ARGUMENTS = {
    "rotate": ["image.png"],
    "sparse_solve": ["matrix.mtx"],
}


def programs() -> dict[str, str]:
    """Returns the text of each program, by its name."""
    path = pycuda_names.archive()
    if path is None:
        sys.exit("PyCUDA's source package cannot be downloaded")
    found = {}
    with tarfile.open(path) as package:
        for entry in package:
            if re.fullmatch(r"[^/]+/examples/(from-wiki/)?[^/]+\.py", entry.name):
                file = package.extractfile(entry)
                assert file is not None
                found[Path(entry.name).stem] = file.read().decode("latin-1")
    return found


def prepare(name: str, folder: Path) -> None:
    """Creates the files that a program reads in a folder."""
    if name == "sparse_solve":
        # Symmetric and positive definite, because the diagonal outweighs the other elements.
        n = 60
        lines = [f"{i} {i} 4" for i in range(1, n + 1)] + [f"{i + 1} {i} -1" for i in range(1, n)]
        head = f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {len(lines)}\n"
        (folder / "matrix.mtx").write_text(head + "\n".join(lines) + "\n")
    elif name in ("rotate", "simple_rgb2gray"):
        import numpy as np
        from PIL import Image

        pixels = np.random.default_rng(1).integers(0, 255, (48, 64, 3)).astype(np.uint8)
        for file in ("image.png", "Lenna.png"):
            Image.fromarray(pixels).save(folder / file)


def run(name: str, text: str, output: Path, limit: float) -> tuple[str, str]:
    """Runs a program; returns the outcome and a remark."""
    folder = output / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text, encoding="latin-1")
    prepare(name, folder)
    command = [sys.executable, "-m", "pygpu", "run", f"{name}.py", *ARGUMENTS.get(name, [])]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
            input="\n" * 9,
            env=os.environ | {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "ignore"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "failed", f"not done after {limit:.0f} s"
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    if done.returncode == 0:
        return "ok", ""
    last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
    missing = re.match(r"ModuleNotFoundError: No module named '([^']+)'$", last)
    if missing and not missing[1].startswith("pycuda"):
        return "needs", missing[1]
    return "failed", last.strip()[:150] or f"status {done.returncode}"


def main() -> int:
    """Runs the programs that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description="Runs PyCUDA's example programs over pygpu.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--output", type=Path, help="where the programs' folders are kept")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each program")
    options = parser.parse_args()
    texts = programs()
    unknown = set(options.names) - texts.keys()
    if unknown:
        parser.error(f"there are no programs {sorted(unknown)}")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        output = (options.output or Path(temporary)).resolve()
        for name in sorted(options.names or texts):
            if name in LEFT_OUT and not options.names:
                outcome, remark = "left out", LEFT_OUT[name]
            else:
                outcome, remark = run(name, texts[name], output, options.limit)
            outcomes[outcome] += 1
            print(f"{name:<36}{outcome:<10}{remark}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return int(outcomes["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
