"""What the current device can do, with the names of ``pycuda.characterize``."""

import sys


def platform_bits() -> int:
    """Bits of an address."""
    return 64 if sys.maxsize > 2**32 else 32


def has_double_support() -> bool:
    """True: every device of every backend computes in 64-bit floating point."""
    return True


def has_stack() -> bool:
    """True: every device of every backend can call functions."""
    return True
