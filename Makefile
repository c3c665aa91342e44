# make demo      the main job on a real photograph, then the Rust example
# make test      the Rust tests, both GPU backends over fake drivers, the Python tests, and PyCUDA's
#                own tests on the host
# make test-more more checks that every change must pass: the Python tests and PyCUDA's on the fake drivers,
#                other ROCm runtime generations, AMD's real headers and runtime, generated source through
#                the vendors' compilers, with traps and with race checks
# make test-all  both without omissions, on the wheel that users get; takes longer
# make sanitize  the Rust tests under ThreadSanitizer and AddressSanitizer; needs a nightly toolchain
# make memcheck  the classic kernels and the kernel executor under valgrind, on the host
# make test-packages  the tests of packages that are built on PyCUDA, and pyarrow's device memory tests;
#                     PYGPU_BACKEND chooses the backend
# make test-kernels   every builtin kernel through the vendors' compilers
# make wheels    the wheels and source distribution for publishing, in dist/; installs and tries each; needs the network
# make release   a dry run of a release: prints the steps that publish
# make check-crates   feature combinations, the oldest supported Rust, and the crates' packages
# make bench     numpy against pygpu, then the Rust benchmarks
# make lint      rustfmt, clippy, ruff, and the stubs against the module
# make docs      the documentation site, in target/docs
# make bindings  backend-hip/src/bindings.rs from HIP's headers; needs libclang
# make clean     remove everything that the targets above create
#
# Each target sets up what it needs in .venv and target/, once.
# Prerequisites: cargo (with rustfmt and clippy for `lint`), Python 3.10 or newer, a C++ compiler.

PYTHON ?= python3
CARGO  ?= cargo

