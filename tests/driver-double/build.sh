#!/bin/sh
# Builds the driver double: build.sh OUTDIR [test]
#
# Makes OUTDIR/cuda/libcuda.so.1 and libnvrtc.so.12 (and libnvrtc.so). With `test`, runs the
# double's own tests as well.
# HIDE (names with spaces or commas between) leaves symbols out, so that a program that looks
# for them does not find them; CXX names the compiler, PYTHON what runs the tests.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
objects=$out/objects
mkdir -p "$objects" "$out/cuda"
cxx=${CXX:-c++}
flags="-std=c++17 -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden -pthread -U_FORTIFY_SOURCE"
flags="$flags -I. -Wa,-Icompiler"
cd "$here"

object() {
    printf '%s/%s.o' "$objects" "$(printf %s "$1" | tr / -)"
}

# What is older than its source or than any header, as many at a time as there are processors.
compile() {
    printf 'exec %s %s -c "$1" -o "$2"\n' "$cxx" "$flags" >"$objects/compile.new"
    cmp -s "$objects/compile.new" "$objects/compile" || mv "$objects/compile.new" "$objects/compile"
    # shellcheck disable=SC2012
    newest=$(ls -t ./*/*.hpp compiler/*.h "$objects/compile" | head -n 1)
    for source in "$@"; do
        made=$(object "$source")
        if [ ! "$made" -nt "$source" ] || [ ! "$made" -nt "$newest" ]; then
            printf '"%s" "%s"\n' "$source" "$made"
        fi
    done | xargs -r -n 2 -P "$(getconf _NPROCESSORS_ONLN)" sh "$objects/compile"
}

link() { # output, soname, pattern of its symbols, sources
    target=$1 soname=$2 map=$objects/$2.map
    {
        printf '{ global: %s double_calls; double_reset_calls; ' "$3"
        printf 'double_fail; double_log; double_live;\nlocal: '
        for name in $(printf '%s' "${HIDE:-}" | tr ',' ' '); do printf '%s; ' "$name"; done
        printf '*; };\n'
    } >"$map"
    shift 3
    made=
    for source in "$@"; do made="$made $(object "$source")"; done
    # shellcheck disable=SC2086
    $cxx -shared -o "$target" -Wl,-soname,"$soname" -Wl,-Bsymbolic -Wl,-z,defs \
        -Wl,--version-script="$map" $made -ldl -pthread
}

core=$(echo core/*.cpp)
loader="compiler/image.cpp compiler/loaded.cpp"
compiler="compiler/compile.cpp compiler/scan.cpp compiler/shim.cpp compiler/tokens.cpp $loader"
rtc="nvrtc/nvrtc.cpp nvrtc/options.cpp nvrtc/program.cpp"
cuda="cuda/exports.cpp cuda/vendor.cpp"
# shellcheck disable=SC2086
{
    compile $core $compiler $rtc $cuda nvrtc/exports.cpp
    link "$out/cuda/libcuda.so.1" libcuda.so.1 'cu*;' $core $loader $cuda
    link "$out/cuda/libnvrtc.so.12" libnvrtc.so.12 'nvrtc*;' core/control.cpp $compiler $rtc \
        nvrtc/exports.cpp
}
ln -sf libnvrtc.so.12 "$out/cuda/libnvrtc.so"

if [ "${2:-}" = test ]; then
    DOUBLE=$out PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" -m unittest discover -s tests -t tests
fi
