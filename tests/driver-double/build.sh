#!/bin/sh
# Builds the fake drivers: build.sh OUTDIR [test]
#
# Builds OUTDIR/cuda/libcuda.so.1 and libnvrtc.so.12 (and libnvrtc.so), and in OUTDIR/hip5, hip6 and
# hip7 the libamdhip64.so and libhiprtc.so of three ROCm generations. With `test`, also runs the fake
# drivers' own tests. OUTDIR/libdouble_cuda_c.so, which cargo builds in the project's target folder,
# compiles and runs kernels. HIDE (names separated by spaces or commas) leaves out symbols, so that
# programs do not find them. CXX names the compiler, CARGO cargo, PYTHON the Python that runs the
# tests.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
objects=$out/objects
mkdir -p "$objects" "$out/cuda" "$out/hip5" "$out/hip6" "$out/hip7"
target=${CARGO_TARGET_DIR:-$here/../../target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
cargo=${CARGO:-cargo}
cxx=${CXX:-c++}
python=${PYTHON:-python3}
flags="-std=c++17 -O1 -Wall -Wextra -fPIC -fvisibility=hidden -pthread -U_FORTIFY_SOURCE"
flags="$flags -I. -I$objects"
cd "$here"
# Suites that run side by side build concurrently.
exec 9>"$objects/lock"
flock 9

object() {
    printf '%s/%s.o' "$objects" "$(printf %s "$1" | tr / -)"
}

# Compiles files that are older than their source or than any header, as many at a time as there are
# processors.
compile() {
    printf 'exec %s %s -include standard.hpp -c "$1" -o "$2"\n' "$cxx" "$flags" >"$objects/compile.new"
    cmp -s "$objects/compile.new" "$objects/compile" || {
        # Standard headers take most of the compilation time, so they are precompiled.
        cat ./*/*.hpp ./*/*.cpp | grep -oE '^#include <[a-z_]+>' | sort -u >"$objects/standard.hpp"
        # shellcheck disable=SC2086
        $cxx $flags -x c++-header "$objects/standard.hpp" -o "$objects/standard.hpp.gch"
        mv "$objects/compile.new" "$objects/compile"
    }
    # shellcheck disable=SC2012
    newest=$(ls -t ./*/*.hpp cuda-c/*.h "$objects/hip_api.hpp" "$objects/compile" | head -n 1)
    for source in "$@"; do
        made=$(object "$source")
        if [ ! "$made" -nt "$source" ] || [ ! "$made" -nt "$newest" ]; then
            printf '"%s" "%s"\n' "$source" "$made"
        fi
    done | xargs -r -n 2 -P "$(getconf _NPROCESSORS_ONLN)" sh "$objects/compile"
}

link() { # output, soname, pattern of its symbols, sources
    library=$1 soname=$2 map=$objects/$2.map
    {
        printf '{ global: %s double_calls; double_reset_calls; ' "$3"
        printf 'double_fail; double_log; double_live;\nlocal: '
        for name in $(printf '%s' "${HIDE:-} ${absent:-}" | tr ',' ' '); do printf '%s; ' "$name"; done
        printf '*; };\n'
    } >"$map"
    shift 3
    made=
    for source in "$@"; do made="$made $(object "$source")"; done
    # A driver is never unloaded, because signal handlers point into it.
    # shellcheck disable=SC2086
    $cxx -shared -o "$library.new" -Wl,-soname,"$soname" -Wl,-Bsymbolic -Wl,-z,defs,-z,nodelete \
        -Wl,--version-script="$map" $made -L"$out" -ldouble_cuda_c -Wl,-rpath,'$ORIGIN/..' \
        -ldl -pthread
    # Programs may be loading the old library.
    cmp -s "$library.new" "$library" && rm "$library.new" || mv "$library.new" "$library"
}

# The declarations of HIP come from the bindings through which the backend calls it.
"$python" hip/declare.py ../../backend-hip/src/bindings.rs "$objects/hip_api.hpp"

# The product's compiler and executor, in the profile that its tests use.
cuda_c=libdouble_cuda_c.so
"$cargo" build --quiet --manifest-path cuda-c/Cargo.toml --target-dir "$target" &
building=$!

core=$(echo core/*.cpp)
loader="compiler/image.cpp compiler/loaded.cpp"
compiler="compiler/compile.cpp $loader"
nvrtc="nvrtc/nvrtc.cpp nvrtc/options.cpp nvrtc/program.cpp nvrtc/exports.cpp"
cuda="cuda/exports.cpp cuda/vendor.cpp"
hip="hip/attribute.cpp hip/device.cpp hip/hip.cpp hip/memory.cpp hip/module.cpp hip/stream.cpp"
hip="$hip hip/copy.cpp hip/texture.cpp"
hip="$hip hip/vendor.cpp"
target_names=hip/target.cpp
hiprtc="hip/hiprtc.cpp hip/rtc_options.cpp nvrtc/program.cpp"
generations="hip/rocm5.cpp hip/rocm6.cpp hip/rocm7.cpp"
alone="core/control.cpp nvrtc/live.cpp" # sources of a library that is a compiler without a driver
# shellcheck disable=SC2086
{
    compile $core $compiler $nvrtc nvrtc/live.cpp $cuda $hip $target_names $hiprtc $generations
    wait "$building"
    # Replaced by a new file, because running programs may have mapped the old one.
    cmp -s "$target/debug/$cuda_c" "$out/$cuda_c" || {
        cp "$target/debug/$cuda_c" "$out/$cuda_c.new"
        mv "$out/$cuda_c.new" "$out/$cuda_c"
        # Remove everything that the old one has compiled.
        rm -rf "$out/kernels" "$out"/cache-*
    }
    link "$out/cuda/libcuda.so.1" libcuda.so.1 'cu*;' $core $loader $cuda
    link "$out/cuda/libnvrtc.so.12" libnvrtc.so.12 'nvrtc*;' $alone $compiler $nvrtc
    # ROCm 5 includes hipRTC; symbols that 5.2 lacks are left out.
    absent='hipDeviceSetLimit hipGetDevicePropertiesR0600 hipLaunchHostFunc'
    absent="$absent hipModuleLaunchCooperativeKernel hipUserObjectCreate hipGraphRetainUserObject"
    # 5.2 exports these under C++ names.
    absent="$absent hipCreateSurfaceObject hipDestroySurfaceObject"
    link "$out/hip5/libamdhip64.so.5" libamdhip64.so.5 'hip*;' $core $compiler $hip $target_names \
        $hiprtc hip/rocm5.cpp
    absent=
    for generation in 6 7; do
        link "$out/hip$generation/libamdhip64.so.$generation" libamdhip64.so.$generation 'hip*;' \
            $core $loader $hip $target_names hip/rocm$generation.cpp
        link "$out/hip$generation/libhiprtc.so.$generation" libhiprtc.so.$generation 'hiprtc*;' \
            $alone $compiler $target_names $hiprtc
    done
}
ln -sf libnvrtc.so.12 "$out/cuda/libnvrtc.so"

exec 9>&-
if [ "${2:-}" = test ]; then
    DOUBLE=$out DOUBLE_CACHE=${DOUBLE_CACHE:-$out/kernels} PYTHONDONTWRITEBYTECODE=1 "$python" -m unittest discover -s tests -t tests
fi
