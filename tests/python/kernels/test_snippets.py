"""The effect of a statement's text on the kernel that is generated around it."""

from __future__ import annotations

import operator
import re
from typing import ClassVar

import numpy as np
import pytest
from device import TEST_ALL
from pairs import numbers

from pygpu import driver, gpuarray
from pygpu._kernels import snippets as _snippets
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel

POINTER = "__device__ float second(const float *p) { return p[1]; }"
MEMBER = "struct Sixteen { float x[16]; };"
FILL = "Sixteen s; for (int k = 0; k < 16; ++k) s.x[k] = 100 + k; "


@pytest.mark.parametrize(
    ("statements", "expected", "more"),
    [
        ("z[i] = x/* of z[i] */[i]", lambda x: x, {}),
        ("z[i] = x // x[i]\n  [i]", lambda x: x, {}),
        ("z[i] = x[INDEX]", lambda x: x, {"options": ["-DINDEX=i"]}),
        ("z[i] = x[INDEX]", lambda x: x, {"options": ["-D", "INDEX=i"]}),
        ("z[i] = FROM", lambda x: x, {"options": ["-DFROM=x[i]"]}),
        ("z[i] = FROM", lambda x: x, {"preamble": "#  /* */ define FROM x[i]"}),
        ("z[i] = *(&x[i] + 1)", lambda x: np.roll(x, -1), {}),
        ("z[i] = *(& ( x[i] ) + 1)", lambda x: np.roll(x, -1), {}),
        ("z[i] = second(&x[i])", lambda x: np.roll(x, -1), {"preamble": POINTER}),
        ("z[i] = second((float *)&x[i])", lambda x: np.roll(x, -1), {"preamble": POINTER}),
        ("z[i] = x[i]; (int &)(z[i]) = 0", lambda x: 0 * x, {}),
        ("z[i] = x[i]; int &number = (int &)z[i]; number = 0", lambda x: 0 * x, {}),
        ("z[i] = x[i]; const_cast<float &>(z[i]) = 7", lambda x: 0 * x + 7, {}),
        ("z[i] = x[i]; *(int *)&(z[i]) = 0", lambda x: 0 * x, {}),
        ("z[i] = '\"' + x[i]; z[i] += 1; // \"", lambda x: x + 35, {}),
        ("z[i] = 1'000 + x[i]; z[i] += 'a' - 'b'", lambda x: x + 999, {}),
        ('const char *t = "x[i]; /*"; z[i] = x[i] + t[1]', lambda x: x + ord("["), {}),
        (f"{FILL} z[i] = s.x[i] - s . x[i] + x[i]", lambda x: x, {"preamble": MEMBER}),
        ("z[i] = x[i] && x[i]", lambda x: (x != 0).astype(np.float32), {}),
        ("int m = x[i]; z[i] = m & (int)x[i]", np.trunc, {}),
        ("if (x[i] < 5) continue; z[i] = x[i]", lambda x: np.where(x < 5, 0, x), {}),
    ],
)
def test_how_an_element_is_spelled(statements, expected, more):
    kernel = ElementwiseKernel("float *x, float *z", statements, **more)
    x = np.arange(17, dtype=np.float32)
    gx = gpuarray.to_gpu(x)
    # The element after the last one exists.
    for size in (8, 16):
        z = gpuarray.zeros(size, np.float32)
        kernel(gx[:size], z)
        np.testing.assert_array_equal(z.get(), expected(x)[:size])
    # An array that is used through a macro is a table, whose elements keep their own order.
    if "&" not in statements and not ({"INDEX", "FROM"} & set(re.findall(r"\w+", statements))):
        z = gpuarray.zeros((4, 4), np.float32, order="F")
        kernel(gx[:16].reshape(4, 4), z)
        np.testing.assert_array_equal(z.get(), expected(x)[:16].reshape(4, 4))


