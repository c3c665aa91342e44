"""Commands of README and of messages: each works as it stands, from a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from device import TEST_ALL
from processes import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

# The packages of NVIDIA's headers, which messages name.
PACKAGES = re.findall(
    r'"(nvidia-[\w-]+-cu12)"', (ROOT / "cuda-c/src/dialects/vendor.rs").read_text(encoding="utf-8")
)
README = (ROOT / "README.md").read_text()
# What says what to install: messages of the product, README, and documents that are kept current.
CRATES = ("src", "cuda-c/src", "hal", "backend-cuda", "backend-hip", "backend-host", "pygpu/src")
SOURCES = [
    *(ROOT / "pygpu/python").rglob("*.py"),
    *(path for folder in CRATES for path in (ROOT / folder).rglob("*.rs")),
    *(path for path in (ROOT / "docs").rglob("*.md") if not path.name.startswith("20")),
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
]
INSTALL = re.compile(r"pip3? install((?: +(?:'[^']+'|[\w\-.\[\]{}=<>,/*]+))+)")
# As PyPI names them; `test_packages_exist` asks it.
PACKAGES_OF_OTHERS = {
    "distributed",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu11",
    "nvidia-cuda-nvrtc-cu12",
    "pyarrow",
    "pytest",
    "ziglang",
    *PACKAGES,
    *(package.removesuffix("-cu12") for package in PACKAGES),
}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> set[str]:
    """What a bare `pip install` of the product may bring, by its extras."""
    extras = project()["optional-dependencies"]
    listed = [re.split(r"[><=\[]", entry)[0] for entries in extras.values() for entry in entries]
    return set(listed) - {"pygpu"}


def advised() -> list[tuple[str, str]]:
    """Each file that says `pip install`, and what it says is to be installed."""
    found = []
    for path in SOURCES:
        for words in INSTALL.findall(path.read_text(encoding="utf-8")):
            for word in words.split():
                found.append((str(path.relative_to(ROOT)), word.strip("'")))
    return found


def test_what_is_advised_can_be_installed():
    extras = set(project()["optional-dependencies"])
    found = advised()
    assert len(found) > 8
    for file, what in found:
        own = re.fullmatch(r"(\.|\S+\.whl|pygpu)(?:\[([\w,]+)\])?", what)
        if own:
            assert set(filter(None, (own[2] or "").split(","))) <= extras, (file, what)
            # Not yet published: only the installation page may say what works after that.
            assert own[1] != "pygpu" or file.startswith("docs/install"), (file, what)
        elif "{" not in what and not what.startswith("-"):
            assert what in PACKAGES_OF_OTHERS, (file, what)


@pytest.mark.skipif(not TEST_ALL, reason="asks the package index, in `make test-all`")
@pytest.mark.parametrize("package", sorted(PACKAGES_OF_OTHERS | requirements()))
def test_packages_exist(package):
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    # An empty package holds a name that NVIDIA does not use.
    assert f"{package} (0.0." not in done.stdout, done.stdout


def commands() -> list[str]:
    """The lines of README's blocks for a shell, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.strip()]


def test_commands_of_readme():
    done = set()
    for line in commands():
        words = [word for word in line.split() if not re.match(r"[A-Z_]+=", word)]
        program = " ".join(words[:3] if words[:2] == ["python", "-m"] else words[:1])
        if program == "make":
            check = ["make", "--dry-run", "--question", f"PYTHON={sys.executable}", *words[1:]]
            result = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
            assert result.returncode in (0, 1), (line, result.stderr)
        elif program in ("pygpu", "python -m pygpu"):
            command = words[words.index("pygpu") + 1]
            help_of = [sys.executable, "-m", "pygpu", command, "--help"]
            subprocess.run(help_of, check=True, stdout=subprocess.DEVNULL)
        else:
            assert program in ("pip", "python", "PYBIND_GPU_TARGET"), line
        done.add(program)
    assert "make" in done


def test_metadata():
    found = project()
    assert set(found["optional-dependencies"]) == {"compiler", "cuda12", "cuda13", "all"}
    assert os.path.exists(ROOT / found["readme"])
    wanted = {f"pygpu[{','.join(sorted({*found['optional-dependencies']} - {'all'}))}]"}
    assert set(found["optional-dependencies"]["all"]) == wanted