VENV   := .venv
# Prints the virtual environment's site-packages folder.
PACKAGES = $(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check
TARGET := $(or $(CARGO_TARGET_DIR),target)
WHEELS := $(TARGET)/wheels
# The virtual environment of the site.
DOCS   := $(TARGET)/docs-venv

# The environment in which the backends find the fake drivers, which share one cache of compiled code.
DOUBLE     := $(abspath $(TARGET))/double
ON_DOUBLE  := DOUBLE_CACHE=$(DOUBLE)/kernels
CUDA_FILES := $(DOUBLE)/cuda/libcuda.so.1 $(DOUBLE)/cuda/libnvrtc.so.12
ON_CUDA    := $(ON_DOUBLE) PYGPU_CACHE_DIR=$(DOUBLE)/cache-cuda \
  PYGPU_CUDA_LIBRARY=$(word 1,$(CUDA_FILES)) PYGPU_NVRTC=$(word 2,$(CUDA_FILES))
on_hip      = $(ON_DOUBLE) PYGPU_CACHE_DIR=$(DOUBLE)/cache-hip$(1) \
  PYGPU_HIP_LIBRARY=$(DOUBLE)/hip$(1)/libamdhip64.so.$(1)
FORWARDED  := DOUBLE_FORWARD=$(word 1,$(CUDA_FILES)) DOUBLE_NVRTC=$(word 2,$(CUDA_FILES)) \
  $(subst cache-hip6,cache-forwarded,$(call on_hip,6))
# Tests that hang are killed after this many seconds. A test that compiles a lot takes a minute on a busy machine.
export GPUARRAY_TEST_SECONDS ?= 240
CONFORMANCE = $(CARGO) test --quiet --workspace $(NO_BENCHES) --test conformance -- --quiet

# The benchmarks' package is left out: its dependencies take as long to compile as everything else.
# With `pygpu` included, the shared dependencies have the same features as in the extension module.
NO_BENCHES := --exclude gpuarray-benches

# Tests use a module that is compiled like the Rust tests: quickly, and with overflow checks.
# `make test-all` uses the wheel that users get.
MODULE := $(VENV)/.for-tests
# The number of processes that the Python tests run in.
JOBS   := 2
# Bytecode is written: tests start hundreds of interpreters, each of which would otherwise compile its packages
# again.
export PYTHONDONTWRITEBYTECODE :=
# The suites that run side by side use all processors: a thread of numpy's BLAS would spin while it waits for one.
export OPENBLAS_NUM_THREADS ?= 1
# Builds the wheel as pip builds it from source.
BUILD_WHEEL = PATH="$(abspath $(VENV))/bin:$$PATH" $(PIP) wheel --no-deps --no-build-isolation
PYTEST  = $(PY) -m pytest -n $(JOBS)
# Conformance tests of kernels: the generations of one runtime cannot differ in them.
SAME   := $(addprefix --skip ,::dtypes:: ::elementwise:: ::indexed:: ::reductions:: ::random_streams:: \
  ::views:: ::sorting::)
# Groups of Python tests: kernels and status style; drivers and exchange; the rest is arrays and the package.
in_python     = $(foreach name,$(2),tests/python/$(1)/test_$(name).py)
OF_KERNELS   := $(addprefix tests/python/,compile kernels status_style)
DRIVER_TESTS := $(OF_KERNELS) $(addprefix tests/python/,driver exchange) \
  $(call in_python,array,blas transfer) tests/python/package/test_modules.py
HIP_TESTS    := $(OF_KERNELS) $(call in_python,array,blas fused) $(call in_python,exchange,arrow) \
  $(call in_python,driver,after_reset captures driver lifetimes pools process rocm rows status stream_blocks) \
  $(call in_python,package,gallery)
CUDA_TESTS   := tests/python/status_style $(call in_python,array,blas fused) \
  $(call in_python,driver,after_reset captures driver faults lifetimes status stream_blocks) \
  $(call in_python,exchange,arrow_columns dask forged_exchange numba_plugin) \
  $(call in_python,kernels,cubemaps texture_references textures) $(call in_python,package,gallery) \
  $(call in_python,compile,diagnostics)

# Functions that a ROCm runtime may lack, or may have without supporting them.
HIDDEN  := hipMallocFromPoolAsync,hipMemPoolCreate,hipLaunchHostFunc,hipMallocManaged,$\
  hipMemPrefetchAsync,hipModuleLaunchCooperativeKernel,hipDeviceSetLimit,hipIpcGetMemHandle,$\
  hipIpcOpenMemHandle,hipIpcCloseMemHandle,hipIpcGetEventHandle,hipIpcOpenEventHandle,$\
  hipUserObjectCreate,hipGraphRetainUserObject,hipArray3DCreate,hipArrayDestroy,$\
  hipTexObjectCreate,hipTexObjectDestroy,hipCreateSurfaceObject,hipDestroySurfaceObject
# The features that need these functions, for a runtime that has them and refuses the calls.
WITHOUT := DriverPool,ManagedMemory,CooperativeLaunch,Limits,Sharing,GraphObjects,Textures,Surfaces

# The photograph is a file of this package, which is installed without dependencies: nothing imports it.
PHOTOGRAPH := scikit-learn>=1.4

# NVIDIA's C++ libraries, in a folder that only their own tests search: the compilers prefer them where they are found.
CCCL         := $(TARGET)/cccl

# PyCUDA's tests are downloaded when they run, and never kept in the repository.
PYCUDA       := pycuda-2026.1
PYCUDA_TESTS := $(TARGET)/$(PYCUDA)/test

# Packages that are built on PyCUDA, downloaded in the same way.
GRUNNUR        := grunnur-0.6.0
REIKNA         := reikna-0.9.0
PACKAGES_BUILT := $(TARGET)/packages/site

SOURCES := Cargo.toml Cargo.lock build.rs pyproject.toml README.md \
  $(shell find src hal cuda-c backend-* pygpu -type f \
    \( -name '*.rs' -o -name '*.cu*' -o -name '*.h' -o -name '*.py' -o -name '*.pyi' -o -name '*.toml' \
       -o -name '*.txt' -o -path 'cuda-c/include/*' \))

.DELETE_ON_ERROR:
.PHONY: demo wheels release test test-more test-all test-kernels prepare bench bindings check-crates lint wheel clean \
  double sanitize memcheck \
  test-rust test-fetched test-double test-python test-python-host test-python-hip test-python-cuda test-pycuda \
  test-packages test-pycuda-here $(addprefix test-pycuda-,host \
  cuda hip) $(addprefix double-,self cuda hip6 \
  wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip)

# With `pygpu` among the packages, the example builds on the crates that the wheel was built from.
demo: $(VENV)/.installed
	$(PY) -m pygpu info
	$(PY) -m pygpu run examples/photograph.py
	$(CARGO) build --quiet --release -p pygpu-module -p gpuarray --no-default-features \
	  --features gpuarray/cuda,gpuarray/hip,gpuarray/host --example glue
	$(TARGET)/release/examples/glue

# The suites run side by side, each as soon as its prerequisites are built, so that no processor is idle: packages
# are downloaded while cargo compiles the Rust tests, and the module is compiled while those run. Each suite prints
# its own closing line.
test:
	+$(MAKE) --no-print-directory -j3 --output-sync=target suites

.PHONY: suites more-suites
suites: test-rust test-python-host $(addprefix double-,self cuda hip6 sticky-cuda sticky-hip) test-pycuda-host

test-more:
	+$(MAKE) --no-print-directory -j3 --output-sync=target more-suites

more-suites: test-python-hip test-fetched test-python-cuda $(addprefix test-pycuda-,hip cuda) \
  $(addprefix double-,wavefronts hip5 hip7 lacking forwarded)

# Kernel tests without planted faults, in which the checks must not find any.
CHECKED_TESTS := $(call in_python,kernels,classic elementwise reduction scan)

test-all: export PYGPU_TEST_ALL := 1
test-all:
	+$(MAKE) test test-more test-kernels MODULE=$(VENV)/.installed SAME= HIP_TESTS=tests/python \
	  CUDA_TESTS="$(DRIVER_TESTS)"
	+PYGPU_BACKEND=host $(MAKE) test-packages MODULE=$(VENV)/.installed
	+$(ON_CUDA) PYGPU_BACKEND=cuda $(MAKE) test-packages MODULE=$(VENV)/.installed
	PYGPU_BACKEND=host $(PY) benches/accuracy.py --count 2000 --check
	PYGPU_BACKEND=host PYGPU_CHECK=1 $(PYTEST) $(CHECKED_TESTS)
	PYGPU_BACKEND=host PYGPU_TEST_FUSED=1 $(PYTEST) tests/python/array
	+$(MAKE) docs MODULE=$(VENV)/.installed

prepare: test-programs $(MODULE) double $(PYCUDA_TESTS)

.PHONY: test-programs
test-programs:
	$(CARGO) test --quiet --workspace $(NO_BENCHES) --no-run

# NVRTC and hipRTC compile without a GPU. NVRTC comes from the virtual environment's packages;
# Debian's ROCm and clang are downloaded into the target folder. Tests that build their own fake
# driver share its cache of compiled code.
COMPILERS = MAKEFLAGS= $(ON_DOUBLE) PYTHON='$(PYTHON)' PYGPU_NVRTC_PATH="$$($(PACKAGES))" PYGPU_REQUIRE_NVRTC=1

test-rust: test-programs $(VENV)/.requirements
	$(if $(filter suites,$(MAKECMDGOALS)),PYGPU_FETCH=0) $(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) \
	  --no-fail-fast $(if $(filter suites,$(MAKECMDGOALS)),-- --skip builtin_operations --skip on_host:: --skip checked::)

# AMD's headers, compilers and runtime, as Debian packages them, take longer to download than to use. Vendors'
# compilers compile a part of the builtin operations. The generated source runs with traps for undefined behaviour
# and with race checks, as the fake drivers run it without.
test-fetched: $(VENV)/.requirements $(MODULE) $(CCCL)
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --no-fail-fast --test abi --test attributes \
	  --test hiprtc --test metadata --test runtime
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --test nvrtc --test source -- builtin_operations on_host:: checked::
	$(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --test embedded -- code_objects
	PYGPU_BACKEND=host $(PY) -m pytest tests/python/exchange/test_mpi.py
	PYGPU_BACKEND=host PYGPU_TEST_CCCL='$(abspath $(CCCL))' CXX='c++ -O1' $(PY) -m pytest \
	  $(addprefix tests/python/compile/test_,cub.py barriers_in_memory.py thrust.py)

# Run it by hand when a kernel source has changed: it takes more than half an hour.
test-kernels: $(VENV)/.requirements
	PYGPU_EVERY_KERNEL=1 $(COMPILERS) $(CARGO) test --workspace $(NO_BENCHES) --no-fail-fast \
	  --test nvrtc --test hiprtc --test embedded -- builtin_operations memory_is_accessed

double:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh tests/driver-double/build.sh $(DOUBLE)

$(addprefix double-,self cuda hip6 wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip): double

# The CUDA backend over a fake driver, which runs kernels on the CPU; the HIP backend over three
# generations of such a runtime, over one that lacks many functions, and over one that forwards its
# calls to the fake CUDA driver.
test-double: $(addprefix double-,self cuda hip6 wavefronts hip5 hip7 lacking forwarded sticky-cuda sticky-hip)

double-self:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh tests/driver-double/build.sh $(DOUBLE) test

double-cuda double-sticky-cuda:
	$(ON_CUDA) $(if $(findstring sticky,$@),DOUBLE_STICKY=1) GPUARRAY_REQUIRE=cuda $(CONFORMANCE) \
	  cuda::$(if $(findstring sticky,$@),isolated)

double-hip5 double-hip6 double-hip7:
	$(call on_hip,$(patsubst double-hip%,%,$@)) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip:: $(SAME)

# Elementwise kernels are the same as on CUDA; kernels that share data within a wavefront are not.
double-wavefronts:
	$(call on_hip,6) GPUARRAY_REQUIRE=hip $(CONFORMANCE) $(addprefix hip::,indexed reductions sorting)

double-lacking:
	$(call on_hip,6) GPUARRAY_REQUIRE=hip DOUBLE_HIDE=$(HIDDEN) GPUARRAY_WITHOUT=$(WITHOUT) \
	  $(CONFORMANCE) hip:: $(SAME)

double-forwarded:
	$(FORWARDED) GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip:: $(SAME)

double-sticky-hip:
	$(call on_hip,6) DOUBLE_STICKY=1 GPUARRAY_REQUIRE=hip $(CONFORMANCE) hip::isolated

# Prerequisites of the Python suites.
NEEDED := $(MODULE) double

# All Python tests on the host; those about drivers on the fake drivers.
test-python: $(addprefix test-python-,host hip cuda)

# PyCUDA's own tests and the tests of `gpuarray-host-executor` use the host compiler's usual
# optimisation level. `make test-all` uses it here also.
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

# Two tests take a third of the time and also run on the other backends; our own tests cover scans on HIP.
test-pycuda-hip: $(NEEDED) $(PYCUDA_TESTS)
	$(call on_hip,6) PYGPU_BACKEND=hip $(PYCUDA_PYTEST) $(if $(PYGPU_TEST_ALL),,$(addprefix \
	  --deselect test_gpuarray.py::TestGPUArray::test_,scan curand_wrappers))

$(CCCL):
	$(PIP) install --no-deps --target $@ 'nvidia-cuda-cccl-cu12>=12.9,<13'

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

# Run it by hand: it takes an hour or more.
sanitize: export GPUARRAY_TEST_SECONDS := 2400
sanitize: double
	scripts/sanitize thread
	scripts/sanitize address

# Needs valgrind and takes some minutes.
memcheck: $(MODULE)
	PYTHON=$(PY) CARGO='$(CARGO)' scripts/memcheck

check-crates:
	scripts/check-crates

wheels:
	PYTHON='$(PYTHON)' scripts/wheels

release:
	PYTHON='$(PYTHON)' scripts/release

bindings:
	PYTHON='$(PYTHON)' CARGO='$(CARGO)' sh backend-hip/bindings/generate.sh $(TARGET)/bindings

.PHONY: docs
# Warnings are errors, and a broken link is a warning.
docs: $(DOCS)/.installed
	$(DOCS)/bin/python -m sphinx -W --keep-going -q -j 2 -d $(TARGET)/docs-cache docs $(TARGET)/docs

lint: $(MODULE)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --exclude gpuarray-units --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --workspace --exclude gpuarray-benches --quiet
	$(PY) scripts/public-items
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	cd tests && $(abspath $(PY)) -m mypy.stubtest pygpu PybindGPU PyGPU \
	  --allowlist python/stubtest-allowlist.txt

wheel: $(VENV)/.wheel

clean:
	rm -rf $(VENV) $(TARGET) demo-output dist
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache

# ---- prerequisites of the targets above ----------------------------------------------------------

# Only one of the two wheels is installed at a time.
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

# Two cargo builds cannot run in parallel, so the one that uses all processors runs first.
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

# pygpu and its dependencies come from .venv, after the site's own packages.
$(DOCS)/.installed: docs/requirements.txt $(MODULE)
	$(PY) -m venv --clear --without-pip $(DOCS)
	$(PIP) --python $(DOCS)/bin/python install -r docs/requirements.txt
	$(PACKAGES) > $$($(DOCS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/pygpu.pth
	@touch $@

# Debian packages ensurepip, which installs pip into a new environment, separately.
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

# The packages' code comes from the same source distributions as their tests.
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
