"""Makes a context on the first device when it is imported; ends it when the program does."""

import atexit

from . import driver
from .tools import make_default_context

driver.init()
context = make_default_context()
device = context.get_device()


def _finish() -> None:
    global context
    if context is not None:
        context.detach()
        context = None


atexit.register(_finish)
