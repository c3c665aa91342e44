"""Thrust's algorithms and libcu++ in kernels. NVRTC takes only the latter."""

import numpy as np
import pytest
from cpp_libraries import MARKS, installed  # noqa: F401
from device import BACKEND

from pygpu import driver
from pygpu.compiler import SourceModule

pytestmark = MARKS
NUMBERS = np.random.default_rng(41).integers(0, 50, (64, 16)).astype(np.int32)


def with_first(first, x):
    """Returns rows with other first elements."""
    return np.column_stack([first, x[:, 1:]])


def padded(rows):
    return [[*row, *[-1] * (16 - len(row))] for row in rows]


# Headers, the code of a thread with 16 elements at `p`, and the elements afterwards.
THRUST = {
    "sort": (
        "sort",
        "thrust::sort(thrust::seq, p, p + 16, thrust::greater<int>());",
        lambda x: -np.sort(-x, 1),
    ),
    "stable_sort_by_key": (
        "sort",
        "int keys[16]; for (int i = 0; i < 16; ++i) keys[i] = p[i] % 5;"
        "thrust::stable_sort_by_key(thrust::seq, keys, keys + 16, p);",
        lambda x: np.take_along_axis(x, np.argsort(x % 5, 1, kind="stable"), 1),
    ),
    "reduce": (
        "reduce",
        "p[0] = thrust::reduce(thrust::device, p, p + 16, 0, thrust::maximum<int>());",
        lambda x: with_first(x.max(1), x),
    ),
    "inclusive_scan": (
        "scan",
        "thrust::inclusive_scan(thrust::seq, p, p + 16, p);",
        lambda x: np.cumsum(x, 1),
    ),
    "exclusive_scan": (
        "scan",
        "thrust::exclusive_scan(thrust::seq, p, p + 16, p, 7);",
        lambda x: np.cumsum(x, 1) - x + 7,
    ),
    "copy_if": (
        "copy",
        "int to[16]; auto end = thrust::copy_if(thrust::seq, p, p + 16, to, Even());"
        "for (int i = 0; i < 16; ++i) p[i] = i < end - to ? to[i] : -1;",
        lambda x: padded(row[row % 2 == 0] for row in x),
    ),
    "transform": (
        "transform",
        "thrust::transform(thrust::seq, p, p + 8, p + 8, p, thrust::multiplies<int>());",
        lambda x: np.hstack([x[:, :8] * x[:, 8:], x[:, 8:]]),
    ),
    "transform_reduce": (
        "transform_reduce",
        "p[0] = thrust::transform_reduce(thrust::seq, p, p + 16, Even(), 0, thrust::plus<int>());",
        lambda x: with_first((x % 2 == 0).sum(1), x),
    ),
    "sequence": (
        "sequence",
        "thrust::sequence(thrust::seq, p, p + 16, 2, 3);",
        lambda x: np.tile(np.arange(2, 50, 3), (64, 1)),
    ),
    "unique": (
        "unique",
        "thrust::sort(thrust::seq, p, p + 16); auto end = thrust::unique(thrust::seq, p, p + 16);"
        "for (; end < p + 16; ++end) *end = -1;",
        lambda x: padded(np.unique(row) for row in x),
    ),
    "stable_partition": (
        "partition",
        "thrust::stable_partition(thrust::seq, p, p + 16, Even());",
        lambda x: np.take_along_axis(x, np.argsort(x % 2, 1, kind="stable"), 1),
    ),
    "lower_bound": (
        "binary_search",
        "thrust::sort(thrust::seq, p, p + 16);"
        "p[0] = thrust::lower_bound(thrust::seq, p, p + 16, 20) - p;",
        lambda x: with_first((x < 20).sum(1), np.sort(x, 1)),
    ),
    "merge": (
        "merge",
        "int to[16]; thrust::sort(thrust::seq, p, p + 8); thrust::sort(thrust::seq, p + 8, p + 16);"
        "thrust::merge(thrust::seq, p, p + 8, p + 8, p + 16, to);"
        "thrust::copy(thrust::seq, to, to + 16, p);",
        lambda x: np.sort(x, 1),
    ),
    "iterators": (
        "for_each iterator/zip_iterator iterator/counting_iterator",
        "auto z = thrust::make_zip_iterator(thrust::make_tuple(p,"
        "    thrust::counting_iterator<int>(0)));"
        "thrust::for_each(thrust::seq, z, z + 16, Sum());",
        lambda x: x + np.arange(16),
    ),
}

