"""The names of PyCUDA's extension module, which some programs import: those of the driver."""

from .driver import *  # noqa: F403
