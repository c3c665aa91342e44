"""Uses the primary context of the first device while the program runs."""

from . import driver
from ._driver.device import detach_at_exit
from .tools import make_default_context

driver.init()
context = make_default_context(lambda dev: dev.retain_primary_context())
context.push()
device = context.get_device()
detach_at_exit(globals())
