"""A refused program is shown by its own lines: each mistake once, with the line and a caret."""

from __future__ import annotations

import numpy as np
import pytest
from device import BACKEND
from processes import run_python
from refused_programs import TEXTS, check, check_text, marked
from rocm_compilers import folder_of

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel
from pygpu.scan import ExclusiveScanKernel, InclusiveScanKernel


def said_of(error: driver.CompileError) -> list[str]:
    """Returns the lines of an exception's text, after the first."""
    first, *lines = str(error).splitlines()
    assert first == "compilation of kernel.cu failed"
    return lines


@pytest.mark.parametrize("no_extern_c", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_a_message_has_the_line_and_a_caret(name, no_extern_c):
    text = TEXTS[name]
    if "template" in text and not no_extern_c:
        text = f'extern "C++" {{\n{text}\n}}'
    with pytest.raises(driver.CompileError) as caught:
        SourceModule(marked(text)[0], no_extern_c=no_extern_c)
    check_text(name, text, said_of(caught.value))
    assert caught.value.command_line == ["--cubin", "kernel.cu"]
    assert "error" in caught.value.stderr


EXPRESSIONS = {
    "operation of bad": lambda text: ElementwiseKernel("float *x", text, "bad"),
    "preamble of bad": lambda text: ElementwiseKernel(
        "float *x", "x[i] = f()", "bad", preamble=f"__device__ int f() {{ return {text}; }}"
    ),
    "loop_prep of bad": lambda text: ElementwiseKernel(
        "float *x", "x[i] = 1", "bad", loop_prep=text
    ),
    "after_loop of bad": lambda text: ElementwiseKernel(
        "float *x", "x[i] = 1", "bad", after_loop=text
    ),
    "reduce_expr of bad": lambda text: ReductionKernel(
        np.float32, "0", text, "x[i]", "float *x", "bad"
    ),
    "map_expr of bad": lambda text: ReductionKernel(
        np.float32, "0", "a+b", text, "float *x", "bad"
    ),
    "neutral of bad": lambda text: ReductionKernel(
        np.float32, text, "a+b", "x[i]", "float *x", "bad"
    ),
    "scan_expr of bad": lambda text: InclusiveScanKernel(np.float32, text, name_prefix="bad"),
    "neutral of scan": lambda text: ExclusiveScanKernel(np.float32, "a+b", text),
}


@pytest.mark.parametrize("part", EXPRESSIONS)
@pytest.mark.parametrize("text", ["«nothing_here»", "1 +\n«nothing_here» * 2", "3 + «there» + 4"])
def test_a_wrong_expression_is_named_and_pointed_into_once(part, text):
    x = gpuarray.empty(100, np.float32)
    with pytest.raises(driver.CompileError) as caught:
        EXPRESSIONS[part](marked(text)[0])(x)
    if part.startswith("preamble"):
        text = f"__device__ int f() {{ return {text}; }}"
    check(said_of(caught.value), part, text)
    assert "generated" not in str(caught.value)


UNBALANCED = {
    "operation of bad": "x[i] = (3",
    "map_expr of bad": "(x[i]",
    "reduce_expr of bad": "a+",
}


@pytest.mark.parametrize("part", UNBALANCED)
def test_an_expression_that_ends_too_early_is_pointed_at_its_end(part):
    text = UNBALANCED[part]
    with pytest.raises(driver.CompileError) as caught:
        EXPRESSIONS[part](text)(gpuarray.empty(100, np.float32))
    lines = said_of(caught.value)
    assert lines[0].startswith(f"{part}:1:{len(text) + 1}: error: ")
    assert lines[1:3] == [f"    1 | {text}", "      | " + " " * len(text) + "^"]
    assert "generated" not in str(caught.value)


def test_arrays_of_any_names_are_reduced_by_expressions_of_a_and_b():
    a = gpuarray.to_gpu(np.arange(1000, dtype=np.int32))
    dot = ReductionKernel(
        np.int64, "0", "a + b", "(long)a[i] * b[i] // a comment", "int *a, int *b"
    )
    assert dot(a, a[::-1]).get() == (np.arange(1000) * np.arange(1000)[::-1]).sum()
    assert dot(a[:3], a[:3]).get() == 5


LIVE = """
import pygpu.autoinit
from pygpu import compiler, driver
for text in {texts!r}:
    try:
        compiler.compile(text, no_extern_c=True)
    except driver.CompileError as error:
        print(error)
        print("end of a message")
"""


@pytest.mark.skipif(BACKEND != "hip", reason="devices of HIP are needed to ask its compiler")
@pytest.mark.parametrize("generation", ["6", "7"])
def test_amds_compiler_is_read(generation):
    folder = folder_of(generation)
    done = run_python(
        LIVE.format(texts=[marked(text)[0] for text in TEXTS.values()]),
        libraries=folder,
        limit=600,
        DOUBLE_TARGET="gfx1100",
        PYGPU_CACHE="off",
        PYGPU_HIPRTC=str(folder / f"lib/libhiprtc.so.{generation}"),
    )
    messages = done.stdout.split("end of a message\n")[:-1]
    assert len(messages) == len(TEXTS)
    for (name, text), message in zip(TEXTS.items(), messages, strict=True):
        check_text(name, text, message.splitlines()[1:])
