#!/usr/bin/env python3
"""Downloads headers, runtimes and compilers of other projects that tests need into a folder.

    fetch.py headers 5.2|6.1|6.2|7.1 FOLDER   include/hip of that version
    fetch.py cuda FOLDER                      include/driver_types.h of CUDA 12.4
    fetch.py runtime 5|6|7 FOLDER             lib/libamdhip64.so.5 to .7 and what it needs
    fetch.py clang FOLDER                     llvm/bin/clang and AMD's device libraries
    fetch.py clang 21 FOLDER                  the same of LLVM 21, which knows generic targets
    fetch.py mpi FOLDER                       bin/mpiexec of MPICH, and lib/libmpi.so.12

An existing folder is left as it is. Headers of 6 and 7 come from triton's wheels, and the 5.2
headers from Debian's libamdhip64-dev, with amd_comgr.h. Runtimes of 6 and 7 come from Debian's
next releases, with that C library and loader (lib/ld-linux-*): run them as
`ld-linux-x86-64.so.2 --library-path lib PROGRAM`, which the scripts in llvm/bin of clang 21 do.
Nothing is installed. The folders of clang are laid out like a ROCm installation, for ROCM_PATH.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Seconds allowed for one download; the largest wheel has 270 MB.
PATIENCE = 400

TRITON = {"6.1": "3.0.0", "6.2": "3.3.1", "7.1": "3.9.0"}
ROCM_PACKAGES = [
    "libamdhip64-5",
    "libamd-comgr2",
    "libhsa-runtime64-1",
    "libhsakmt1",
    "rocm-device-libs",
]
# The Debian suites that have the later generations.
LATER = {"6": "sid", "7": "experimental"}
CLANG_PACKAGES = [
    "clang-19",
    "lld-19",
    "libclang-cpp19",
    "libclang-common-19-dev",
    "libllvm19",
    "rocm-device-libs",
]
MPI_PACKAGES = ["mpich", "libmpich12"]
# Debian packages that the above need, for machines that lack them.
NEEDED = {
    "libLLVM-15.so.1": "libllvm15",
    "libdrm.so.2": "libdrm2",
    "libdrm_amdgpu.so.1": "libdrm-amdgpu1",
    "libedit.so.2": "libedit2",
    "libelf.so.1": "libelf1",
    "libffi.so.8": "libffi8",
    "libgfortran.so.5": "libgfortran5",
    "libhwloc.so.15": "libhwloc15",
    "libnuma.so.1": "libnuma1",
    "libquadmath.so.0": "libquadmath0",
    "libslurm.so.38": "libslurm38",
    "libucp.so.0": "libucx0",
    "libucs.so.0": "libucx0",
    "libxml2.so.2": "libxml2",
    "libz3.so.4": "libz3-4",
    "libbsd.so.0": "libbsd0",
    "libmd.so.0": "libmd0",
    "libicuuc.so.72": "libicu72",
}


class Unavailable(Exception):
    """Raised with the reason why something cannot be downloaded here."""


def run(command, folder):
    try:
        done = subprocess.run(
            command, cwd=folder, timeout=PATIENCE, capture_output=True, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"`{' '.join(map(str, command))}`: {lines[-1]}")
    return done.stdout


def wheel(requirement, member, target, folder):
    """Extracts the members of a wheel whose names begin with `member`, without that prefix."""
    platforms = ["manylinux2014_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64"]
    run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        + ["--disable-pip-version-check", "--python-version", "3.11"]
        + [f"--platform={it}" for it in platforms]
        + ["--dest", folder, requirement],
        folder,
    )
    (file,) = Path(folder).glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.startswith(member) and not name.endswith("/"):
                path = target / name.removeprefix(member)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))


def debian(packages, target, folder):
    """Extracts the files of Debian packages below `target`."""
    download = ["apt-get", "download", "-o", "APT::Sandbox::User=root"]
    try:
        run([*download, *packages], folder)
    except Unavailable:
        # Package lists were never fetched on this machine: fetch them into this folder.
        apt = Path(folder, "apt")
        for name in ("lists/partial", "cache/archives/partial"):
            (apt / name).mkdir(parents=True, exist_ok=True)
        settings = [f"Dir::State::Lists={apt}/lists", f"Dir::Cache={apt}/cache"]
        own = [f"-o{it}" for it in [*settings, "Debug::NoLocking=1"]]
        run(["apt-get", "update", "-o", "APT::Sandbox::User=root", *own], folder)
        run([*download, *own, *packages], folder)
    for file in sorted(Path(folder).glob("*.deb")):
        run(["dpkg-deb", "-x", file, target], folder)
        file.unlink()


def headers(generation, target, folder):
    if generation in TRITON:
        requirement = f"triton=={TRITON[generation]}"
        wheel(requirement, "triton/backends/amd/include/", target / "include", folder)
    else:
        root = Path(folder, "root")
        debian(["libamdhip64-dev", "libamd-comgr-dev"], root, folder)
        shutil.copytree(root / "usr/include", target / "include")
    text = (target / "include/hip/hip_version.h").read_text()
    found = ".".join(
        line.split()[2]
        for name in ("MAJOR", "MINOR")
        for line in text.splitlines()
        if line.startswith(f"#define HIP_VERSION_{name} ")
    )
    if found != generation:
        raise Unavailable(f"the headers there are of HIP {found}, not {generation}")


def cuda(target, folder):
    requirement = "nvidia-cuda-runtime-cu12==12.4.127"
    wheel(requirement, "nvidia/cuda_runtime/include/", target / "include", folder)


def libraries(packages, root, library, programs, folder):
    """Extracts Debian packages below `root`, and collects their libraries and dependencies."""
    library.mkdir()
    while packages:
        debian(packages, root, folder)
        (lib,) = root.glob("usr/lib/*-linux-gnu")
        for file in [*lib.glob("*.so*"), *root.glob("lib/*-linux-gnu/*.so*")]:
            (library / file.name).unlink(missing_ok=True)
            shutil.copy2(file, library / file.name, follow_symlinks=False)
        missing = set()
        for file in [*library.glob("*.so*"), *(root / name for name in programs)]:
            command = ["env", f"LD_LIBRARY_PATH={library}", "ldd", file]
            for line in run(command, folder).splitlines():
                if line.endswith("not found"):
                    missing.add(line.split()[0])
        unknown = sorted(missing - NEEDED.keys())
        if unknown:
            raise Unavailable(f"Debian's packages need {', '.join(unknown)}")
        packages = sorted(NEEDED[name] for name in missing)
    return lib


def later(packages, suite, target, folder):
    """Extracts a later suite's packages, with all their dependencies, below `target`."""
    apt = Path(folder, "apt")
    for name in ("lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "status").touch()
    # The Debian mirror that this machine uses.
    targets = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(COMPONENT)",
        "Created-By: Packages",
    ]
    found = [line.split() for line in run(targets, folder).splitlines()]
    mirrors = [uri for uri, component in found if component == "main" and "security" not in uri]
    if not mirrors:
        raise Unavailable("apt knows no mirror of Debian")
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    suites = dict.fromkeys(["sid", suite])
    lines = [f"deb [signed-by={keys}] {mirrors[0]} {it} main\n" for it in suites]
    (apt / "sources.list").write_text("".join(lines))
    settings = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Debug::NoLocking": 1,
        "APT::Sandbox::User": "root",
        "APT::Default-Release": suite,
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    }
    get = ["apt-get", "--quiet", *(f"-o{name}={value}" for name, value in settings.items())]
    run([*get, "update"], folder)
    run([*get, "--yes", "--no-install-recommends", "--download-only", "install", *packages], folder)
    for file in sorted((apt / "cache/archives").glob("*.deb")):
        run(["dpkg-deb", "-x", file, target], folder)


