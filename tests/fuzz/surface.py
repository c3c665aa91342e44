"""The targets of the search: everything public in pygpu's modules, found by introspection."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from dataclasses import dataclass, field

import pygpu

# Importing one of these modules creates a context and keeps it until exit, which the prelude has
# already done; runs a program; or raises an error.
IMPORTED_FOR_EFFECT = {"autoinit", "autoprimaryctx", "dask", "debug", "gl"}

# Names that are not called, with the reason.
LEFT_OUT = {
    "gpuarray.GPUArray.__init_subclass__": "Python's own",
    "tools.init_cuda_context_fixture": "a generator that pytest drives",
}

# Destroys the memory of the batch's canaries; left out on a shared device (`--no-resets`).
RESETS = {"driver.Device.reset"}

# Expressions that create an object of a class; other classes are called.
RECEIVERS = {
    "GPUArray": "array",
    "DeviceAllocation": "drv.mem_alloc(64)",
    "ManagedAllocation": "drv.managed_empty(8, 'f4').base",
    "PooledDeviceAllocation": "tools.DeviceMemoryPool().allocate(64)",
    "PooledHostAllocation": "tools.PageLockedMemoryPool().allocate(7, 'f4').base",
    "PagelockedHostAllocation": "drv.pagelocked_empty(8, 'f4').base",
    "RegisteredHostMemory": "drv.register_host_memory(drv.aligned_zeros(4096, 'u1')).base",
    "DeviceMemoryPool": "tools.DeviceMemoryPool()",
    "PageLockedMemoryPool": "tools.PageLockedMemoryPool()",
    "ArrayFlags": "gpu('f4', (2, 3)).flags",
    "Context": "context",
    "arrow.Context": "arrow.Context()",
    "Device": "drv.Device(0)",
    "Stream": "stream",
    "Event": "event",
    "Graph": "graph()",
    "Linker": "drv.Linker()",
    "Function": "function()",
    "Module": "compiler.SourceModule('__global__ void idle() { }').module",
    "DynamicModule": "compiler.DynamicModule()",
    "SourceModule": "compiler.SourceModule('__global__ void idle() { }')",
    "PointerHolderBase": "Holder('x')",
    "Memcpy2D": "copy",
    "Memcpy3D": "copy",
    "DeviceData": "tools.DeviceData()",
    "ArgumentHandler": "drv.ArgumentHandler(host('f4', 7))",
    "In": "drv.In(host('f4', 7))",
    "Out": "drv.Out(host('f4', 7))",
    "InOut": "drv.InOut(host('f4', 7))",
    "IPCMemoryHandle": "drv.IPCMemoryHandle(bytes(64))",
    "CompileError": "drv.CompileError('x')",
    "Descriptor": "shared.ipc_handle()",
    "Column": "ipc.export_column(shared)",
    "OpenedArray": "ipc.open(shared.ipc_handle())",
    "OpenedColumn": "ipc.open_column(ipc.export_column(shared))",
    "DeviceNDArray": "cuda.to_device(host('f4', (2, 3)))",
    "MappedNDArray": "cuda.mapped_array(7)",
    "DeviceRecord": "cuda.to_device(host(RECORD, 1)[0])",
    "IpcHandle": "cuda.IpcHandle(None, bytes(64), 28)",
    "CudaBuffer": "arrow.Context().buffer_from_data(b'01234567' * 8)",
    "HostBuffer": "arrow.new_host_buffer(64)",
    "BufferReader": "arrow.BufferReader(arrow.Context().buffer_from_data(b'01234567' * 8))",
    "BufferWriter": "arrow.BufferWriter(arrow.Context().new_buffer(64))",
    "DeviceColumn": "arrow.DeviceColumn.from_gpuarray(gpu('f4', 7))",
    "DeviceRecordBatch": "arrow.DeviceRecordBatch.from_columns({'x': gpu('f4', 7)})",
    "IpcMemHandle": "arrow.Context().buffer_from_data(b'01234567').export_for_ipc()",
    "XORWOWRandomNumberGenerator": "curandom.XORWOWRandomNumberGenerator()",
    "MRG32k3aRandomNumberGenerator": "curandom.MRG32k3aRandomNumberGenerator()",
    "Sobol32RandomNumberGenerator": "curandom.Sobol32RandomNumberGenerator()",
    "ScrambledSobol64RandomNumberGenerator": "curandom.ScrambledSobol64RandomNumberGenerator()",
}
NEED_KERNELS = {"Function", "Module", "SourceModule"}
NEED_MANAGED = {"ManagedAllocation"}

# Kinds of arguments (see `values`) by parameter name; other parameters get any kind.
KINDS = {
    "array": "a b x x1 x2 other self out one criterion",
    "operand": "then_ else_ arg mod significand exponent value fill_value",
    "index_array": "indices subset dest_indices src_indices",
    "arrays": "arrays src_offsets",
    "host": "ary array bf_obj buf_py other_ary",
    "memory": "dest src devptr gpudata pointer address gpu_data",
    "dtype": "dtype arg_types",
    "shape": "shape dest_shape grid block",
    "order": "order",
    "strides": "strides",
    "axes": "axes positions",
    "index": "item key condition",
    "allocator": "allocator func inner ctx_maker message_handler add_timer",
    "stream": "stream stream_or_out aligned owner",
    "event": "event",
    "flag": "flags mem_flags attr limit cc config fc access_size alignment mode input_type "
    "output_mode jit_input_type",
    "integer": "size count width height bytes pitch offset keep n bin_nr elements dtype_size "
    "word_size thread_count threads shared_mem registers shared shared_size axis data priority "
    "number_or_pci_bus_id number_of_bytes default value_in_bytes nbytes position length axis1 "
    "axis2 k decimals indices_or_sections len buffer_size section ndigits ddof i",
    "number": "selffac otherfac start stop step",
    "context": "dest_context src_context peer",
    "device": "dev device devdata",
    "handle": "handle",
    "text": "name filename libname source nvcc target arch code config_file output_file msg",
    "boolean": "keepdims copy portable wc flag wait async_ pagelocked no_extern_c time_kernel "
    "log_verbose",
    "bytes": "buffer",
}
KIND = {name: kind for kind, names in KINDS.items() for name in names.split()}

# In these modules, `ary` and `other_ary` of functions (not methods) are device arrays.
ON_DEVICE = {"gpuarray.empty_like", "gpuarray.zeros_like", "gpuarray.ones_like"}

# Parameters of callables that only declare (*args, **kwargs), and kinds that a name does not imply.
HINTS: dict[str, list[tuple[str, str]]] = {
    "gpuarray.GPUArray": [
        ("shape", "shape"),
        ("dtype", "dtype"),
        ("allocator", "allocator"),
        ("base", "anything"),
        ("gpudata", "memory"),
        ("strides", "strides"),
        ("order", "order"),
    ],
    "gpuarray.arange": [("start", "number"), ("stop", "number"), ("step", "number")],
    "gpuarray.GPUArray.reshape": [("", "shape")],
    "gpuarray.reshape": [("a", "array"), ("", "shape")],
    "driver.memcpy_htod": [("dest", "memory"), ("src", "host")],
    "driver.memcpy_htod_async": [("dest", "memory"), ("src", "host"), ("stream", "stream")],
    "driver.memcpy_dtoh": [("dest", "host"), ("src", "memory")],
    "driver.memcpy_dtoh_async": [("dest", "host"), ("src", "memory"), ("stream", "stream")],
    "driver.Memcpy2D.set_src_device": [("devptr", "memory")],
}
HINTS["gpuarray.GPUArray.__init__"] = HINTS["gpuarray.GPUArray"]
for _call, _parts in {
    "driver.Function.__call__": [],
    "driver.Function.prepared_call": ["shape", "shape"],
    "driver.Function.prepared_async_call": ["shape", "shape", "stream"],
    "driver.Function.prepared_timed_call": ["shape", "shape"],
}.items():
    HINTS[_call] = [("", kind) for kind in _parts]

# Special methods and attributes that are part of a protocol.
PROTOCOLS = ["__init__", "__call__", "__enter__", "__reduce__", "__cuda_stream__", "__array__"]
PROTOCOLS += ["__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__len__", "__iter__"]
PROTOCOLS += ["__setstate__", "__copy__", "__deepcopy__", "__array_interface__"]


@dataclass
class Parameter:
    """A parameter: how it may be passed, and the kind of its argument."""

    name: str
    kind: str
    needed: bool = True


@dataclass
class Target:
    """An action of a case: `form` is its text, with braces for drawn values."""

    name: str
    form: str
    receiver: str | None = None
    parameters: list[Parameter] = field(default_factory=list)
    is_call: bool = True


def _parameters(name: str, function: object, method: bool) -> list[Parameter]:
    if name in HINTS:
        return [Parameter(text, kind, place < 2) for place, (text, kind) in enumerate(HINTS[name])]
    try:
        given = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return [Parameter("", "anything", False)]
    found = []
    for parameter in given[1:] if method else given:
        if parameter.kind == parameter.VAR_KEYWORD:
            continue
        kind = KIND.get(parameter.name, "anything")
        if kind == "host" and (name in ON_DEVICE):
            kind = "array"
        needed = parameter.default is parameter.empty
        several = parameter.kind == parameter.VAR_POSITIONAL
        found.append(Parameter("" if several else parameter.name, kind, needed and not several))
    return found


def _members(module: str, cls: type) -> list[Target]:
    receiver = RECEIVERS.get(f"{module}.{cls.__name__}", RECEIVERS.get(cls.__name__))
    targets = []
    for member in dir(cls):
        if member.startswith("_") and member not in PROTOCOLS:
            continue
        name = f"{module}.{cls.__name__}.{member}"
        raw = inspect.getattr_static(cls, member)
        value = getattr(cls, member, None)
        if raw is getattr(object, member, None) or (member == "__call__" and not callable(raw)):
            continue
        if isinstance(raw, (staticmethod, classmethod)):
            path = f"{module}.{cls.__name__}.{member}"
            targets.append(Target(name, path, None, _parameters(name, value, False)))
        elif receiver is None:
            continue
        elif callable(value) and (inspect.isroutine(raw) or inspect.isfunction(raw)):
            form = "{r}" if member == "__call__" else f"{{r}}.{member}"
            targets.append(Target(name, form, receiver, _parameters(name, value, True)))
        else:
            targets.append(Target(f"{name} (get)", f"{{r}}.{member}", receiver, is_call=False))
            targets.append(
                Target(
                    f"{name} (set)",
                    f"{{r}}.{member} = {{0}}",
                    receiver,
                    [Parameter("", KIND.get(member, "anything"))],
                    False,
                )
            )
    return targets


def public_names(module: object) -> list[str]:
    """Returns a module's `__all__`, or else the names that it defines without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = []
    for name, value in vars(module).items():
        where = getattr(value, "__module__", "") or ""
        if not name.startswith("_") and callable(value) and where.startswith("pygpu"):
            own.append(name)
    return own


