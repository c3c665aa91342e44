"""Makes a context on the first device when it is imported; ends it when the program does."""

import atexit

from . import driver
from .tools import make_default_context

driver.init()
context = make_default_context()
device = context.get_device()


def _finish() -> None:
    global context
    # The program may have ended it.
    if context is not None and context._uses:
        context.detach()
        context = None


atexit.register(_finish)