def runtime(generation, target, folder):
    if generation in LATER:
        root = Path(folder, "root")
        names = ["libamdhip64-", "libhiprtc", "libhiprtc-builtins"]
        later([name + generation for name in names], LATER[generation], root, folder)
        (lib,) = root.glob("usr/lib/*-linux-gnu")
        shutil.copytree(lib, target / "lib", symlinks=True)
        return
    lib = libraries(ROCM_PACKAGES, Path(folder, "root"), target / "lib", [], folder)
    shutil.copytree(lib / "amdgcn", target / "lib/amdgcn")


def clang(target, folder):
    root = Path(folder, "root")
    programs = ["usr/lib/llvm-19/bin/clang", "usr/lib/llvm-19/bin/lld"]
    lib = libraries(CLANG_PACKAGES, root, target / "lib", programs, folder)
    shutil.copytree(lib / "amdgcn", target / "amdgcn")
    llvm = target / "llvm"
    shutil.copytree(root / "usr/lib/llvm-19", llvm, symlinks=True)
    # clang's own headers and libraries are links to files outside the package.
    resources = llvm / "lib/clang/19"
    shutil.rmtree(resources, ignore_errors=True)
    resources.unlink(missing_ok=True)
    shutil.copytree(root / "usr/lib/llvm-19/lib/clang/19", resources)
    # A wrapper of this name sets the library path, which the linker that it runs inherits.
    (llvm / "bin/clang").rename(llvm / "bin/clang-19")
    script = (
        '#!/bin/sh\nhere=$(cd "$(dirname "$0")/../.." && pwd)\n'
        'LD_LIBRARY_PATH=$here/lib exec "$here/llvm/bin/clang-19" "$@"\n'
    )
    (llvm / "bin/clang").write_text(script)
    (llvm / "bin/clang").chmod(0o755)
    run([llvm / "bin/clang", "--version"], folder)