def targets_of_module(name: str) -> list[Target]:
    """Returns the functions and classes of a module, and the members of the classes."""
    module = importlib.import_module(f"pygpu.{name}" if name else "pygpu")
    short = name or "pygpu"
    targets = []
    for public in public_names(module):
        value = getattr(module, public)
        path = f"{short}.{public}"
        if inspect.isclass(value):
            if not issubclass(value, enum.Enum):
                targets += _members(short, value)
            targets.append(Target(path, path, None, _parameters(path, value, False)))
        elif callable(value):
            targets.append(Target(path, path, None, _parameters(path, value, False)))
    return targets


def modules() -> list[str]:
    """Returns the public modules; the empty name is the package."""
    found = ["", "cuda.cudadrv.devicearray"]
    for info in pkgutil.iter_modules(pygpu.__path__):
        if not info.name.startswith("_") and info.name not in IMPORTED_FOR_EFFECT:
            found.append(info.name)
    return found


def attributes_of_copies() -> list[Target]:
    """Returns the settings of a copy of rows, which only the object has as attributes."""
    targets = []
    for attribute in vars(pygpu.driver.Memcpy3D()):
        if attribute.startswith("_"):
            continue
        kind = "memory" if attribute.endswith("device") else "integer"
        name = f"driver.Memcpy3D.{attribute} (set)"
        parameters = [Parameter("", kind)]
        targets.append(Target(name, f"{{r}}.{attribute} = {{0}}", "copy", parameters, False))
    return targets


