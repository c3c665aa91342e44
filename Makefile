# make demo      the main job on a real photograph, then the Rust example
# make test      the Rust tests, both GPU backends over a double of the drivers, the Python tests and PyCUDA's
#                own on the host
# make test-more what a change must pass, too: Python's tests and PyCUDA's on the doubles, other generations of
#                ROCm's runtime, AMD's real headers and runtime, generated source by the vendors' compilers, with
#                traps and with checks for races
# make test-all  both without anything left out, on the wheel that users get, and longer
# make sanitize  the Rust tests under ThreadSanitizer and AddressSanitizer; needs a nightly toolchain
# make memcheck  the classic kernels and the executor of kernels under valgrind, on the host
# make test-packages  the tests of packages that are built on PyCUDA, and pyarrow's of device memory;
#                     PYGPU_BACKEND chooses where
# make test-kernels   every builtin kernel through the vendors' compilers
# make check-crates   the sets of features, the oldest Rust, and the packages of the crates
# make bench     numpy against pygpu, then the Rust benchmarks
# make lint      rustfmt, clippy, ruff, and the stubs against the module
# make bindings  backend-hip/src/bindings.rs from HIP's headers; needs libclang
# make clean     everything that the above made
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
# A test that hangs is ended after so many seconds; one that compiles much takes a minute beside others.
export GPUARRAY_TEST_SECONDS ?= 240
CONFORMANCE = $(CARGO) test --quiet --workspace $(NO_BENCHES) --test conformance -- --quiet

# The package of the benchmarks is left out, for what it depends on takes as long to compile as
# everything else. With `pygpu` in, its dependencies have the same features in the module.
NO_BENCHES := --exclude gpuarray-benches

# Tests run on a module that is compiled as the Rust tests are: quickly, and with the compiler's
# checks of arithmetic. `make test-all` takes the wheel that users get.
MODULE := $(VENV)/.for-tests
# How many processes the Python tests take.
JOBS   := 2
# Tests start hundreds of interpreters, each of which would compile its packages again.
export PYTHONDONTWRITEBYTECODE :=
# As pip builds it from source.
BUILD_WHEEL = PATH="$(abspath $(VENV))/bin:$$PATH" $(PIP) wheel --no-deps --no-build-isolation
PYTEST  = $(PY) -m pytest -n $(JOBS)
# Conformance tests in which generations of one runtime can't differ: they are about kernels.
SAME   := $(addprefix --skip ,::dtypes:: ::elementwise:: ::indexed:: ::reductions:: ::random_streams:: \
  ::views:: ::sorting::)
# Python tests that are about kernels and statuses; those about drivers and exchange; the others are about
# arrays and the package.
in_python     = $(foreach name,$(2),tests/python/$(1)/test_$(name).py)
OF_KERNELS   := $(addprefix tests/python/,compile kernels status_style)
DRIVER_TESTS := $(OF_KERNELS) $(addprefix tests/python/,driver exchange) \
  $(call in_python,array,blas transfer) tests/python/package/test_modules.py
HIP_TESTS    := $(OF_KERNELS) $(call in_python,array,blas) $(call in_python,exchange,arrow) \
  $(call in_python,driver,after_reset captures driver lifetimes pools process rocm rows status stream_blocks)
CUDA_TESTS   := tests/python/status_style $(call in_python,array,blas) \
  $(call in_python,driver,after_reset captures driver faults lifetimes status stream_blocks) \
  $(call in_python,exchange,arrow_columns dask forged_exchange numba_plugin) \
  $(call in_python,kernels,cubemaps texture_references textures)

# What a runtime of ROCm may lack, or have and not support.
HIDDEN  := hipMallocFromPoolAsync,hipMemPoolCreate,hipLaunchHostFunc,hipMallocManaged,$\
  hipMemPrefetchAsync,hipModuleLaunchCooperativeKernel,hipDeviceSetLimit,hipIpcGetMemHandle,$\
  hipIpcOpenMemHandle,hipIpcCloseMemHandle,hipIpcGetEventHandle,hipIpcOpenEventHandle,$\
  hipUserObjectCreate,hipGraphRetainUserObject,hipArray3DCreate,hipArrayDestroy,$\
  hipTexObjectCreate,hipTexObjectDestroy,hipCreateSurfaceObject,hipDestroySurfaceObject
# The features that need them: the runtime has these functions, and they refuse.
WITHOUT := DriverPool,ManagedMemory,CooperativeLaunch,Limits,Sharing,GraphObjects,Textures,Surfaces

# The photograph lies inside this package, which is installed alone: nothing imports it.
PHOTOGRAPH := scikit-learn>=1.4

