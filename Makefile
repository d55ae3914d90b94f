# Two commands are enough: `make serve` and `make test`. Both build their own environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/holdfast
USERBIN := $(HOME)/.local/bin
USERMAN := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/man/man1
TESTS ?= tests
WORKERS ?= 2
EXTRAS ?= postgres,claude
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

# Where it is set, every process would compile our modules again: a daemon's start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: python-is-new-enough help serve test test-again test-fast test-long browser chaos check format catalogue screenshots bench release-check install uninstall clean

help:
	@echo "make serve    set up and run the daemon in the foreground (Ctrl-C stops it)"
	@echo "make test     set up and run every test, two at a time (WORKERS=1 TESTS=tests/unit: one at a time, a part)"
	@echo "make test-again the few tests that failed last, one at a time; names those that pass now as unstable"
	@echo "make test-fast the tests without processes and PostgreSQL, in about three minutes"
	@echo "make test-long the whole volume of what make test tries with a small one"
	@echo "make chaos    clients at work under every fault on both engines, in about three minutes (SEED=7 FAULTS=kill,pause)"
	@echo "make check    lint, format check, strict types, import rules"
	@echo "make catalogue write anew what a relay answers before its first daemon is there (after a change of a tool)"
	@echo "make screenshots take the pictures of the dashboard in docs/pictures anew (after a change of a page)"
	@echo "make bench    set up and run the benchmarks (needs node and npm for the peer)"
	@echo "make release-check build wheel and source archive, and try them in empty environments of the oldest and newest Python"
	@echo "make install  install the holdfast command for this user, apart from this clone"

python-is-new-enough:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Holdfast needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }

$(VENV)/serve.stamp: pyproject.toml | python-is-new-enough
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(VENV)/serve.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

serve: $(VENV)/serve.stamp
	@exec $(BIN)/holdfast serve

# What tests of the dashboard need; says loudly what it cannot get.
browser: $(VENV)/dev.stamp
	@$(BIN)/python -m tests.browser.chromium

test: $(VENV)/dev.stamp browser
	$(PYTEST) $(if $(SEED),--shuffle $(SEED)) $(TESTS)

test-again: $(VENV)/dev.stamp
	$(BIN)/python -m tests.again

test-fast: $(VENV)/dev.stamp
	$(PYTEST) tests/unit tests/contract --without-postgres

test-long: $(VENV)/dev.stamp
	$(PYTEST) -m long $(TESTS)

chaos: $(VENV)/dev.stamp
	$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) $(CHAOS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

catalogue: $(VENV)/dev.stamp
	$(BIN)/python -m tests.catalogue

screenshots: $(VENV)/dev.stamp browser
	$(BIN)/python -m tests.browser.screenshots

bench: $(VENV)/dev.stamp
	$(BIN)/python -m bench

release-check: $(VENV)/dev.stamp
	$(BIN)/python -m tests.release_check

install: | python-is-new-enough
	@test -x $(DATA)/venv/bin/python || $(PYTHON) -m venv $(DATA)/venv
	$(DATA)/venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade '.[$(EXTRAS)]'
	@mkdir -p $(USERBIN)
	@ln -sf $(DATA)/venv/bin/holdfast $(USERBIN)/holdfast
	@mkdir -p $(USERMAN) && $(USERBIN)/holdfast man > $(USERMAN)/holdfast.1
	@echo "Installed: $(USERBIN)/holdfast ($$($(USERBIN)/holdfast --version))"
	@case ":$$PATH:" in *":$(USERBIN):"*) ;; *) echo "$(USERBIN) is not on your PATH yet. Add it: export PATH=\"$(USERBIN):\$$PATH\"";; esac

uninstall:
	rm -rf $(DATA)/venv
	@test ! -L $(USERBIN)/holdfast || rm $(USERBIN)/holdfast
	@rm -f $(USERMAN)/holdfast.1
	@echo "Removed the command. Your sessions in ~/.holdfast were not touched."

clean:
	rm -rf $(VENV) .bench
