"""Generates C++ declarations of HIP from the backend's bindings: declare.py BINDINGS OUTPUT

bindgen writes the bindings. The fake driver cannot define a function differently from the
backend's declaration, because C++ refuses two different declarations of one C function.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PLAIN = {
    "c_char": "char",
    "c_uchar": "unsigned char",
    "c_ushort": "unsigned short",
    "c_int": "int",
    "c_uint": "unsigned",
    "c_ulonglong": "unsigned long long",
    "c_void": "void",
    "usize": "size_t",
    "f32": "float",
    "u8": "unsigned char",
    "u32": "unsigned",
    "u64": "unsigned long long",
}
FUNCTION = re.compile(r'unsafe extern "C" fn\((.*?)\)(?: -> (.*))?$', re.DOTALL)


def parts(text: str) -> list[tuple[str, str]]:
    """Splits `a: A, b: B` into names and types; the bindings' types contain no commas here."""
    return [
        (name.strip().rstrip("_"), kind.strip())
        for name, _, kind in (item.partition(": ") for item in text.split(","))
        if kind
    ]


def convert(kind: str) -> str:
    kind = kind.strip().replace("::std::ffi::", "")
    if kind.startswith("*mut "):
        return convert(kind[5:]) + "*"
    if kind.startswith("*const "):
        return convert(kind[7:]) + " const*"
    return PLAIN.get(kind, kind.removesuffix("::Type"))


def member(name: str, kind: str) -> str:
    aligned = re.fullmatch(r"__BindgenOpaqueArray(\d+)<(.*)>", kind)
    if aligned:
        return f"alignas({aligned[1]}) {member(name, aligned[2])}"
    array = re.fullmatch(r"\[(.*); (\d+)(?:usize)?\]", kind)
    if array:
        return f"{convert(array[1])} {name}[{array[2]}];"
    return f"{convert(kind)} {name};"


def parameters(text: str) -> str:
    return ", ".join(f"{convert(kind)} {name}" for name, kind in parts(text))


def alias(name: str, kind: str) -> str:
    optional = re.fullmatch(r"::std::option::Option<\s*(.*?),?\s*>", kind, re.DOTALL)
    function = FUNCTION.fullmatch(optional[1]) if optional else None
    if function:
        return f"using {name} = {convert(function[2] or 'c_void')} (*)({parameters(function[1])});"
    return f"using {name} = {convert(kind)};"


def structure(name: str, body: str) -> str:
    fields = [(field, kind) for field, kind in parts(body) if not kind.endswith("; 0]")]
    if not fields:
        return f"struct {name};"
    return "\n".join([f"struct {name} {{", *(f"    {member(*it)}" for it in fields), "};"])


def enumeration(name: str, body: str) -> list[str]:
    values = re.findall(r"pub const (\w+): Type = (\d+);", body)
    lines = [f"enum {name} : unsigned {{", *(f"    {key} = {number}," for key, number in values)]
    lines += ["};", f"#define EACH_{name}(X) \\"]
    named = {number: key for key, number in reversed(values)}
    lines += [f"    X({key}) \\" for key in reversed(list(named.values()))]
    return [*lines, ""]


ITEM = re.compile(
    r"^pub const (?P<constant>\w+): u32 = (?P<value>\d+);$"
    r"|^pub mod (?P<enum>\w+) \{$(?P<values>.*?)^\}$"
    r"|^pub (?:struct|(?P<union>union)) (?P<struct>\w+) \{$(?P<fields>.*?)^\}$"
    r"|^pub type (?P<alias>\w+) =\s(?P<target>.*?);$"
    r"|^    pub fn (?P<function>\w+)\((?P<parameters>.*?)\) -> (?P<result>.*?);$",
    re.DOTALL | re.MULTILINE,
)


def declarations(text: str) -> list[str]:
    lines = ["// Made by declare.py.", "#pragma once", "#include <cstddef>", ""]
    # bindgen writes a union, which is only bytes here, after the struct that contains it.
    for item in sorted(ITEM.finditer(text), key=lambda item: not item["union"]):
        if item["constant"]:
            lines.append(f"constexpr unsigned {item['constant']} = {item['value']};")
        elif item["enum"]:
            lines += enumeration(item["enum"], item["values"])
        elif item["struct"]:
            lines.append(structure(item["struct"], item["fields"].replace("pub ", "")))
        elif item["alias"]:
            lines.append(alias(item["alias"], item["target"].strip()))
        else:
            result, name = convert(item["result"]), item["function"]
            lines.append(f'extern "C" {result} {name}({parameters(item["parameters"])});')
    return lines


if __name__ == "__main__":
    bindings, output = map(Path, sys.argv[1:])
    text = "\n".join(declarations(bindings.read_text())) + "\n"
    # An unchanged file is not written, so that nothing is compiled again.
    if not output.exists() or output.read_text() != text:
        output.write_text(text)
