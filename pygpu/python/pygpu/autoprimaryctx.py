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
    # The program may have ended it.
    if context is not None and context._uses:
        context.detach()
        context = None


atexit.register(_finish)