# PyCUDA's tests are fetched when they are run, and never kept in the repository.
PYCUDA       := pycuda-2026.1
PYCUDA_TESTS := $(TARGET)/$(PYCUDA)/test

# Packages that are built on PyCUDA, fetched in the same way.
GRUNNUR        := grunnur-0.6.0
REIKNA         := reikna-0.9.0
PACKAGES_BUILT := $(TARGET)/packages/site

SOURCES := Cargo.toml Cargo.lock build.rs pyproject.toml README.md \
  $(shell find src hal cuda-c backend-* pygpu -type f \
    \( -name '*.rs' -o -name '*.cu*' -o -name '*.h' -o -name '*.py' -o -name '*.pyi' -o -name '*.toml' \
       -o -name '*.txt' -o -path 'cuda-c/include/*' \))

.DELETE_ON_ERROR:
.PHONY: demo test test-more test-all test-kernels prepare bench bindings check-crates lint wheel clean \
  double sanitize memcheck \
  test-rust test-fetched test-double test-python test-python-host test-python-hip test-python-cuda test-pycuda \
  test-packages test-pycuda-here $(addprefix test-pycuda-,host \
  cuda hip) $(addprefix double-,self cuda hip6 \
  wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip)

# With `pygpu` among the packages, the example is built on the crates that the wheel was built of.
demo: $(VENV)/.installed
	$(PY) -m pygpu info
	$(PY) -m pygpu run examples/photograph.py
	$(CARGO) build --quiet --release -p pygpu-module -p gpuarray --no-default-features \
	  --features gpuarray/cuda,gpuarray/hip,gpuarray/host --example glue
	$(TARGET)/release/examples/glue

# The suites run side by side, each as soon as what it needs is built, so that no processor waits: while
# cargo compiles the Rust tests, packages are fetched; while those run, the module is compiled. Each prints
# its own closing line when it ends.
test:
	+$(MAKE) --no-print-directory -j3 --output-sync=target suites

.PHONY: suites more-suites
suites: test-rust test-python-host $(addprefix double-,self cuda hip6 sticky-cuda sticky-hip) test-pycuda-host

test-more:
	+$(MAKE) --no-print-directory -j3 --output-sync=target more-suites

more-suites: test-python-hip test-fetched test-python-cuda $(addprefix test-pycuda-,hip cuda) \
  $(addprefix double-,wavefronts hip5 hip7 lacking forwarded)

# Tests of kernels without a fault, in which checks find none.
CHECKED_TESTS := $(call in_python,kernels,classic elementwise reduction scan)

test-all: export PYGPU_TEST_ALL := 1
test-all:
	+$(MAKE) test test-more test-kernels MODULE=$(VENV)/.installed SAME= HIP_TESTS=tests/python \
	  CUDA_TESTS="$(DRIVER_TESTS)"
	+PYGPU_BACKEND=host $(MAKE) test-packages MODULE=$(VENV)/.installed
	+$(ON_CUDA) PYGPU_BACKEND=cuda $(MAKE) test-packages MODULE=$(VENV)/.installed
	PYGPU_BACKEND=host $(PY) benches/accuracy.py --count 2000 --check
	PYGPU_BACKEND=host PYGPU_CHECK=1 $(PYTEST) $(CHECKED_TESTS)

prepare: test-programs $(MODULE) double $(PYCUDA_TESTS)

.PHONY: test-programs
test-programs:
	$(CARGO) test --quiet --workspace $(NO_BENCHES) --no-run

# NVRTC and hipRTC compile without a GPU; the former is found among the virtual environment's
# packages, and Debian's ROCm and clang are fetched into the target folder. Where a test makes a
# double of its own, that keeps what it compiles with the others.
COMPILERS = MAKEFLAGS= $(ON_DOUBLE) PYTHON='$(PYTHON)' PYGPU_NVRTC_PATH="$$($(PACKAGES))" PYGPU_REQUIRE_NVRTC=1

test-rust: test-programs $(VENV)/.requirements
	$(if $(filter suites,$(MAKECMDGOALS)),PYGPU_FETCH=0) $(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) \
	  --no-fail-fast $(if $(filter suites,$(MAKECMDGOALS)),-- --skip builtin_operations --skip on_host:: --skip checked::)

# AMD's headers, compilers and runtime, as Debian has them, take longer to fetch than to use; a part of the
# builtin operations is compiled by the vendors' compilers, and the generated source run with traps for what C
# leaves undefined, and with checks for races, as the doubles run it without.
test-fetched: $(VENV)/.requirements $(MODULE)
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --no-fail-fast --test abi --test attributes \
	  --test hiprtc --test metadata --test runtime
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --test nvrtc --test source -- builtin_operations on_host:: checked::
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --test embedded -- code_objects
	PYGPU_BACKEND=host $(PY) -m pytest tests/python/exchange/test_mpi.py