def _forms(kind: str, forms: list[str], parameters: list[str]) -> list[Target]:
    return [
        Target(f"array {form}", form, kind, [Parameter("", name) for name in parameters], False)
        for form in forms
    ]


BINARY = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "@",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
]
AUGMENTED = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", "<<=", ">>=", "@="]
ALONE = ["-{r}", "+{r}", "~{r}", "abs({r})", "len({r})", "repr({r})", "str({r})", "hash({r})"]
ALONE += ["bool({r})", "int({r})", "float({r})", "complex({r})", "operator.index({r})", "list({r})"]
ALONE += ["round({r})", "round({r}, 2)", "math.trunc({r})", "math.floor({r})", "f'{{r}}'"]
ALONE += ["f'{{r}:.3f}'", "pickle.loads(pickle.dumps({r}))", "copy.copy({r})", "copy.deepcopy({r})"]
ALONE += ["memoryview({r})", "bytes({r})", "next(iter({r}))", "reversed({r})", "dir({r})"]
ALONE += ["vars({r})", "{r}.missing", "del {r}.shape", "del {r}[0]", "{r}.__sizeof__()"]
ALONE += ["np.asarray({r})", "np.sum({r})", "np.exp({r})", "np.array({r})", "np.ravel({r})"]
ALONE += ["np.sort({r})", "np.argmax({r})", "np.linalg.norm({r})", "np.save('/dev/null', {r})"]
ALONE += ["np.float32(1) + {r}", "np.ones(3) + {r}", "'%s' % {r}", "type({r})(3, 'f4')"]
WITH_ONE = ["np.add({r}, {0})", "np.dot({r}, {0})", "np.array_equal({r}, {0})", "divmod({r}, {0})"]
WITH_ONE += ["np.where({r}, {0}, 1)", "np.concatenate([{r}, {0}])", "pow({r}, {0}, 3)"]
WITH_ONE += ["{0} in {r}", "np.add(1, 2, out={r})", "divmod({0}, {r})", "np.minimum({0}, {r})"]


