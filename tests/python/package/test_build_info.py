"""`pygpu.build_info()`, and the build information in `pygpu info`."""

from __future__ import annotations

import json
import os
import re

import pytest
from processes import run_python

import pygpu
from pygpu import choose_backend
from pygpu._program import doctor

TARGET = re.compile(r"sm_\d{2,3}[af]?|gfx\d{1,2}[0-9a-f]{2}(:(sramecc|xnack)[+-]){0,2}")

# The information of a build with these targets; the tested wheel need not have them.
EMBEDDED = {
    "default_backend": "hip",
    "targets": [
        {"name": "gfx90a:xnack-", "compiler": "clang 19", "kernels": 12, "bytes": 1_840_000},
        {"name": "sm_90", "compiler": "release 12.9", "kernels": 13, "bytes": 20_000},
    ],
}
NOTHING = {"default_backend": None, "targets": []}


def test_what_every_build_says():
    info = pygpu.build_info()
    assert set(info) == {"default_backend", "targets"}
    assert info["default_backend"] in ("cuda", "hip", None)
    names = [target["name"] for target in info["targets"]]
    assert len(set(names)) == len(names)
    for target in info["targets"]:
        assert set(target) == {"name", "compiler", "kernels", "bytes"}
        assert TARGET.fullmatch(target["name"])
        assert target["compiler"]
        # Every operation of every type; a kernel's code is larger than its name.
        assert target["kernels"] > 1000
        assert 50 * target["kernels"] < target["bytes"] < 5_000_000
    if names:
        assert info["default_backend"] is not None


@pytest.mark.skipif("PYGPU_EXPECT_TARGET" not in os.environ, reason="needs PYGPU_EXPECT_TARGET")
def test_the_targets_are_those_of_the_build():
    """PYGPU_EXPECT_TARGET lists the names that a wheel was built for, separated by commas."""
    expected = [name for name in os.environ["PYGPU_EXPECT_TARGET"].split(",") if name]
    info = pygpu.build_info()
    assert [target["name"] for target in info["targets"]] == expected
    if expected:
        vendor = {"gfx": "hip", "sm_": "cuda"}
        assert info["default_backend"] == vendor[expected[0][:3]]


def test_each_call_gives_its_own():
    pygpu.build_info()["targets"].append("changed")
    assert "changed" not in pygpu.build_info()["targets"]


def test_asking_opens_no_backend():
    # This backend cannot be opened.
    run_python("import pygpu; pygpu.build_info()", PYGPU_BACKEND="vulkan")


@pytest.fixture
def info(monkeypatch, capsys):
    """Returns a function that runs `info` with the build information `build`."""

    def run(build, *arguments):
        monkeypatch.setattr("pygpu._core.build_info", lambda: build)
        assert doctor.info(arguments) == 0
        return capsys.readouterr().out

    return run


def test_info_shows_what_is_embedded(info):
    lines = info(EMBEDDED).splitlines()
    assert lines[-5:-2] == [
        "embedded: gfx90a:xnack-, 12 kernels, 1.8 MB, clang 19",
        "embedded: sm_90, 13 kernels, 0.0 MB, release 12.9",
        "preferred: hip (set when pygpu was built)",
    ]
    assert lines[-2].startswith(f"chosen: {choose_backend()} (")
    assert lines[-1].startswith("pycuda: ")


def test_info_says_that_nothing_is_embedded(info):
    lines = info(NOTHING).splitlines()
    embedded, preferred, chosen, _pycuda = lines[-4:]
    assert embedded.startswith("embedded: nothing")
    assert preferred == "preferred: none (the first one present of cuda, hip, host)"
    assert chosen.startswith(f"chosen: {choose_backend()} (")


def test_info_shows_a_preference_without_targets(info):
    lines = info(NOTHING | {"default_backend": "cuda"}).splitlines()
    assert lines[-4].startswith("embedded: nothing")
    assert lines[-3] == "preferred: cuda (set when pygpu was built)"


@pytest.mark.parametrize("build", [EMBEDDED, NOTHING])
def test_info_as_json_has_the_build(info, build):
    assert json.loads(info(build, "--json"))["build"] == build
