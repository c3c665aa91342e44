# make demo    the main job on a real photograph, then the Rust example
# make test    the Rust tests, both GPU backends over a double of the drivers, the Python tests on
#              the host and on the doubles, and PyCUDA's own tests on all of them
# make bench   numpy against pygpu, then the Rust benchmarks
# make lint    rustfmt, clippy, ruff, and the stubs against the module
# make bindings   backend-hip/src/bindings.rs from HIP's headers; needs libclang
# make clean   everything that the above made
#
# Each sets up what it needs in .venv and target/, once.
# Needed beforehand: cargo (with rustfmt and clippy for `lint`), Python 3.10 or newer, a C++ compiler.

PYTHON ?= python3
CARGO  ?= cargo

VENV   := .venv
# Where the virtual environment's packages lie.
PACKAGES = $(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check
TARGET := $(or $(CARGO_TARGET_DIR),target)
WHEELS := $(TARGET)/wheels

# How the backends find the double of a driver. What the double has compiled is kept for all.
DOUBLE     := $(abspath $(TARGET))/double
ON_DOUBLE  := DOUBLE_CACHE=$(DOUBLE)/kernels
CUDA_FILES := $(DOUBLE)/cuda/libcuda.so.1 $(DOUBLE)/cuda/libnvrtc.so.12
ON_CUDA    := $(ON_DOUBLE) PYGPU_CACHE_DIR=$(DOUBLE)/cache-cuda \
  PYGPU_CUDA_LIBRARY=$(word 1,$(CUDA_FILES)) PYGPU_NVRTC=$(word 2,$(CUDA_FILES))
on_hip      = $(ON_DOUBLE) PYGPU_CACHE_DIR=$(DOUBLE)/cache-hip$(1) \
  PYGPU_HIP_LIBRARY=$(DOUBLE)/hip$(1)/libamdhip64.so.$(1)
FORWARDED  := DOUBLE_FORWARD=$(word 1,$(CUDA_FILES)) DOUBLE_NVRTC=$(word 2,$(CUDA_FILES)) \
  $(subst cache-hip6,cache-forwarded,$(call on_hip,6))
CONFORMANCE = $(CARGO) test --quiet --test conformance -- --quiet

# What a runtime of ROCm may lack, or have and not support.
HIDDEN  := hipMallocFromPoolAsync,hipMemPoolCreate,hipLaunchHostFunc,hipMallocManaged,$\
  hipMemPrefetchAsync,hipModuleLaunchCooperativeKernel,hipDeviceSetLimit,hipIpcGetMemHandle,$\
  hipIpcOpenMemHandle,hipIpcCloseMemHandle,hipIpcGetEventHandle,hipIpcOpenEventHandle
WITHOUT := DriverPool,ManagedMemory,CooperativeLaunch,Limits,Sharing

# The photograph lies inside this package, which is installed alone: nothing imports it.
PHOTOGRAPH := scikit-learn>=1.4

# PyCUDA's tests are fetched when they are run, and never kept in the repository.
PYCUDA       := pycuda-2026.1
PYCUDA_TESTS := $(TARGET)/$(PYCUDA)/test

SOURCES := Cargo.toml Cargo.lock build.rs pyproject.toml README.md \
  $(shell find src hal backend-* pygpu -type f \
    \( -name '*.rs' -o -name '*.cu*' -o -name '*.h' -o -name '*.py' -o -name '*.pyi' -o -name '*.toml' \))

.DELETE_ON_ERROR:
.PHONY: demo test test-rust test-double test-python test-pycuda bench bindings lint wheel clean \
  double test-pycuda-here

demo: $(VENV)/.installed
	$(PY) -m pygpu info
	$(PY) -m pygpu run examples/photograph.py
	$(CARGO) run --quiet --release --example glue

test: test-rust test-double test-python test-pycuda

# NVRTC and hipRTC compile without a GPU; the former is found among the virtual environment's
# packages, and Debian's ROCm and clang are fetched into the target folder.
test-rust: $(VENV)/.requirements
	PYTHON='$(PYTHON)' PYGPU_NVRTC_PATH="$$($(PACKAGES))" PYGPU_REQUIRE_NVRTC=1 PYGPU_HIPRTC_ALL=1 \
	  $(CARGO) test --workspace --exclude pygpu --no-fail-fast

double:
	PYTHON='$(PYTHON)' sh tests/driver-double/build.sh $(DOUBLE)

# The CUDA backend over a double of the driver, which runs kernels on the processor; the HIP
# backend over three generations of such a runtime, over one that lacks much, and over one whose
# calls go to the CUDA double.
test-double: double
	PYTHON='$(PYTHON)' sh tests/driver-double/build.sh $(DOUBLE) test
	$(ON_CUDA) GPUARRAY_REQUIRE=cuda $(CONFORMANCE) cuda::
	$(call on_hip,6) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::
	$(call on_hip,5) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::
	$(call on_hip,7) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::
	$(call on_hip,6) GPUARRAY_REQUIRE=hip DOUBLE_HIDE=$(HIDDEN) GPUARRAY_WITHOUT=$(WITHOUT) \
	  $(CONFORMANCE) hip::
	$(FORWARDED) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::
	$(ON_CUDA) DOUBLE_STICKY=1 GPUARRAY_REQUIRE=cuda $(CONFORMANCE) cuda::isolated
	$(call on_hip,6) DOUBLE_STICKY=1 GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::isolated

# On the host; on the double of HIP; of CUDA, what there is for a GPU alone.
test-python: $(VENV)/.installed double
	$(PY) -m pytest tests/python
	$(call on_hip,6) PYGPU_BACKEND=hip $(PY) -m pytest tests/python
	$(ON_CUDA) PYGPU_BACKEND=cuda $(PY) -m pytest tests/python/kernels \
	  $(addprefix tests/python/test_,driver.py pools.py rows.py process.py faults.py)

PYCUDA_PYTEST = PYTHONPATH=tests/pycuda $(PY) -m pytest -c tests/pycuda/pytest.ini -p plugin \
  --rootdir $(PYCUDA_TESTS) $(addprefix $(PYCUDA_TESTS)/test_,gpuarray.py cumath.py driver.py)

# On the backend that PYGPU_BACKEND chooses.
test-pycuda-here: $(VENV)/.installed $(PYCUDA_TESTS)
	$(PYCUDA_PYTEST)

test-pycuda: $(VENV)/.installed $(PYCUDA_TESTS) double
	PYGPU_BACKEND=host $(PYCUDA_PYTEST)
	$(ON_CUDA) PYGPU_BACKEND=cuda $(PYCUDA_PYTEST)
	$(call on_hip,6) PYGPU_BACKEND=hip $(PYCUDA_PYTEST)

bench: $(VENV)/.installed
	$(PY) benches/host_vs_numpy.py --wheel-folder $(WHEELS)
	PYGPU_BACKEND=host PYGPU_HOST_THREADS=1 $(PY) benches/table.py
	$(CARGO) bench --bench '*'

bindings:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh backend-hip/bindings/generate.sh $(TARGET)/bindings

lint: $(VENV)/.installed
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	cd tests && $(abspath $(PY)) -m mypy.stubtest pygpu --allowlist python/stubtest-allowlist.txt

wheel: $(VENV)/.wheel

clean:
	rm -rf $(VENV) $(TARGET) demo-output
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache

# ---- what the targets above stand on -------------------------------------------------------------

$(VENV)/.installed: $(VENV)/.wheel
	$(PIP) install --force-reinstall --no-deps $(WHEELS)/pygpu-*.whl
	@touch $@

$(VENV)/.wheel: $(VENV)/.requirements $(SOURCES)
	@rm -f $(WHEELS)/pygpu-*.whl
	$(PY) -m maturin build --quiet --release --interpreter $(PY) --out $(WHEELS)
	@touch $@

$(VENV)/.requirements: requirements-dev.txt Makefile | $(PY)
	$(PIP) install -r requirements-dev.txt
	$(PIP) install --no-deps '$(PHOTOGRAPH)'
	@touch $@

# Debian keeps the part of `venv` that puts pip in (ensurepip) in a package of its own.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo 'make: Python 3.10 or newer is needed, as $$(PYTHON)' >&2; exit 1; }
	@echo 'making $(VENV)'
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 \
	  || { $(PYTHON) -m venv --clear --without-pip $(VENV) \
	       && $(PYTHON) -m pip --quiet --python $(PY) install pip; } 2>/dev/null \
	  || $(PYTHON) -m virtualenv --quiet --clear $(VENV) 2>/dev/null \
	  || { rm -rf $(VENV); \
	       echo 'make: cannot make a virtual environment with pip in it;' \
	            'on Debian or Ubuntu: apt install python3-venv' >&2; exit 1; }

$(PYCUDA_TESTS): | $(VENV)/.requirements
	$(PIP) download --no-deps --no-binary=pycuda --dest $(TARGET) $(subst -,==,$(PYCUDA))
	tar -xzf $(TARGET)/$(PYCUDA).tar.gz -C $(TARGET) $(PYCUDA)/test
