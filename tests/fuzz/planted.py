"""Planted faults, which show that the search would find real ones (`--planted NAME`)."""

from __future__ import annotations

import gc
import os
import signal

from surface import Target

from pygpu import driver

KEPT: list[driver.DeviceAllocation] = []


class Odd(Exception):
    """An exception class that pygpu must not raise."""


class Object:
    """An object that misbehaves once it is armed."""

    def __init__(self) -> None:
        self.armed = False

    def arm(self) -> None:
        """Arms the object; without this line nothing happens."""
        self.armed = True

    def idle(self) -> None:
        """Does nothing."""

    def crash(self) -> None:
        """Ends the process with a signal."""
        if self.armed:
            os.kill(os.getpid(), signal.SIGSEGV)

    def hang(self) -> None:
        """Never returns."""
        while self.armed:
            pass

    def system_error(self) -> None:
        """Raises the error that Python raises when an extension breaks its rules."""
        if self.armed:
            raise SystemError("planted")

    def odd(self) -> None:
        """Raises an exception of an unexpected class."""
        if self.armed:
            raise Odd("planted")

    def leak(self) -> None:
        """Leaks device memory."""
        if self.armed:
            KEPT.append(driver.mem_alloc(64))

    def damage(self) -> None:
        """Writes to an array that does not belong to the case."""
        if self.armed:
            for one in gc.get_objects():
                if type(one).__name__ == "Canaries":
                    one.device[0].fill(9)


def targets(fault: str) -> list[Target]:
    """Returns calls, one of which misbehaves."""
    names = ["idle", "arm", "idle", fault]
    return [Target(f"planted.{name}", f"{{r}}.{name}", "planted.Object()") for name in names]
