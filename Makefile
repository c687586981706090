# The targets install everything that a fresh machine needs; see README.rst.
PYTHON ?= python3
VENV ?= .venv
BUS ?= inprocess
MINUTES ?= 5
STATE_DIR ?= state
TRANSPORT_URL ?=
DATABASE ?=
FULL ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help run demo test soak lint sample docs bench clean upgrade-constraints \
  test-environments system-rabbit system-test

help:
	@echo "make run                  the service in the foreground, over HTTP and on SQLite"
	@echo "make run BUS=rabbit       the same, which other processes can call over a private RabbitMQ"
	@echo "make run TRANSPORT_URL=rabbit://user:password@host/ [DATABASE=URL]"
	@echo "make demo [BUS=rabbit]    the main job on 120 real compute nodes"
	@echo "make test                 all tests; installs the system packages that they need"
	@echo "make test FULL=1          the same with the whole of what is long"
	@echo "make soak [MINUTES=5]     kill conductors, broker and database under load; check the result"
	@echo "make bench [QUICK=1] [ONLY=claims|nodes|scale|http|candidates|audit]"
	@echo "                          benchmark, with a bare echo server and OpenStack Placement"
	@echo "make upgrade-constraints  renew constraints.txt, the versions that these targets install"
	@echo "make lint | docs | sample | clean"

$(INSTALLED): setup.cfg pyproject.toml constraints.txt tools/make-venv
	@tools/make-venv "$(PYTHON)" "$(VENV)"
	@touch $@

system-rabbit:
	@tools/system-packages

system-test:
	@tools/system-packages test

run: $(INSTALLED) $(if $(filter rabbit,$(BUS)),system-rabbit)
	@$(BIN)/placement-rpc --state-dir "$(STATE_DIR)" \
	  $(if $(TRANSPORT_URL),--transport-url "$(TRANSPORT_URL)") \
	  standalone --bus $(BUS) $(if $(DATABASE),--database "$(DATABASE)")

demo: $(INSTALLED) $(if $(filter rabbit,$(BUS)),system-rabbit)
	@$(BIN)/python examples/demo.py --bus $(BUS) $(if $(TRANSPORT_URL),--transport-url "$(TRANSPORT_URL)")

# Environments of earlier releases and of other programs, which tests run alongside this tree.
test-environments: $(INSTALLED)
	@$(BIN)/python -m tests.environments

test: $(INSTALLED) system-test lint test-environments
	@FULL="$(FULL)" tools/run-tests $(BIN) $(if $(TESTS),"$(TESTS)")

soak: $(INSTALLED) system-test
	@$(BIN)/python -W ignore -m tests.integration.soak --minutes $(MINUTES)

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/mypy

sample: $(INSTALLED)
	@$(BIN)/oslo-config-generator --config-file etc/placement-rpc/config-generator.conf
	@$(BIN)/oslopolicy-sample-generator --config-file etc/placement-rpc/policy-generator.conf
	@$(BIN)/python -m tests.functional.test_openapi

docs: $(INSTALLED)
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@$(BIN)/sphinx-build -W -q -b html docs/source docs/build/html
	@echo "docs/build/html/index.html"

bench: $(INSTALLED) system-test
	@$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@$(BIN)/python -W ignore -m tests.benchmarks $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

upgrade-constraints:
	@tools/upgrade-constraints "$(PYTHON)"

clean:
	rm -rf "$(VENV)" .venv-others build dist docs/build .stestr .ruff_cache .hypothesis *.egg-info