OF_STD = {
    "numeric": (
        "cuda/std/numeric",
        "p[0] = cuda::std::accumulate(p, p + 16, 0) + cuda::std::gcd(12, 18);",
        lambda x: with_first(x.sum(1) + 6, x),
    ),
    "span": (
        "cuda/std/span",
        "int n = 0; for (int v : cuda::std::span<int>(p, 16).subspan(4, 3)) n += v; p[0] = n;",
        lambda x: with_first(x[:, 4:7].sum(1), x),
    ),
    "mdspan": (
        "cuda/std/mdspan",
        "cuda::std::mdspan<int, cuda::std::extents<int, 4, 4>> m(p); int sum = 0;"
        "for (int i = 0; i < 4; ++i) sum += m(i, 3 - i); m(0, 0) = sum;",
        lambda x: with_first(x[:, [3, 6, 9, 12]].sum(1), x),
    ),
    "variant": (
        "cuda/std/variant",
        "cuda::std::variant<int, float> v; if (p[0] > 20) v = 2.5f; else v = p[0];"
        "p[0] = cuda::std::visit([](auto it) { return (int)(it * 2); }, v);",
        lambda x: with_first(np.where(x[:, 0] > 20, 5, 2 * x[:, 0]), x),
    ),
    "expected": (
        "cuda/std/expected",
        "cuda::std::expected<int, char> e = p[0];"
        "if (p[0] > 20) e = cuda::std::unexpected<char>(7); p[0] = e ? *e : e.error();",
        lambda x: with_first(np.where(x[:, 0] > 20, 7, x[:, 0]), x),
    ),
    "complex": (
        "cuda/std/complex",
        "cuda::std::complex<float> z(p[0], p[1]); z *= cuda::std::conj(z); p[0] = z.real();",
        lambda x: with_first(x[:, 0] ** 2 + x[:, 1] ** 2, x),
    ),
    "bitset": (
        "cuda/std/bitset",
        "cuda::std::bitset<70> bits; bits.set(p[0]); bits.set(69); p[0] = bits.count();",
        lambda x: with_first(np.full(64, 2), x),
    ),
    "annotated_ptr": (
        "cuda/annotated_ptr",
        "p[0] = cuda::annotated_ptr<int, cuda::access_property::streaming>(p)[1];",
        lambda x: with_first(x[:, 1], x),
    ),
    "chrono": (
        "cuda/std/chrono",
        "using namespace cuda::std::chrono;p[0] = duration_cast<milliseconds>(seconds(3)).count();",
        lambda x: with_first(np.full(64, 3000), x),
    ),
}


def module(table, line, before=""):
    """Returns a module with a kernel for each row of a table."""
    headers = sorted({name for row in table.values() for name in row[0].split()})
    text = before + "".join(line.format(name) for name in headers)
    for name, (_, body, _) in table.items():
        text += (
            f'extern "C" __global__ void {name}(int *all) {{\n'
            f"    int *p = all + threadIdx.x * 16;\n    {body}\n}}\n"
        )
    return SourceModule(text, no_extern_c=True)


def check(table, compiled):
    for name, (_, _, expected) in table.items():
        x = NUMBERS.copy()
        compiled.get_function(name)(driver.InOut(x), block=(64, 1, 1))
        np.testing.assert_array_equal(x, expected(NUMBERS), name)


@pytest.mark.skipif(BACKEND != "host", reason="NVRTC takes no algorithms of Thrust")
def test_algorithms_of_thrust_run_in_the_calling_thread():
    before = """
    #include <thrust/execution_policy.h>
    #include <thrust/functional.h>
    #include <thrust/tuple.h>
    struct Even {
        __device__ bool operator()(int x) const { return x % 2 == 0; }
    };
    struct Sum {
        template <class T> __device__ void operator()(T both) const {
            thrust::get<0>(both) += thrust::get<1>(both);
        }
    };
    """
    check(THRUST, module(THRUST, "#include <thrust/{}.h>\n", before))


def test_the_standard_library_for_kernels():
    check(OF_STD, module(OF_STD, "#include <{}>\n"))
