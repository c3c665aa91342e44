"""Importing this module makes the first device's primary context current until exit."""

from . import driver
from ._driver.device import detach_at_exit
from .tools import make_default_context

driver.init()
context = make_default_context(lambda dev: dev.retain_primary_context())
context.push()
device = context.get_device()
detach_at_exit(globals())