def test_texts_are_printed_as_they_are_written(capfd):
    kernel = ElementwiseKernel("float *x", r'printf("x[i] is %g\n", x[i])')
    kernel(gpuarray.zeros(4, np.float32))
    driver.Context.synchronize()
    assert capfd.readouterr().out == "x[i] is 0\n" * 4


@pytest.mark.parametrize("step", [2**61, 2**62, 2**63 - 1, -(2**62), -(2**63)])
def test_steps_that_reach_beyond_all_numbers(step):
    seven = ElementwiseKernel("float *z", "z[i] = 7")
    for start, stop in ((0, 10), (9, -1), (3, 3)):
        z, expected = gpuarray.zeros(1000, np.float32)[400:], np.zeros(600, np.float32)
        seven(z, range=slice(start, stop, step))
        expected[list(range(start, stop, step))] = 7
        np.testing.assert_array_equal(z.get(), expected)


def test_names_of_arguments_in_reductions():
    kernel = ReductionKernel(
        np.float64,
        0,
        "a // one\n + b // the other",
        "x[i] * step + half /* of x[i] */",
        "const double *x, double step, double half",
    )
    x = numbers(5000, np.float64)
    np.testing.assert_allclose(kernel(gpuarray.to_gpu(x), 3, 0.5).get(), x.sum() * 3 + 2500)


@pytest.mark.parametrize("name", ["my kernel", "", "1a", 'a"b', "a\nb", "ü", "f()"])
def test_names_that_c_does_not_have_are_refused(name):
    with pytest.raises(ValueError, match="not a name in C"):
        ElementwiseKernel("float *x", "x[i] = 1", name)(gpuarray.zeros(1, np.float32))
    with pytest.raises(ValueError, match="not a name in C"):
        ReductionKernel(np.float32, 0, "a+b", "x[i]", "float *x", name)


class Program:
    """Statements on 32-bit numbers, as text and as operations on numpy arrays."""

    OPERATORS: ClassVar = (operator.add, operator.sub, operator.mul, operator.xor, operator.and_)
    SIGNS: ClassVar = dict(zip(OPERATORS, "+-*^&", strict=True))
    BLANKS = ("", "", " ", "/* x[i] = y[i]; */", " // \" ' i\n", "\n", "/*'*/")

    def __init__(self, rng):
        self.rng = rng
        self.steps = []
        self.text = "".join(self.statement() for _ in range(rng.integers(1, 4)))
        # An array that is accessed only through macros or addresses would be a table.
        self.text += "(void)x[i], (void)y[i], (void)z[i];"

    def pick(self, of):
        return of[self.rng.integers(len(of))]

    def element(self, name, stored=False):
        gap = lambda: self.pick(self.BLANKS)  # noqa: E731
        plain = f"{name}{gap()}[{gap()}i{gap()}]"
        forms = [plain, plain, f"{name}[i]", f"({plain})", f"(*(&{plain}))", f"*({name} + i)"]
        if not stored:
            forms += [f"{name}[INDEX]", f"(const int &){plain}", f"OF_{name.upper()}"]
        return self.pick(forms)

    def expression(self, depth):
        kind = self.rng.integers(4)
        if depth == 0 or kind == 0:
            name = self.pick("xyz")
            return self.element(name), lambda arrays: arrays[name]
        if kind == 1:
            text, value = self.pick([("'i'", ord("i")), ("7", 7), ("'\\''", 39), ("1'0", 10)])
            return text, lambda arrays: np.int32(value)
        (left, a), (right, b) = self.expression(depth - 1), self.expression(depth - 1)
        apply = self.pick(self.OPERATORS)
        return f"({left} {self.SIGNS[apply]} {right})", lambda arrays: apply(a(arrays), b(arrays))

    def statement(self):
        target = self.pick("xyz")
        text, value = self.expression(2)
        operation = self.pick((None, *self.OPERATORS))
        sign = self.SIGNS.get(operation, "")
        store = f"{self.element(target, stored=True)}{self.pick(self.BLANKS)}{sign}= {text};"
        condition = None
        if self.rng.integers(3) == 0:
            test, condition = self.expression(1)
            store = f"if ({test} > 9) {{ {store} }}"
        self.steps.append((target, operation, value, condition))
        return store + self.pick(self.BLANKS)

    def run(self, arrays):
        for target, operation, value, condition in self.steps:
            array = arrays[target]
            where = True if condition is None else condition(arrays) > 9
            result = value(arrays)
            if operation is not None:
                result = operation(array, result)
            array[...] = np.where(where, result, array)


