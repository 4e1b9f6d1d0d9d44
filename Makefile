# Needs Python 3.10 to 3.13, a C compiler and make. The first target run sets up .venv; PYTHON=python3.12 picks another Python.
.PHONY: demo test bench lint clean
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
KERNELS := $(wildcard una_fast/_kernels/*.pyx una_fast/_kernels/*.pxd)
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation

demo: .venv/kernels
	$(BIN)/python -m train.ddp --demo --output runs/demo

test: .venv/kernels
	$(BIN)/python -m pytest

bench: .venv/kernels .venv/peers
	$(BIN)/python -m pytest bench --benchmark-only --benchmark-json=bench/results/benchmarks.json
	$(BIN)/python bench/report.py

lint: .venv/kernels
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint una_fast/_kernels
	$(BIN)/codespell

clean:
	rm -rf .venv build dist runs/demo *.egg-info una_fast/_kernels/*.so

# constraints.txt holds every version, so torch is never a newer one. The build itself runs in .venv, not in isolation:
# what it builds with is held by the same file, whichever pip this Python came with.
.venv/packages: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) setuptools cython numpy
	$(INSTALL) --editable '.[test,lint]'
	touch $@

.venv/peers: .venv/packages
	$(INSTALL) --editable '.[peers]'
	touch $@

.venv/kernels: .venv/packages setup.py $(KERNELS)
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@
