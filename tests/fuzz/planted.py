"""Faults for the search to find: what shows that it would find real ones (`--planted NAME`)."""

from __future__ import annotations

import gc
import os
import signal

from surface import Target

from pygpu import driver

KEPT: list[driver.DeviceAllocation] = []


class Odd(Exception):
    """An exception of no class that pygpu may raise."""


class Object:
    """Does wrong when it has been armed."""

    def __init__(self) -> None:
        self.armed = False

    def arm(self) -> None:
        """The line without which nothing happens."""
        self.armed = True

    def idle(self) -> None:
        """Nothing."""

    def crash(self) -> None:
        """Ends the process by a signal."""
        if self.armed:
            os.kill(os.getpid(), signal.SIGSEGV)

    def hang(self) -> None:
        """Does not return."""
        while self.armed:
            pass

    def system_error(self) -> None:
        """Raises what Python raises when an extension breaks its rules."""
        if self.armed:
            raise SystemError("planted")

    def odd(self) -> None:
        """Raises an exception of its own."""
        if self.armed:
            raise Odd("planted")

    def leak(self) -> None:
        """Keeps memory of the device."""
        if self.armed:
            KEPT.append(driver.mem_alloc(64))

    def damage(self) -> None:
        """Writes an array that it does not know."""
        if self.armed:
            for one in gc.get_objects():
                if type(one).__name__ == "Canaries":
                    one.device[0].fill(9)


def targets(fault: str) -> list[Target]:
    """Calls of which one does wrong."""
    names = ["idle", "arm", "idle", fault]
    return [Target(f"planted.{name}", f"{{r}}.{name}", "planted.Object()") for name in names]
