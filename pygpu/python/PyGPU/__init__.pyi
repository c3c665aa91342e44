# ruff: noqa: F403
from PybindGPU import *
from PybindGPU import __dir__ as __dir__
from PybindGPU import backend as backend
from PybindGPU import gpuarray as gpuarray
