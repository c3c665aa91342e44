"""Programs whose threads read values that others write later compute the results of lockstep.

All threads of a block execute each statement before the next one, as the lanes of a warp mostly do.
A GPU does not guarantee that, because lanes of one branch may run ahead, so only the host is
tested. `PYGPU_FUZZ_ROUNDS` is the number of random programs, `PYGPU_FUZZ_SEED` the first seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from device import BACKEND, TEST_ALL
from lockstep import For, If, Program, Statement, python

from pygpu import gpuarray
from pygpu.compiler import SourceModule

pytestmark = pytest.mark.skipif(BACKEND != "host", reason="nothing keeps lanes in step on a GPU")

THREADS = 96
BLOCKS = 3

FUNCTIONS = """
__device__ unsigned get(const unsigned *a, int i) { return a[i]; }
__device__ unsigned first(const unsigned *a) { return *a; }
__device__ void put(unsigned *a, int i, unsigned v) { a[i] = v; }
"""
KNOWN = {
    "get": lambda a, i: a[i],
    "put": lambda a, i, v: a.__setitem__(i, v),
}

MIRRORED = "v = x[n - 1 - t]"

PROGRAMS: dict[str, list[Statement]] = {
    "reversed": [MIRRORED, "x[t] = v"],
    "rotated": ["v = x[(t + 1) % n]", "x[t] = v"],
    "rotated_back": ["v = x[(t + n - 1) % n]", "x[t] = v"],
    "shifted": [If("t > 0", ["v = x[t - 1]", "x[t] = v"])],
    "shifted_twice": [If("t > 0", ["v = x[t - 1]"]), If("t > 0", ["x[t] = v"])],
    "shifted_down": [If("t < n - 1", ["v = x[n - 1 - t]", "x[n - 2 - t] = v"])],
    "smoothed": [If("(t > 0) && (t < n - 1)", ["v = x[t - 1] + x[t + 1]", "x[t] = v / 2"])],
    "smoothed_at_once": [
        If("(t > 0) && (t < n - 1)", ["x[t] = (x[t - 1] + x[t] * 2 + x[t + 1]) / 4"])
    ],
    "arithmetic": ["v = x[n - 1 - t] * 3", "w = v * v + t", "v = v ^ w", "x[t] = v + w"],
    "declared": ["const unsigned a = x[n - 1 - t]", "const unsigned b = a * 3", "x[t] = b + 1"],
    "declared_together": [
        (
            "unsigned a = x[n - 1 - t], b = x[(t + 1) % n]",
            "a = x[n - 1 - t]\nb = x[(t + 1) % n]",
        ),
        "x[t] = a + b",
    ],
    "declared_behind_a_bound": [
        If("t < n - 3", ["int j = n - 4 - t", "unsigned a = x[j]", "x[t] = a + j"])
    ],
    "exchanged": ["unsigned a = x[t]", "unsigned b = x[n - 1 - t]", "x[t] = b", "x[n - 1 - t] = a"],
    "butterfly": [For("k", range(4), ["v = x[t ^ (1 << k)]", "x[t] = x[t] + v"])],
    "butterfly_compound": [For("k", range(4), ["v = x[t ^ (1 << k)]", "x[t] += v"])],
    "butterfly_at_once": [For("k", range(4), ["x[t] += x[t ^ (1 << k)]"])],
    "scan": [
        For(
            "k",
            range(1, 6),
            [("v = t >= k ? x[t - k] : 0", "v = where(t >= k, x[t - k], 0)"), "x[t] += v"],
        )
    ],
    "scan_behind_a_bound": [For("k", range(1, 6), [If("t >= k", ["v = x[t - k]", "x[t] += v"])])],
    "scan_at_once": [For("k", range(1, 6), [If("t >= k", ["x[t] += x[t - k]"])])],
    "by_a_table": ["v = x[table[t]]", "x[t] = v"],
    "by_a_table_in_a_local": ["int j = table[t]", "v = x[j]", "x[t] = v"],
    "to_a_table": ["v = x[t]", "x[table[t]] = v"],
    "by_a_table_at_once": ["x[t] = x[table[t]]"],
    "to_a_table_at_once": ["x[table[t]] = x[t]"],
    "by_two_tables": ["v = x[table[t]]", "x[table[n - 1 - t]] = v"],
    "state": ["v = x[n / 2]", "v = v * 3 + t", If("t == 5", ["x[n / 2] = v"])],
    "by_a_pointer": [
        ("unsigned *p = x + 3", "p = x[3:]"),
        If("t < n - 3", ["v = p[n - 4 - t]", "p[t] = v"]),
    ],
    "by_a_pointer_and_a_name": [
        ("unsigned *p = x + 1", "p = x[1:]"),
        If("t < n - 1", ["v = x[t]", "p[t] = v"]),
    ],
    "by_a_pointer_to_constants": [
        ("const unsigned *p = x", "p = x"),
        "v = p[n - 1 - t]",
        "x[t] = v",
    ],
    "by_a_pointer_set_later": [("unsigned *p; p = x", "p = x"), "v = p[n - 1 - t]", "x[t] = v"],
    "by_an_address": [("v = *(x + n - 1 - t)", MIRRORED), ("*(x + t) = v", "x[t] = v")],
    "by_an_own_pointer": [("unsigned *p = x + t", "p = x"), MIRRORED, ("*p = v", "x[t] = v")],
    "from_an_own_pointer": [
        ("const unsigned *p = &x[n - 1 - t]", "p = x"),
        ("v = p[0]", MIRRORED),
        "x[t] = v",
    ],
    "by_a_walking_pointer": [
        ("const unsigned *p = x + n - 1 - t", "p = x"),
        ("v = *p--", MIRRORED),
        "x[t] = v",
    ],
    "by_a_cast_pointer": [
        ("const int *p = (const int *)x", "p = x"),
        ("v = p[n - 1 - t]", MIRRORED),
        "x[t] = v",
    ],
    "by_a_chosen_pointer": [
        ("unsigned *p = n > 3 ? x : y", "p = x"),
        "v = p[n - 1 - t]",
        "x[t] = v",
    ],
    "by_exchanged_pointers": [
        ("unsigned *p = x, *q = y", "p = x; q = y"),
        For(
            "k",
            range(3),
            [
                "v = p[n - 1 - t]",
                "q[t] = v + k",
                ("{ unsigned *r = p; p = q; q = r; }", "p, q = q, p"),
            ],
        ),
    ],
    "a_function_reads": ["v = get(x, n - 1 - t)", "x[t] = v"],
    "a_function_reads_at_once": ["x[t] = get(x, n - 1 - t)"],
    "a_function_writes": [MIRRORED, "put(x, t, v)"],
    "a_function_gets_an_element": [("v = first(x + (n - 1 - t))", MIRRORED), "x[t] = v"],
    "loaded_as_constant": [("v = __ldg(&x[n - 1 - t])", MIRRORED), "x[t] = v"],
    "written_and_read": ["x[t] = v * 3", "w = x[(t + 1) % n]", "v = w"],
    "written_and_read_and_written": ["x[t] = v * 3", "w = x[n - 1 - t]", "x[t] = w + 1"],
    "elimination": [For("k", range(5), [If("t > k", ["x[t] -= x[k] * 3"])])],
    "next_iteration": [For("k", range(5), ["x[t] = v + k", "v = x[n - 1 - t] * 3"])],
    "nested": [
        For("k", range(3), [For("j", range(1, 4), ["v = x[(t + j) % n]", "x[t] = v + x[t]"])])
    ],
    "behind_a_parameter": [If("n > 3", [MIRRORED, "x[t] = v"], ["x[t] = 0"])],
    "behind_a_bound_of_all": [If("t < n", [MIRRORED, "x[t] = v"]), "w = v"],
    "behind_a_bound_and_else": [
        If("t < n / 2", [MIRRORED], ["v = x[t / 2]"]),
        "x[t] = v",
    ],
    "others_have_returned": [("if (t >= n) return", "pass"), MIRRORED, "x[t] = v"],
    "two_arrays": [MIRRORED, "y[t] = v", "w = y[n - 1 - t]", "x[t] = w + 1"],
    "a_local_index": ["int i = t", "int j = n - 1 - i", "v = x[j]", "x[i] = v"],
    "a_changed_index": ["int i = n - 1 - t", "v = x[i]", "i = t", "x[i] = v"],
    "rows": [
        "int r = t / 8",
        "int c = t % 8",
        If("c > 0", ["v = x[r * 8 + c - 1]", "x[r * 8 + c] = v"]),
    ],
    "a_pointer_to_a_row": [
        "int r = t / 8",
        "int c = t % 8",
        ("unsigned *p = x + r * 8", "p = x"),
        ("v = p[7 - c]", "v = x[r * 8 + 7 - c]"),
        ("p[c] = v", "x[r * 8 + c] = v"),
    ],
    "shared": ["s[t] = v", "v = s[n - 1 - t]", "s[t] = v + 1"],
    "shared_behind_a_bound": [If("t < n - 3", ["v = s[n - 4 - t]", "s[t] = v"])],
    "shared_in_a_warp": [If("t < 16", ["v = s[15 - t]", "s[t] = v"])],
    "shared_counter": [
        If("t == 0", ["s[0] = 0"]),
        ("atomicAdd(&s[0], 1)", "s[0] += n"),
        "v = s[0]",
    ],
    "condition_of_what_was_read": [MIRRORED, If("v > x[t]", ["x[t] = v"])],
    "condition_reads": [If("x[n - 1 - t] % 2 == 0", [MIRRORED]), "x[t] = v"],
    "step": [MIRRORED, ("x[t]++", "x[t] += 1")],
    "in_braces": [("{ unsigned a = x[n - 1 - t]; x[t] = a; }", "x[t] = x[n - 1 - t]")],
    "an_array_of_the_thread": [
        (
            "unsigned r[2]; for (int k = 0; k < 2; ++k) r[k] = x[(t + k * 5) % n]",
            "r0, r1 = x[t], x[(t + 5) % n]",
        ),
        ("x[t] = r[0] + r[1] * 3", "x[t] = r0 + r1 * 3"),
    ],
    "sum": ["v = 0", For("k", range(7), ["v += x[(t + k) % n]"]), "x[t] = v"],
    "sum_of_those_before": [
        ("v = 0; for (int k = 0; k < t; ++k) v += x[k]", "v = x.cumsum(dtype='u4') - x"),
        "x[t] = v",
    ],
    "in_rounds": [
        ("for (int i = t; i < n; i += blockDim.x) v = x[n - 1 - i]", MIRRORED),
        ("for (int i = t; i < n; i += blockDim.x) x[i] = v", "x[t] = v"),
    ],
    "repeated": [
        (
            "int k = 0; do { v = x[(t + k) % n]; x[t] = v + k; ++k; } while (k < 4)",
            "for k in range(4):\n v = x[(t + k) % n]\n x[t] = v + k",
        )
    ],
    "lanes_that_exchange": [
        MIRRORED,
        ("w = __shfl_xor_sync(0xffffffffu, v, 1)", "w = v[t ^ 1]"),
        "x[t] = v + w",
    ],
    "own": ["v = x[t]", "x[t] = v * 3"],
    "a_reference": [("unsigned &r = x[t]", "pass"), MIRRORED, ("r = v", "x[t] = v")],
    "a_reference_that_is_read": [
        ("unsigned &r = x[n - 1 - t]", "pass"),
        ("v = r", MIRRORED),
        "x[t] = v",
    ],
    "a_reference_to_constants": [
        ("const unsigned &r = x[n - 1 - t]", "pass"),
        ("x[t] = r * 3", "x[t] = x[n - 1 - t] * 3"),
    ],
    "a_reference_of_auto": [("auto &r = x[t]", "pass"), MIRRORED, ("r += v", "x[t] += v")],
    "a_reference_at_once": [
        ("unsigned &r = x[t]", "pass"),
        ("r = x[n - 1 - t]", "x[t] = x[n - 1 - t]"),
        ("r++", "x[t] += 1"),
    ],
    "an_auto": [("auto a = x[n - 1 - t]", "a = x[n - 1 - t]"), "x[t] = a"],
    "auto_as_index": [("const auto i = n - 1 - t", "i = n - 1 - t"), "v = x[i]", "x[t] = v"],
    "auto_of_thread": [
        ("auto i = threadIdx.x", "i = t"),
        ("auto j = n - 1 - i, k = i + 0u", "j = n - 1 - i; k = i"),
        "x[k] = x[j]",
    ],
    "auto_as_pointer": [
        ("auto p = x + 3", "p = x[3:]"),
        If("t < n - 3", ["v = p[n - 4 - t]", "p[t] = v"]),
    ],
    "auto_as_a_pointer": [("const auto *p = x", "p = x"), "v = p[n - 1 - t]", "x[t] = v"],
    "auto_of_a_float": [
        ("auto f = x[n - 1 - t] % 100 * 0.5f", "f = x[n - 1 - t] % 100 * 0.5"),
        ("x[t] = unsigned(f)", "x[t] = f.astype('u4')"),
    ],
    "an_else": [
        If(
            "t < n / 2",
            ["v = x[n / 2 - 1 - t]", "x[t] = v"],
            ["v = x[n - 1 - t + n / 2]", "x[t] = v + 1"],
        )
    ],
    "an_else_alone": [If("t < n / 2", ["w = 3"], ["v = x[n - 1 - t + n / 2]", "x[t] = v + 1"])],
    "a_comma": [("v = x[n - 1 - t], x[t] = v", MIRRORED + "; x[t] = v")],
    "a_comma_behind_a_bound": [
        (
            "if (t < n - 3) v = x[n - 4 - t], x[t] = v",
            "v[:n - 3] = x[n - 4 - t[:n - 3]]; x[t[:n - 3]] = v[:n - 3]",
        )
    ],
    "a_comma_in_a_loop": [
        (
            "for (int k = 1; k < 4; ++k) v = x[(t + k) % n], x[t] = v",
            "for k in range(1, 4):\n v = x[(t + k) % n]\n x[t] = v",
        )
    ],
    "a_switch": [
        (
            "switch (n % 3) { case 1: x[t] = 1; break; case 0: v = x[n - 1 - t]; "
            "x[t] = v; break; default: x[t] = 2; }",
            "if n % 3 == 1: x[t] = 1\nelif n % 3 == 0: v = x[n - 1 - t]; x[t] = v\nelse: x[t] = 2",
        )
    ],
    "a_switch_in_a_loop": [
        For(
            "k",
            range(4),
            [
                (
                    "switch (k) { case 0: case 2: { v = x[n - 1 - t]; x[t] = v + k; break; } "
                    "default: w = x[t ^ k]; x[t] += w; }",
                    "if k in (0, 2): v = x[n - 1 - t]; x[t] = v + k\nelse: w = x[t ^ k]; x[t] += w",
                )
            ],
        )
    ],
    "a_loop_over_elements": [
        (
            "for (int i = t; i < n; i += blockDim.x) { v = x[n - 1 - i]; x[i] = v; }",
            MIRRORED + "; x[t] = v",
        )
    ],
    "a_loop_over_elements_with_locals": [
        (
            "for (int i = threadIdx.x; i < n; i += blockDim.x) { unsigned a = x[(i + 5) % n]; "
            "unsigned b = a * x[n - 1 - i]; x[i] = b; }",
            "x[t] = x[(t + 5) % n] * x[n - 1 - t]",
        )
    ],
}


def check(programs: dict[str, Program]) -> None:
    texts = (it.text(name, THREADS) for name, it in programs.items())
    module = SourceModule(FUNCTIONS + "".join(texts), no_extern_c=True)
    count = THREADS * BLOCKS
    table = np.random.default_rng(1).permutation(THREADS).astype(np.int32)
    numbers = (np.arange(count, dtype=np.uint64) * 0x9E3779B1 >> 7).astype(np.uint32)
    for name, program in programs.items():
        right = [numbers.copy(), numbers[::-1].copy(), np.zeros(count, np.uint32)]
        found = [gpuarray.to_gpu(it) for it in right]
        module.get_function(name)(
            *found,
            np.int32(THREADS),
            gpuarray.to_gpu(table),
            block=(THREADS, 1, 1),
            grid=(BLOCKS, 1),
        )
        for first in range(0, count, THREADS):
            x, y, out = (it[first : first + THREADS] for it in right)
            out[:] = program.run(x, y, table)
        for array, expected in zip(found, right):
            np.testing.assert_array_equal(array.get(), expected, program.text(name, THREADS))


def test_programs_compute_what_a_warp_does():
    check({name: Program(body, KNOWN) for name, body in PROGRAMS.items()})


class Maker:
    """Makes random programs; each array is written with a single index, distinct for each
    thread."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.arrays = {name: self.choose(self.indices()) for name in "xys"}
        self.count = 0
        self.last_read = ""

    def choose(self, of):
        return of[self.random.integers(len(of))]

    def indices(self) -> list[str]:
        by = int(self.random.integers(1, 20))
        bit = 1 << int(self.random.integers(5))
        return ["t", "t", "n - 1 - t", f"(t + {by}) % n", f"t ^ {bit}", "table[t]"]

    def read(self) -> str:
        index = self.choose([*self.indices(), "t / 8", f"{self.random.integers(32)}"])
        self.last_read = f"{self.choose('xys')}[{index}]"
        return self.last_read

    def simple(self) -> Statement:
        name = self.choose("xys")
        own = f"{name}[{self.arrays[name]}]"
        return self.choose(
            [
                f"v = {self.read()} * 3 + t",
                f"w = {self.read()} ^ v",
                f"v = {self.read()} + {self.read()}",
                f"{own} = v + w",
                f"{own} += v",
                f"{own} = {own} * 3 + w",
                f"{own} = {self.read()} ^ 5",
                "w = v * 31 + w",
            ]
        )

    def written(self) -> tuple[str, str]:
        """Returns a declaration that refers to the written element, or a direct write."""
        name = self.choose("xys")
        index = self.arrays[name]
        self.count += 1
        own, it = f"{name}[{index}]", f"it{self.count}"
        return self.choose(
            [
                (f"unsigned &{it} = {own}; {it} = {{}}", f"{own} = {{}}"),
                (f"auto *{it} = &{own}; *{it} += {{}}", f"{own} = {own} + ({{}})"),
                (f"auto {it} = {{}}; {own} = {it}", f"{own} = {{}}"),
            ]
        )

    def value(self) -> tuple[str, str]:
        read = self.read()
        self.count += 1
        it = f"of{self.count}"
        declared, value = self.choose(
            [
                ("", read),
                (f"const unsigned &{it} = {read}; ", it),
                (f"const auto {it} = {read}; ", it),
            ]
        )
        return declared, value

    def both(self, count: int) -> Statement:
        """Returns statements that use references or pointers, as texts in both languages."""
        here, there = [], []
        for _ in range(count):
            if self.random.integers(2):
                plain = self.simple()
                here.append(plain)
                there.append(python(plain))
                continue
            declared, value = self.value()
            right = self.last_read
            by = self.choose(["v", "w"])
            form = self.choose(["{} * 3 + v", "{} ^ w", "{}"])
            if self.random.integers(2):
                here.append(f"{declared}{by} = {form.format(value)}")
                there.append(f"{by} = {form.format(right)}")
            else:
                target, plain = self.written()
                # The numpy text reads the value first; a reference reads the element's current
                # value.
                here.append(declared + target.format(form.format(value)))
                there.append(plain.format(form.format(right)))
        return "; ".join(here), python("; ".join(there))

    def form(self) -> Statement:
        kind = self.random.integers(5)
        name, by = self.choose("xy"), int(self.random.integers(1, THREADS))
        if kind == 0:
            return self.both(int(self.random.integers(1, 4)))
        if kind == 1:
            lines = [str(self.simple()) for _ in range(2)]
            return ", ".join(lines), "; ".join(map(python, lines))
        if kind == 2:
            cases = [self.both(2) for _ in range(3)]
            text = (
                f"switch (n % {by} % 3) {{ case 0: {{ {cases[0][0]}; break; }} "
                f"case 1: {{ {cases[1][0]}; }} break; default: {{ {cases[2][0]}; }} }}"
            )
            tests = [f"if n % {by} % 3 == 0", f"elif n % {by} % 3 == 1", "else"]
            return text, "\n".join(f"{test}: {it[1]}" for test, it in zip(tests, cases))
        if kind == 3:
            arms = [
                [f"v = {name}[{index}] + w", f"{name}[t] = v", "w = v * 3"]
                for index in ("n - 1 - t", "t")
            ]
            order = [arms, arms[::-1]][self.random.integers(2)]
            return If(f"t < {by}", *order)
        return (
            f"for (int i = t; i < n; i += blockDim.x) {{ v = {name}[n - 1 - i] + w; "
            f"{name}[i] = v * 3; }}",
            f"v = {name}[n - 1 - t] + w; {name}[t] = v * 3",
        )

    def body(self, depth: int = 0) -> list[Statement]:
        return [self.statement(depth) for _ in range(self.random.integers(2, 6))]

    def statement(self, depth: int) -> Statement:
        kind = self.random.integers(13)
        if kind > 9:
            return self.form()
        if depth < 2 and kind == 0:
            return For(f"k{depth}", range(int(self.random.integers(1, 4))), self.body(depth + 1))
        if kind == 1:
            name = self.choose("xy")
            bound = f"t < {self.random.integers(1, THREADS)}"
            return If(bound, [f"v = {name}[n - 1 - t] + w", f"{name}[t] = v", "w = v * 3"])
        if depth < 2 and kind == 2:
            return If(f"n > {self.random.integers(200)}", self.body(depth + 1))
        return self.simple()


def test_random_programs_compute_what_a_warp_does():
    rounds = int(os.environ.get("PYGPU_FUZZ_ROUNDS", 20 if TEST_ALL else 1))
    programs = 30 if TEST_ALL or "PYGPU_FUZZ_ROUNDS" in os.environ else 12
    seed = 1000 * int(os.environ.get("PYGPU_FUZZ_SEED", 0))
    for number in range(seed, seed + rounds):
        makers = [Maker(100 * number + it) for it in range(programs)]
        check({f"kernel_{it}": Program(maker.body(), KNOWN) for it, maker in enumerate(makers)})