def later_clang(generation, target, folder):
    root = Path(folder, "root")
    names = ["clang-", "lld-", "rocm-device-libs-"]
    later([name + generation for name in names], "sid", root, folder)
    (lib,) = root.glob("usr/lib/*-linux-gnu")
    shutil.copytree(lib, target / "lib", symlinks=True)
    llvm = root / f"usr/lib/llvm-{generation}"
    shutil.copytree(llvm / "lib", target / "llvm/lib", symlinks=True)
    programs = target / "llvm/bin"
    programs.mkdir()
    for name, original in (("clang", f"clang-{generation}"), ("lld", "lld")):
        shutil.copy2(llvm / "bin" / original, programs / f"{name}.real")
        resources = f'-resource-dir "$here/llvm/lib/clang/{generation}"'
        # clang runs itself under the name that it was given, with -cc1 as the first argument.
        options = (
            f'case $1 in -cc1*) ;; *) set -- -no-canonical-prefixes {resources} "$@" ;; esac\n'
        )
        script = (
            '#!/bin/sh\nhere=$(cd "$(dirname "$0")/../.." && pwd)\n'
            f"{options if name == 'clang' else ''}"
            'exec "$here"/lib/ld-linux-*.so.* --library-path "$here/lib" '
            f'--argv0 "$here/llvm/bin/{name}" "$here/llvm/bin/{name}.real" "$@"\n'
        )
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    run([programs / "clang", "--version"], folder)


def mpi(target, folder):
    root = Path(folder, "root")
    programs = ["mpiexec.hydra", "hydra_pmi_proxy"]
    libraries(MPI_PACKAGES, root, target / "lib", [f"usr/bin/{name}" for name in programs], folder)
    # The soname that MPICH and other MPI libraries with the same binary interface agreed on.
    (target / "lib/libmpi.so.12").symlink_to("libmpich.so.12")
    (target / "bin").mkdir()
    for name in programs:
        shutil.copy2(root / "usr/bin" / name, target / "bin" / name)
    (target / "bin/mpiexec.hydra").rename(target / "bin/mpiexec")


def main():
    tasks = {
        ("headers", 3): lambda words: lambda *places: headers(words[1], *places),
        ("cuda", 2): lambda words: cuda,
        ("runtime", 3): lambda words: lambda *places: runtime(words[1], *places),
        ("clang", 2): lambda words: clang,
        ("clang", 3): lambda words: lambda *places: later_clang(words[1], *places),
        ("mpi", 2): lambda words: mpi,
    }
    words = sys.argv[1:]
    task = tasks.get((words[0] if words else "", len(words)))
    generations = {"headers": ["5.2", *TRITON], "runtime": ["5", *LATER], "clang": ["21"]}
    if task is None or (len(words) == 3 and words[1] not in generations[words[0]]):
        sys.exit(__doc__)
    target = Path(words[-1]).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{target}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder, "made")
            made.mkdir()
            try:
                task(words)(made, folder)
            except Unavailable as error:
                sys.exit(f"fetch.py: {error}")
            made.rename(target)


if __name__ == "__main__":
    main()
