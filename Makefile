# `make help` lists the targets. Everything runs in a virtual environment in .venv, which `make setup` makes
# from Python 3.11, 3.12 or 3.13 alone; no root, nothing outside this folder (but caches). infra/find-python chooses the
# Python, `make PYTHON=...` names one, and an existing .venv keeps its own. Works on macOS: GNU make 3.81, bash 3.2, BSD tools.

SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements.lock
READY := $(VENV)/.ready
# Compiled: where PYTHONDONTWRITEBYTECODE is set, every process of ours would compile torch anew, for seconds.
INSTALL := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python
TOOL := $(VENV)/img2dataset
TOOL_LOCK := img2dataset.lock

# uv does not read pip's settings. The folder of wheels in PIP_FIND_LINKS may hold a CPU build of torch.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_LINK_MODE ?= copy

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-full test faults attack interop check check-infra check-platforms docs format lock lock-gpu demo-models bench-compare bench-dataset bench-demo bench-embed bench-flow bench-gate bench-index bench-train clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) $(TOOL)/.ready  ## make .venv with the locked versions of everything

# Where torch comes from, best first: a local CPU wheel for this very Python, PyTorch's own CPU index, the registry.
$(READY): $(LOCK) pyproject.toml
	@echo "setting up $(VENV) (once; about a minute)"
	@infra/find-python $(BIN)/python >/dev/null 2>&1 || \
	  { python=$$(infra/find-python $(PYTHON)) && "$$python" -m venv --clear $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv==0.13.7"
	@tag=$$($(BIN)/python -c 'import sys; print("cp%d%d" % sys.version_info[:2])'); \
	if ls $(UV_FIND_LINKS)/torch-*+cpu-$$tag-*.whl >/dev/null 2>&1; then \
	  $(INSTALL) -r $(LOCK); \
	else \
	  $(INSTALL) --torch-backend=cpu -r $(LOCK) 2>/dev/null || { \
	    echo "no CPU build of torch from PyTorch's own index: the registry's comes, on Linux with 4 GB for GPUs"; \
	    $(INSTALL) -r $(LOCK); }; \
	fi
	@$(INSTALL) --no-deps -e .
	@touch $@

# img2dataset wants other versions than we do. Compiled, because at every start three processes import it all.
$(TOOL)/.ready: $(TOOL_LOCK) | $(READY)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(TOOL)
	@$(BIN)/uv pip install --quiet --no-deps --compile-bytecode --python $(TOOL)/bin/python -r $(TOOL_LOCK)
	@touch $@

demo: setup  ## run the whole pipeline on the built-in demo world and print where the report is
	$(BIN)/mudg demo

demo-full: setup  ## the same with three targets and three seeds
	$(BIN)/mudg demo --full

# Files in their order: a process that left a package of tests and came back would start a second Prefect server,
# which its client does not survive. Three processes on two cores, as one of them waits for the stack most of its time.
# The checks run beside them, in one process, for a minute or two; their output is shown at the end.
test: setup  ## run the tests (with the checks of `make check`)
	@mkdir -p build
	@$(MAKE) --no-print-directory check > build/check.log 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest -m "not slow and not interop" -n 3 --dist loadfile --no-loadscope-reorder; tests=$$?; \
	wait $$checks; checked=$$?; cat build/check.log; exit $$((tests || checked))

faults: setup  ## kill the demo at many moments and check that it resumes, and other slow tests (about 45 minutes)
	$(BIN)/python -m pytest -m slow tests/faults tests/flows

attack: setup  ## attack a real stack on 127.0.0.1: by a page, another user, hostile specs, links, files and models; nothing may get through (four minutes; without root, what needs another user is skipped)
	@$(BIN)/python -m tests.security.attack

interop: setup  ## check that open_clip, clip-retrieval, autofaiss, embedding-reader and datasets read our files, and we theirs (3.4 GB, once)
	$(BIN)/python -m pytest -m interop tests/interop

check: setup check-infra docs  ## run ruff, mypy --strict and import-linter, lint infra/, build the docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Nothing is fetched: the schemas come with the packages. Pods that lie in a DaskCluster or in values of charts are taken
# out by tests, as no linter finds them there.
check-infra: setup  ## lint Dockerfile, compose, Kubernetes and YAML files
	$(BIN)/hadolint infra/docker/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec infra/compose/compose.yaml
	$(BIN)/kubernetes-validate --strict --quiet infra/kubernetes/manifests.yaml
	$(BIN)/python -m pytest -q tests/infra/test_kubernetes.py
	$(BIN)/yamllint --strict -d "{extends: relaxed, rules: {line-length: {max: 130}}}" infra prefect.yaml

# A dead link, a missing anchor or a page that no menu has ends it. Not --quiet: then it would ignore its own warnings.
docs: setup  ## build the documentation into build/site (read it: python -m http.server -d build/site)
	$(BIN)/mkdocs build --strict

format: setup  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# One lock for every Python and machine, so lines may say where they hold. It names nothing that torch wants for GPUs:
# a CPU build wants none of it, and others fix the versions themselves. The backport `dataclasses` breaks what Python has
# itself; wandb reports to its makers, and we never use it. img2dataset imports imghdr, which Python 3.13 no longer has.
FOR_GPUS := triton cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvshmem-cu13
COMPILE := UV_FIND_LINKS= $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links

lock: setup  ## resolve requirements.lock anew from pyproject.toml, and img2dataset.lock
	$(COMPILE) pyproject.toml --extra cpu --extra dev --excludes <(printf '%s\n' $(FOR_GPUS)) -o $(LOCK)
	printf "img2dataset==1.47.0\nstandard-imghdr ; python_version >= '3.13'\n" | $(COMPILE) - --excludes <(printf 'dataclasses\nwandb\n') -o $(TOOL_LOCK)

check-platforms: setup  ## check that the registry has all of both locks for Linux, macOS and Python 3.11 to 3.13 (some minutes)
	@PATH="$(BIN):$$PATH" $(BIN)/python infra/check_platforms.py

# CUDA builds for Linux, and the versions of requirements.lock but for those that a GPU needs otherwise. What only
# Kubernetes needs is pinned here for both images.
lock-gpu: setup  ## resolve infra/docker/requirements-gpu.lock anew (no GPU needed)
	UV_FIND_LINKS= $(BIN)/uv pip compile --quiet pyproject.toml --extra gpu --extra kubernetes --python-version 3.11 \
	  --python-platform x86_64-manylinux_2_28 -c <(grep -vE '^(dask|distributed|faiss-cpu)==' $(LOCK)) \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links -o infra/docker/requirements-gpu.lock

demo-models: setup  ## train the demo world's two CLIP models again (about an hour)
	$(BIN)/python -m mudg_core.encode.demo.train student
	$(BIN)/python -m mudg_core.encode.demo.train index

bench-demo: setup  ## measure the demo: accuracy, time, memory; cold and warm (--full: add FULL=--full)
	$(BIN)/python -m benchmarks.demo $(FULL)

bench-compare: setup  ## compare MUDG with 17 baselines and ablations on the demo world (some 80 minutes on two cores; it resumes; ROWS=all: all rows, three hours, figures not kept)
	$(BIN)/python -m benchmarks.compare $(if $(ROWS),--rows $(ROWS))

bench-dataset: setup  ## measure training sets against the demo world's truth (half an hour; PARTS="truth hubs selection absent speed")
	$(BIN)/python -m benchmarks.dataset $(PARTS)

bench-embed: setup  ## measure embedding beside bare forward passes and clip-retrieval (an hour; PARTS="raw vit peer overhead growth")
	$(BIN)/python -m benchmarks.embed $(PARTS)

bench-flow: setup  ## measure how much of a demo run is orchestration, by processes and on Prefect and Dask (ten minutes)
	$(BIN)/python -m benchmarks.flow

bench-gate: setup  ## measure how well the gate's estimate follows the truth (half an hour, less after bench-compare)
	$(BIN)/python -m benchmarks.gate

bench-index: setup  ## measure the index beside faiss, hnswlib, ScaNN and autofaiss (an hour; PARTS="scan cells build speed peers large demo")
	$(BIN)/python -m benchmarks.index $(PARTS)

bench-train: setup  ## measure finetuning beside a naive loop, and at the paper's size (half an hour; PARTS="steps memory real predict")
	$(BIN)/python -m benchmarks.train $(PARTS)

clean:  ## remove files of runs and tests; .venv stays
	rm -rf .mudg .pytest_cache .mypy_cache .ruff_cache build *.egg-info