# To be run by hand when a source of kernels has changed: it takes more than half an hour.
test-kernels: $(VENV)/.requirements
	PYGPU_EVERY_KERNEL=1 $(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --no-fail-fast \
	  --test nvrtc --test hiprtc --test embedded -- builtin_operations memory_is_accessed

double:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh tests/driver-double/build.sh $(DOUBLE)

$(addprefix double-,self cuda hip6 wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip): double

# The CUDA backend over a double of the driver, which runs kernels on the processor; the HIP
# backend over three generations of such a runtime, over one that lacks much, and over one whose
# calls go to the CUDA double.
test-double: $(addprefix double-,self cuda hip6 wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip)

double-self:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh tests/driver-double/build.sh $(DOUBLE) test

double-cuda double-sticky-cuda:
	$(ON_CUDA) $(if $(findstring sticky,$@),DOUBLE_STICKY=1) GPUARRAY_REQUIRE=cuda $(CONFORMANCE) \
	  cuda::$(if $(findstring sticky,$@),isolated)

double-hip5 double-hip6 double-hip7:
	$(call on_hip,$(patsubst double-hip%,%,$@)) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip:: $(SAME)

# Kernels of single elements are those of CUDA; what wavefronts share is not.
double-wavefronts:
	$(call on_hip,6) GPUARRAY_REQUIRE=hip $(CONFORMANCE) $(addprefix hip::,indexed reductions sorting)

double-lacking:
	$(call on_hip,6) GPUARRAY_REQUIRE=hip DOUBLE_HIDE=$(HIDDEN) GPUARRAY_WITHOUT=$(WITHOUT) \
	  $(CONFORMANCE) hip:: $(SAME)

double-forwarded:
	$(FORWARDED) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip:: $(SAME)

double-sticky-hip:
	$(call on_hip,6) DOUBLE_STICKY=1 GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::isolated

# What the suites of Python need.
NEEDED := $(MODULE) double

# On the host; on the doubles, what is about drivers.
test-python: $(addprefix test-python-,host hip cuda)

# The host's compiler has its usual level in PyCUDA's own tests and in those of the crate `gpuarray-host-executor`;
# `make test-all` has it here, too.
test-python-host: $(NEEDED)
	$(if $(filter suites,$(MAKECMDGOALS)),PYGPU_FETCH=0) $(if $(PYGPU_TEST_ALL),,CXX='$(if $(filter default,$(origin CXX)),c++,$(CXX)) -O1') $(PYTEST) tests/python

test-python-hip: $(NEEDED)
	$(call on_hip,6) PYGPU_BACKEND=hip $(PYTEST) $(HIP_TESTS)

test-python-cuda: $(NEEDED)
	$(ON_CUDA) PYGPU_BACKEND=cuda $(PYTEST) $(CUDA_TESTS)

PYCUDA_PYTEST = PYTHONPATH=tests/pycuda $(PY) -m pytest -c tests/pycuda/pytest.ini -p plugin \
  --rootdir $(PYCUDA_TESTS) $(addprefix $(PYCUDA_TESTS)/test_,gpuarray.py cumath.py driver.py)

# On the backend that PYGPU_BACKEND chooses.
test-pycuda-here: $(MODULE) $(PYCUDA_TESTS)
	$(PYCUDA_PYTEST)

test-pycuda: $(addprefix test-pycuda-,host cuda hip)

test-pycuda-host: $(NEEDED) $(PYCUDA_TESTS)
	PYGPU_BACKEND=host $(PYCUDA_PYTEST)

test-pycuda-cuda: $(NEEDED) $(PYCUDA_TESTS)
	$(ON_CUDA) PYGPU_BACKEND=cuda $(PYCUDA_PYTEST)

# Two tests take a third of the time and run on the other backends; scans have tests of ours on HIP.
test-pycuda-hip: $(NEEDED) $(PYCUDA_TESTS)
	$(call on_hip,6) PYGPU_BACKEND=hip $(PYCUDA_PYTEST) $(if $(PYGPU_TEST_ALL),,$(addprefix \
	  --deselect test_gpuarray.py::TestGPUArray::test_,scan curand_wrappers))

# The tests of packages that are built on PyCUDA, and of pyarrow, on the backend that PYGPU_BACKEND chooses.
test-packages: $(MODULE) $(PACKAGES_BUILT)
	PYTHONPATH=tests/pycuda:$(PACKAGES_BUILT) $(PYTEST) -c tests/packages/grunnur.ini -p plugin \
	  --rootdir $(PACKAGES_BUILT) $(PACKAGES_BUILT)/../$(GRUNNUR)/tests
	PYTHONPATH=tests/pycuda:$(PACKAGES_BUILT) $(PYTEST) -c tests/packages/reikna.ini -p plugin \
	  --rootdir $(PACKAGES_BUILT) $(PACKAGES_BUILT)/../$(REIKNA)/test
	PYTHONPATH=tests/pycuda:tests/arrow $(PYTEST) -c tests/arrow/pytest.ini -p plugin \
	  --rootdir "$$($(PACKAGES))/pyarrow/tests" "$$($(PACKAGES))/pyarrow/tests/test_cuda.py"

bench: $(VENV)/.installed
	$(PY) benches/host_vs_numpy.py --wheel-folder $(WHEELS)
	PYGPU_BACKEND=host PYGPU_HOST_THREADS=1 $(PY) benches/table.py
	$(PY) benches/imports.py
	$(CARGO) bench -p gpuarray-benches

# By hand: an hour or more.
sanitize: export GPUARRAY_TEST_SECONDS := 2400
sanitize: double
	scripts/sanitize thread
	scripts/sanitize address

# Needs valgrind; some minutes.
memcheck: $(MODULE)
	PYTHON=$(PY) CARGO='$(CARGO)' scripts/memcheck

check-crates:
	scripts/check-crates

bindings:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh backend-hip/bindings/generate.sh $(TARGET)/bindings

lint: $(MODULE)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --exclude gpuarray-benches --quiet
	$(PY) scripts/public-items
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	cd tests && $(abspath $(PY)) -m mypy.stubtest pygpu PybindGPU PyGPU \
	  --allowlist python/stubtest-allowlist.txt

wheel: $(VENV)/.wheel

clean:
	rm -rf $(VENV) $(TARGET) demo-output
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache

# ---- what the targets above stand on -------------------------------------------------------------

# One of the two is installed at a time.
$(VENV)/.installed: $(VENV)/.wheel
	$(PIP) install --force-reinstall --no-deps $(WHEELS)/pygpu-*.whl
	@rm -f $(VENV)/.for-tests
	@touch $@

$(VENV)/.for-tests: $(VENV)/.test-wheel
	$(PIP) install --force-reinstall --no-deps $(WHEELS)/test/pygpu-*.whl
	@rm -f $(VENV)/.installed
	@touch $@

$(VENV)/.wheel: $(VENV)/.demo-requirements $(SOURCES)
	@rm -f $(WHEELS)/pygpu-*.whl
	$(BUILD_WHEEL) --wheel-dir $(WHEELS) .
	@touch $@

# Cargo builds one thing at a time: what takes all processors comes first.
$(VENV)/.test-wheel: $(VENV)/.requirements $(SOURCES) $(if $(filter suites,$(MAKECMDGOALS)),| test-programs)
	@rm -f $(WHEELS)/test/pygpu-*.whl
	$(BUILD_WHEEL) --config-settings=build-args='--profile dev --features testing,aot' --wheel-dir $(WHEELS)/test .
	@touch $@

$(VENV)/.demo-requirements: requirements-demo.txt Makefile | $(PY)
	$(PIP) install --no-compile -r requirements-demo.txt
	$(PIP) install --no-compile --no-deps '$(PHOTOGRAPH)'
	@touch $@

$(VENV)/.requirements: requirements-dev.txt $(VENV)/.demo-requirements
	$(PIP) install --no-compile -r requirements-dev.txt
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

# Their code comes from the same source packages as the tests.
$(PACKAGES_BUILT): | $(VENV)/.requirements
	rm -rf $@ $(TARGET)/packages
	mkdir -p $(TARGET)/packages
	$(PIP) download --no-deps --no-binary=grunnur,reikna --dest $(TARGET)/packages \
	  $(subst -,==,$(GRUNNUR) $(REIKNA))
	for name in $(GRUNNUR) $(REIKNA); do tar -xzf $(TARGET)/packages/$$name.tar.gz -C $(TARGET)/packages; done
	$(PIP) install --target $@.new --no-deps $(TARGET)/packages/$(GRUNNUR) $(TARGET)/packages/$(REIKNA) \
	  pytest-grunnur==0.3.0 mako funcsigs scipy
	mv $@.new $@

$(PYCUDA_TESTS): | $(VENV)/.requirements
	$(PIP) download --no-deps --no-binary=pycuda --dest $(TARGET) $(subst -,==,$(PYCUDA))
	tar -xzf $(TARGET)/$(PYCUDA).tar.gz -C $(TARGET) $(PYCUDA)/test