def operators() -> list[Target]:
    """Returns operators, items, conversions and numpy's functions of an array."""
    both = [f"{{r}} {sign} {{0}}" for sign in BINARY] + [f"{{0}} {sign} {{r}}" for sign in BINARY]
    targets = _forms("array", both + WITH_ONE, ["operand"])
    targets += _forms("array", both, ["anything"])
    targets += _forms("array", [f"{{r}} {sign} {{0}}" for sign in AUGMENTED], ["operand"])
    targets += _forms("array", [f"{{r}} {sign} {{0}}" for sign in AUGMENTED], ["anything"])
    targets += _forms("array", ALONE, [])
    targets += _forms("array", ["{r}[{0}]"] * 8, ["index"])
    targets += _forms("array", ["{r}[{0}] = {1}"] * 4, ["index", "operand"])
    targets += _forms("array", ["{r}[{0}] = {1}"] * 4, ["index", "host"])
    targets += _forms("array", ["{r}[{0}] = {1}"], ["index", "anything"])
    targets += _forms("array", ["{r}[{0}] += {1}"] * 2, ["index", "operand"])
    others = ["repr({r})", "hash({r})", "{r} == {0}", "{r} < {0}", "int({r})", "len({r})"]
    others += ["operator.index({r})", "copy.copy({r})", "pickle.dumps({r})", "{r}.__init__({0})"]
    others += [
        "type({r})()",
        "type({r}).__new__(type({r}))",
        "{r}.x = {0}",
        "list({r})",
        "dir({r})",
    ]
    for receiver in sorted(set(RECEIVERS.values()) - {"array"}):
        for target in _forms(receiver, others, ["anything"]):
            target.name = target.name.replace("array", "any object", 1)
            targets.append(target)
    return targets


def targets(managed: bool = True, resets: bool = True, kernels: bool = False) -> list[Target]:
    """Returns all targets, in a fixed order."""
    found = [target for name in modules() for target in targets_of_module(name)]
    found += attributes_of_copies() + operators()
    left_out = set(LEFT_OUT) | (set() if resets else RESETS)
    unreachable = set() if managed else {RECEIVERS[name] for name in NEED_MANAGED}
    unreachable |= set() if kernels else {RECEIVERS[name] for name in NEED_KERNELS}
    return [
        target
        for target in found
        if target.name not in left_out
        and target.receiver not in unreachable
        and (managed or "managed" not in target.name)
    ]