@pytest.mark.parametrize("seed", range(60 if TEST_ALL else 4))
def test_random_statements_do_what_they_say(seed):
    rng = np.random.default_rng(seed)
    program = Program(rng)
    macros = [f"-DOF_{name.upper()}={name}[i]" for name in "xyz"]
    options = ["-DINDEX=i", *macros] if "INDEX" in program.text or "OF_" in program.text else []
    kernel = ElementwiseKernel("int *x, int *y, int *z", program.text, options=options)
    views = [np.s_[:8, :8], np.s_[:8, 8:], np.s_[8:, ::2], np.s_[8:, 1::2], np.s_[::2, :8]]
    for _ in range(4):
        host = rng.integers(-99, 99, (16, 16), np.int32)
        device = gpuarray.to_gpu(host)
        # The arrays are identical or separate, with their axes in any order.
        chosen = [4] * 3 if rng.integers(4) == 0 else list(rng.integers(4, size=3))
        turned = rng.integers(2, size=3) if len(set(chosen)) == 3 else [0] * 3
        pick = lambda whole, k, t: whole[views[k]].T if t else whole[views[k]]  # noqa: E731
        arrays = {n: pick(host, k, t) for n, k, t in zip("xyz", chosen, turned, strict=True)}
        kernel(*(pick(device, k, t) for k, t in zip(chosen, turned, strict=True)))
        with np.errstate(over="ignore"):
            program.run(arrays)
        np.testing.assert_array_equal(device.get(), host, err_msg=program.text)
        whole = [rng.integers(-99, 99, 101, np.int32) for _ in range(3)]
        runs = [gpuarray.to_gpu(it) for it in whole]
        kernel(*runs)
        program.run(dict(zip("xyz", whole, strict=True)))
        for run, expected in zip(runs, whole, strict=True):
            np.testing.assert_array_equal(run.get(), expected, err_msg=program.text)


@pytest.mark.parametrize(
    ("operation", "is_read"),
    [
        ("z[i] = x[i]", True),
        ("z[i] = x[(i + 1) % n] + x[table[x[i]]].y == 1", True),
        ("if (x[i] && x[0] != 1) z[i] = p.x", True),
        ("z[i] = x[i] == y", True),
        ("x [i] *= 2", False),
        ("x[i].y[1] = 2", False),
        ("x[i].clear()", False),
        ("f(&x[i])", False),
        ("f(x)", False),
        ("++x[i]", False),
        ("// x\nz[i] = 1", True),
    ],
)
def test_const_arrays_that_are_only_read(operation, is_read):
    x, _ = _snippets.parse("const float *x, float *z", operation)
    assert x.constant == is_read


@pytest.mark.parametrize(
    "operation",
    [
        "x[i] = 1",
        "(x[i])++, --x[i], x[i] = 1",
        "*(x + i) = 1",
        "one(x, i)",
        "float &e = x[i]; e = 1",
    ],
)
def test_const_is_a_word_where_the_statements_write(operation):
    # PyCUDA drops the qualifier.
    one = "__device__ void one(float *to, int at) { to[at] = 1; }"
    x = gpuarray.zeros(4, np.float32)
    ElementwiseKernel("const float *x", operation, preamble=one)(x)
    assert (x.get() == 1).all()
