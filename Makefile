# Every target sets up what it needs by itself. `make help` explains each in a line.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
SPEC ?= examples/local.yaml
# Another cluster than the node of this machine, whose kubeconfig `make cluster-up` prints.
OWN_CLUSTER := $(or $(WATERCOLOUR_CACHE),$(HOME)/.cache/watercolour)/node/life/plane/admin.kubeconfig
ELSEWHERE := $(filter-out $(OWN_CLUSTER),$(KUBECONFIG))

.PHONY: images package soak test-chaos test-hpsv3 help setup run test lint bench docs lock clean cluster-binaries cluster-check cluster-up cluster-run cluster-down test-node

help:  ## Explain every target
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup:  ## Install both environments, Chromium, p5 and p5.brush, the scorer's weights
	@scripts/setup.sh

run: setup  ## Train the tiny policy on this machine and open the report (SPEC=examples/local.yaml)
	@.venv/bin/watercolour run $(SPEC)

# The control plane's programs are built at the lowest priority while the other tests run; the
# cluster's tests come last and wait for what is still missing.
test:  ## Everything that proves the code: lint, types, layers; unit, browser and cluster tests
	@python3 tests/cluster/ground/binaries.py --background
	@$(MAKE) --no-print-directory setup
	@$(MAKE) --no-print-directory lint
	@env -u KUBECONFIG .venv/bin/pytest

lint: setup  ## Style, types and layers
	@.venv/bin/ruff check python operator scripts tests bench
	@.venv/bin/ruff format --check python operator scripts tests bench
	@.venv/bin/pyright
	@.venv/bin/lint-imports

# Those of a GPU and of a whole node, which take hours, are run one by one; some files only help others.
BENCHES = $(filter-out bench/soak.py bench/painting.py bench/on_node.py bench/full_size.py bench/scaling_cells.py bench/cluster_overhead.py %_h200.py %_node.py,$(wildcard bench/[a-z]*.py))

bench: setup  ## Run every benchmark that needs neither GPU nor node; each ends in a line of JSON
	@for b in $(BENCHES); do echo "== $$b"; .venv/bin/python $$b; done

soak: setup  ## 3,000 small paintings in a row, one in ten hostile (SOAK_RENDERS): what leaks, what grows
	@.venv/bin/python bench/soak.py --renders $${SOAK_RENDERS:-3000}

test-chaos: setup cluster-binaries  ## Storms over 300 runs (CHAOS_RUNS, CHAOS_SEED); a fault in every call of a run's life
	@WATERCOLOUR_CHAOS=all CHAOS_RUNS=$${CHAOS_RUNS:-300} .venv/bin/pytest -s --timeout 0 -o faulthandler_timeout=0 \
		tests/cluster/chaos tests/cluster/operator/test_every_call.py

test-hpsv3: setup  ## The backend hpsv3 on the real package, a tiny model: an environment of 6 GB
	@[ -x .venv-hpsv3/bin/python ] || .tools/bin/uv venv --quiet --python .venv/bin/python .venv-hpsv3
	@VIRTUAL_ENV=$$PWD/.venv-hpsv3 .tools/bin/uv pip sync --quiet --require-hashes locks/hpsv3.txt
	@VIRTUAL_ENV=$$PWD/.venv-hpsv3 .tools/bin/uv pip install --quiet --constraint locks/main.txt pytest pytest-asyncio pytest-timeout
	@PYTHONPATH=python .venv-hpsv3/bin/python -m pytest --noconftest tests/hpsv3

cluster-binaries:  ## Build the test control plane's programs: 10 to 20 minutes, once a machine
	@python3 tests/cluster/ground/binaries.py

cluster-check:  ## Say what this machine lacks for a whole node, before anything is built
	@python3 -m tests.cluster.node.needs

cluster-up: $(if $(ELSEWHERE),,cluster-check) setup  ## Start a Kubernetes node on this machine (as root), or use that of KUBECONFIG
	@.venv/bin/python -m tests.cluster.node up

cluster-down:  ## End that node and remove what it took; its images stay in the cache
	@.venv/bin/python -m tests.cluster.node down

cluster-run: $(if $(ELSEWHERE),,cluster-check) setup $(if $(ELSEWHERE),,images)  ## The whole platform on that node: chart, run, report (RUN=examples/cluster-tiny.yaml)
	@.venv/bin/python -m tests.cluster.node run $(RUN)

test-node: $(if $(ELSEWHERE),,cluster-check) setup $(if $(ELSEWHERE),,images)  ## The tests on a whole node: images, limits, policies, Chromium, runs from end to end
	@.venv/bin/pytest -m node tests/node

images:  ## Build the container images, in archives for containerd (IMAGES="operator env", BASE_IMAGE=…, FRESH=1)
	@python3 -m scripts.images $(if $(BASE_IMAGE),--base $(BASE_IMAGE)) $(if $(FRESH),--fresh) $(IMAGES)

package:  ## Make the chart's archive in dist/ and say which images to push where (REGISTRY=…)
	@python3 -m scripts.package $(REGISTRY)

docs: setup  ## Write the generated pages of the reference and the resource's definition
	@.venv/bin/python -m watercolour.api.docs
	@.venv/bin/python -m watercolour.api.crd
	@.venv/bin/python scripts/cli_reference.py
	@.venv/bin/python -m watercolour_operator.metrics
	@.venv/bin/python scripts/chart_docs.py

lock:  ## Renew the lock files from pyproject.toml
	@scripts/lock.sh

clean:  ## Remove the environments and the vendored files
	rm -rf .venv .venv-render .venv-hpsv3 .tools python/watercolour/render/vendor python/watercolour/score/weights
