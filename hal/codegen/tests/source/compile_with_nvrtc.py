"""Compiles every .cu file of a folder with NVRTC, which does not need a GPU.

usage: compile_with_nvrtc.py [--no-warnings] FOLDER [ARCHITECTURE ...]
(default: compute_75 sm_90)

NVRTC is loaded from the wheel nvidia-cuda-nvrtc-cu12 if that is installed, otherwise from the
system. Prints a line for each failure and `N passed, M failed`; the exit status is 1 if any file
failed. With `--no-warnings`, a file that compiles with a warning also counts as failed.
"""

import ctypes
import pathlib
import sys

OPTIONS = ["--std=c++14", "-fmad=false"]


def load():
    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
    for folder in sys.path:
        for library in pathlib.Path(folder).glob("nvidia/*/lib/libnvrtc.so*"):
            names.insert(0, str(library))
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    sys.exit("NVRTC was not found; install the wheel nvidia-cuda-nvrtc-cu12")


def compile_source(nvrtc, source, name, architecture, warnings):
    """The compiler's log if it failed, or if it has warnings and may have none; else None."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None)
    options = [f"--gpu-architecture={architecture}", *OPTIONS]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(max(size.value, 1))
    nvrtc.nvrtcGetProgramLog(program, text)
    log = text.value.decode(errors="replace")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log if status != 0 or (log.strip() and not warnings) else None


def main():
    arguments = [it for it in sys.argv[1:] if it != "--no-warnings"]
    if not arguments:
        sys.exit(__doc__)
    warnings = "--no-warnings" not in sys.argv
    folder = pathlib.Path(arguments[0])
    architectures = arguments[1:] or ["compute_75", "sm_90"]
    nvrtc = load()
    passed = failed = 0
    for path in sorted(folder.glob("*.cu")):
        source = path.read_bytes()
        for architecture in architectures:
            log = compile_source(nvrtc, source, path.name, architecture, warnings)
            if log is None:
                passed += 1
            else:
                failed += 1
                print(f"{path.name} for {architecture}:\n{log[:2000]}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
