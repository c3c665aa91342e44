"""Every error message in the sources is a sentence that is read once."""

from __future__ import annotations

from functools import cache

import pytest
from message_texts import RULES, faults_of, python_messages, rust_messages

# Texts of numpy, numba and PyCUDA, and counts that are never one.
KEPT = {
    "GPUArrays are not hashable.",
    "The truth value of an array with {} elements is ambiguous. Use a.any() or a.all()",
    "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the "
    "last axis of the array.",
    "num is {count}; Number of samples must be non-negative.",
    "repeats is {repeats}; repeats may not contain negative values.",
    "{count}; number sections must be larger than 0.",
    "an access to address {address:#x}, where there is no memory for it",
    "the host has no memory for {} elements of {}",
    "out of memory: sorting {length} elements needs another {} bytes, which the system refused",
    "out of memory: the reduction needs {bytes} bytes for reference values, which the system "
    "refused",
    "{} accesses {bytes} bytes at {address:#x} by an atomic operation, in {line}: the address is "
    "not a multiple of {bytes}",
}


@cache
def all_of(messages):
    return list(messages())


@pytest.mark.parametrize("messages", [python_messages, rust_messages])
def test_each_message_keeps_the_rules(messages):
    found = all_of(messages)
    assert len(found) > 500
    broken = [
        f"{place}: {text!r} {faults}"
        for place, text in found
        if text not in KEPT and (faults := faults_of(text))
    ]
    assert not broken, "\n".join(broken)


def test_texts_that_are_kept_are_in_the_sources():
    texts = {it.text for messages in (python_messages, rust_messages) for it in all_of(messages)}
    assert texts >= KEPT


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("index: index 10 is out of bounds", "names the argument twice"),
        ("an argument is not allowed [status 900 of Host]", "shows a status"),
        ("an argument is not allowed [InvalidValue (1)]", "shows a status"),
        ("device is {ordinal}; there are {count} devices", "has a count before a plural"),
        ("the memory has 1 bytes", "has a count before a plural"),
        ("address {address:#x} is no multiple of {width}", "has a turn that is read twice"),
        ("shape is {shape}, that of the output", "has a turn that is read twice"),
        ("step is 0; it must not be.", "ends with a mark"),
        ("x is " + "very " * 25 + "long", "has a sentence of more than 25 words"),
    ],
)
def test_the_rules_find_what_they_are_for(text, rule):
    assert faults_of(text) == [rule]
    assert rule in RULES or "sentence" in rule
