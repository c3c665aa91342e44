"""Uses the primary context of the first device while the program runs."""

import atexit

from . import driver
from .tools import make_default_context

driver.init()
context = make_default_context(lambda dev: dev.retain_primary_context())
context.push()
device = context.get_device()


def _finish() -> None:
    global context
    if context is not None:
        context.detach()
        context = None


atexit.register(_finish)
