# The targets install everything that a fresh machine needs; see README.rst.
PYTHON ?= python3
VENV ?= .venv
TEST_VENV ?= .venv-test
BUS ?= inprocess
MINUTES ?= 5
CLUSTER ?= none
SEED ?=
JSON ?=
STATE_DIR ?= state
TRANSPORT_URL ?=
DATABASE ?=
FULL ?=

# What users run, and what developers do, are in environments of their own: the tests need programs
# of other projects, which must not be installed beside those that users run.
BIN := $(VENV)/bin
TEST_BIN := $(TEST_VENV)/bin
INSTALLED := $(VENV)/.installed
TEST_INSTALLED := $(TEST_VENV)/.installed
DECLARED := setup.cfg pyproject.toml constraints.txt tools/make-venv

.PHONY: help run demo test soak lint sample docs linkcheck bench clean upgrade-constraints \
  test-environments system-rabbit system-test

help:
	@echo "make run                  the service in the foreground, over HTTP and on SQLite"
	@echo "make run BUS=rabbit       the same, which other processes can call over a private RabbitMQ"
	@echo "make run TRANSPORT_URL=rabbit://user:password@host/ [DATABASE=URL]"
	@echo "make demo [BUS=rabbit] [CONSUMERS=3000]"
	@echo "                          the main job on 120 real compute nodes"
	@echo "make test                 all tests; installs the system packages that they need"
	@echo "make test FULL=1          the same with the whole of what is long"
	@echo "make soak [CLUSTER=none|mariadb|galera|postgresql] [MINUTES=5] [SEED=] [JSON=FILE]"
	@echo "                          kill, stop and cut off parts under load; check every answer"
	@echo "make bench [QUICK=1] [ONLY=claims|nodes|start|usage|scale|http|candidates|audit|moving|galera|fairness]"
	@echo "                          benchmark, with a bare echo server and OpenStack Placement"
	@echo "make upgrade-constraints  renew constraints.txt, the versions that these targets install"
	@echo "make linkcheck            ask for each external link of the documentation; needs the internet"
	@echo "make lint | docs | sample | clean"

$(INSTALLED): $(DECLARED)
	@tools/make-venv "$(PYTHON)" "$(VENV)" standalone
	@touch $@

$(TEST_INSTALLED): $(DECLARED)
	@tools/make-venv "$(PYTHON)" "$(TEST_VENV)" test
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
	@$(BIN)/python examples/demo.py --bus $(BUS) $(if $(TRANSPORT_URL),--transport-url "$(TRANSPORT_URL)") \
	  $(if $(CONSUMERS),--consumers "$(CONSUMERS)")

# Environments of earlier releases and of other programs, which tests run alongside this tree.
test-environments: $(TEST_INSTALLED)
	@$(TEST_BIN)/python -m tests.environments

test: $(TEST_INSTALLED) system-test
	@$(MAKE) --no-print-directory --output-sync --jobs=2 lint test-environments
	@FULL="$(FULL)" tools/run-tests $(TEST_BIN) $(if $(TESTS),"$(TESTS)")

soak: $(TEST_INSTALLED) system-test
	@$(TEST_BIN)/python -W ignore -m tests.soak --cluster $(CLUSTER) --minutes $(MINUTES) \
	  $(if $(SEED),--seed $(SEED)) $(if $(JSON),--json "$(JSON)")

lint: $(TEST_INSTALLED)
	@$(TEST_BIN)/ruff check .
	@$(TEST_BIN)/mypy

sample: $(TEST_INSTALLED)
	@$(TEST_BIN)/oslo-config-generator --config-file etc/placement-rpc/config-generator.conf
	@$(TEST_BIN)/oslopolicy-sample-generator --config-file etc/placement-rpc/policy-generator.conf
	@$(TEST_BIN)/python -m tests.functional.test_openapi
	@$(TEST_BIN)/python -m tests.functional.test_asyncapi
	@$(TEST_BIN)/python -m placement_rpc.cmd.man_pages docs/man

docs: $(TEST_INSTALLED)
	@$(TEST_BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@$(TEST_BIN)/sphinx-build -W -q -b html docs/source docs/build/html
	@echo "docs/build/html/index.html"

# Not a part of docs, which checks internal links and works without the internet.
linkcheck: $(TEST_INSTALLED)
	@$(TEST_BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@$(TEST_BIN)/sphinx-build -q -b linkcheck docs/source docs/build/linkcheck

bench: $(TEST_INSTALLED) system-test
	@$(TEST_BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@$(TEST_BIN)/python -W ignore -m tests.benchmarks $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

upgrade-constraints:
	@tools/upgrade-constraints "$(PYTHON)"

clean:
	rm -rf "$(VENV)" "$(TEST_VENV)" .venv-others build dist docs/build .stestr .ruff_cache .hypothesis *.egg-info
