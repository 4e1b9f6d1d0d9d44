# Needs Python 3.10 to 3.14, a C compiler and make. The first target that runs sets up .venv; PYTHON=python3.12 chooses
# its Python.
.PHONY: demo test test-slow test-all bench bench-check bench-gpu docs lint kernels clean
.DELETE_ON_ERROR:
# without bytecode each start compiles torch and transformers again: `import train.launch.run` takes 9.7 s, not 3.6 s
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
# test processes: one per core, at most eight, because each takes about 2 GB; WORKERS=0 runs all tests in one process
WORKERS ?= logical
# DURATIONS=40 lists the 40 tests that take longest
DURATIONS ?=
BIN := .venv/bin
# --no-compile: Python compiles a module when it first imports it, and most are never imported
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --no-build-isolation
# setup.py rebuilds only what has changed; without a change it takes a second
BUILD := $(BIN)/python setup.py --quiet build_ext --inplace

# installs only what the demo needs: 1.7 GB, half of which is torch
demo: .venv/demo
	$(BUILD)
	$(BIN)/python -m train.ddp --demo

TEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal $(DURATIONS:%=--durations=%)

# the fast tests, which cover what users rely on
test: kernels
	$(TEST) -m "not slow"

# all other tests: long trainings, kills, all families of tokenizers, benchmarks
test-slow: kernels
	$(TEST) -m slow

test-all: test test-slow

bench: kernels .venv/peers
	$(BIN)/python -m pytest bench --benchmark-only --benchmark-json=bench/results/benchmarks.json
	$(BIN)/python -m bench.report

# takes a minute; fails if a kernel became slower, relative to a reference measured in the same run. On a quiet machine,
# SAVE=1 writes the ratios that later runs are compared with; FACTOR=3 widens the tolerance on another processor.
bench-check: kernels
	$(BIN)/python -m bench.check $(if $(SAVE),--save) $(FACTOR:%=--factor=%)

# takes five minutes on a GPU, and two for the tests; optional: CORPUS, and PHASES such as '"batch 64" runs'
bench-gpu: kernels .venv/peers
	$(BIN)/python -m bench.training.gpu --output build/gpu $(CORPUS:%=--corpus "%") $(if $(PHASES),--phases $(PHASES))
	$(BIN)/python -m pytest -q tests/gpu
	cp build/gpu/train_gpu.json bench/results/ && $(BIN)/python -m bench.report

# fails on a warning, such as a dead link or an unknown name
docs: kernels .venv/tools
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

lint: .venv/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint una_fast/_kernels
	$(BIN)/codespell

kernels: .venv/packages
	$(BUILD)

clean:
	find una_fast -name "*.so" -delete; rm -rf .venv build dist una_fast.egg-info

# constraints.txt pins every version, also that of torch. The build runs in .venv, not in isolation, so that the same
# file pins the packages that the build needs, with any version of pip. Kernels compile while pip installs packages.
.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) setuptools cython numpy
	UNA_FAST_KERNELS=0 $(INSTALL) --editable '.[demo]' & installed=$$!; $(BUILD) && wait $$installed
	touch $@

.venv/packages: .venv/demo
	UNA_FAST_KERNELS=0 $(INSTALL) --editable '.[test]'
	touch $@

.venv/tools: .venv/packages
	UNA_FAST_KERNELS=0 $(INSTALL) --editable '.[lint,docs]'
	touch $@

.venv/peers: .venv/packages
	UNA_FAST_KERNELS=0 $(INSTALL) --editable '.[peers]'
	touch $@
