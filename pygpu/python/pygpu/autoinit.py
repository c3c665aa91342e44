"""Importing this module makes a context on the first device; the context ends at exit."""

from . import driver
from ._driver.device import detach_at_exit
from .tools import make_default_context

driver.init()
context = make_default_context()
device = context.get_device()
detach_at_exit(globals())
