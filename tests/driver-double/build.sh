#!/bin/sh
# Builds the driver double: build.sh OUTDIR [test]
#
# Makes OUTDIR/cuda/libcuda.so.1 and libnvrtc.so.12 (and libnvrtc.so), and
# OUTDIR/hip/libamdhip64.so. With `test`, runs the double's own tests as well.
# HIDE (names with spaces or commas between) leaves symbols out, so that a program that looks
# for them does not find them; CXX names the compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cxx=${CXX:-c++}
mkdir -p "$out/objects" "$out/cuda" "$out/hip"

flags="-std=c++17 -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden -pthread -U_FORTIFY_SOURCE"
flags="$flags -I$here -DSHIM_FOLDER=\"$here/compiler\""

# As many at a time as there are processors.
compile() {
    printf '%s\n' "$@" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I{} sh -c '
        source=$1 object=$2/objects/$(printf %s "$1" | tr / -).o; shift 2
        # Nothing depends on so little that looking would be cheaper than building.
        if [ "$object" -nt "$object.stamp" ] 2>/dev/null; then exit 0; fi
        exec "$@" -c "$source" -o "$object"
    ' sh {} "$out" $cxx $flags
}

objects() {
    for source in "$@"; do
        printf '%s ' "$out/objects/$(printf %s "$source" | tr / -).o"
    done
}

# The names that HIDE leaves in are global, all else is local.
symbols() {
    hidden=$(printf '%s' "${HIDE:-}" | tr ',' ' ')
    printf '{ global: %s double_calls; double_reset_calls; double_fail; double_log; double_live;\n' "$1"
    printf 'local: '
    for name in $hidden; do printf '%s; ' "$name"; done
    printf '*; };\n'
}

link() { # output, soname, symbols' pattern, sources
    target=$1 soname=$2
    symbols "$3" >"$out/objects/$soname.map"
    shift 3
    # shellcheck disable=SC2046
    $cxx -shared -o "$target" -Wl,-soname,"$soname" -Wl,-Bsymbolic -Wl,-z,defs \
        -Wl,--version-script="$out/objects/$soname.map" $(objects "$@") -ldl -pthread
}

cd "$here"
core=$(echo core/*.cpp) compiler="compiler/compile.cpp compiler/image.cpp compiler/loaded.cpp
compiler/scan.cpp compiler/shim.cpp" rtc="nvrtc/nvrtc.cpp nvrtc/options.cpp nvrtc/program.cpp"
# shellcheck disable=SC2086
{
    compile $core $compiler $rtc cuda/exports.cpp cuda/vendor.cpp nvrtc/exports.cpp
    link "$out/cuda/libcuda.so.1" libcuda.so.1 'cu*;' $core compiler/image.cpp \
        compiler/loaded.cpp cuda/exports.cpp cuda/vendor.cpp
    link "$out/cuda/libnvrtc.so.12" libnvrtc.so.12 'nvrtc*;' core/control.cpp $compiler $rtc \
        nvrtc/exports.cpp
}
ln -sf libnvrtc.so.12 "$out/cuda/libnvrtc.so"
