# The targets people use. `make help` lists them.
SHELL := /bin/bash
GO    ?= go
STORE ?= file
SEEDS ?= 2000
# Packages and tests at once: they wait for processes and disks more than they compute. More cores: make test JOBS=16
JOBS ?= 4
# -race checks the pointer arithmetic of all packages, too. SQLite is C translated to Go, with its memory outside of Go's heap: its own
# arithmetic is not what is tested here, and made the catalog's tests three times as dear. Races are looked for in it as in all else.
PLAIN_SQLITE = -gcflags=modernc.org/...=-d=checkptr=0

.PHONY: help build test race lint fmt fuzz bench bench-local bench-check deploy-check demo sim soak soak-real e2e clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/strandline
	$(GO) build -trimpath -o bin/strandline ./cmd/strandline

test: ## all tests, with the race detector, against real MinIO and versitygw servers; then 2,000 seeds of the simulator
	$(GO) test -race -p $(JOBS) -parallel $(JOBS) $(PLAIN_SQLITE) -timeout 20m ./...
	GOGC=400 $(GO) test ./internal/sim -run '^TestSim$$' -count=1 -timeout 20m -seeds=2000

lint: ## vet, staticcheck, gofumpt, golangci-lint, govulncheck (pinned in tools/); alert rules, manifests and compose file
	./tools/lint/run
	cd tools/deploycheck && $(GO) vet ./... && $(GO) test -run 'TestRunbook$$|Names|TestAlertsFire|TestDashboardModel|TestManifests$$|TestCompose$$' ./...   # rules, runbook, dashboard, manifests, compose file: a minute, once built

fmt: ## format all Go files
	./tools/lint/run --fix

fuzz: ## every fuzz target for FUZZTIME (default 30s)
	./tools/fuzz $${FUZZTIME:-30s}

bench: ## benchmarks with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./segment ./objstore/... ./catalog/... ./localtier/... ./settle ./coldload

bench-local: ## our log beside nine others, on this disk: about ten minutes (DIR=…; bench/ is a module of its own)
	cd bench && $(GO) run . $(if $(DIR),-dir $(abspath $(DIR))) -json $(CURDIR)/.cache/bench-local.json

bench-check: ## vet and test bench/: no log there loses a row
	cd bench && $(GO) vet ./... && $(GO) test ./...

deploy-check: ## deploy/ and the compose file by the parsers of Prometheus, Kubernetes and Compose, and by real processes (tools/deploycheck is a module of its own)
	cd tools/deploycheck && $(GO) vet ./... && $(GO) test -timeout 15m ./...

demo: ## the life of 2.8 million rows: Go's own source through every protocol (STORE=file or minio)
	$(GO) run ./internal/demo --store $(STORE)

sim: ## the simulator over SEEDS seeds (default 2000) from FROM (default 1): every rule after every step, coverage at the end
	$(GO) test -c -o .cache/sim.test ./internal/sim
	cd internal/sim && $(CURDIR)/.cache/sim.test -test.run '^(TestSim|TestPlants)$$' -test.timeout 0 -seeds=$(SEEDS) -from=$(or $(FROM),1)

soak: ## the simulator over new seeds until stopped, or until one breaks a rule
	$(GO) test -c -o .cache/sim.test ./internal/sim
	cd internal/sim && $(CURDIR)/.cache/sim.test -test.run '^TestSim$$' -test.timeout 0 -seeds=0 -from=0

soak-real: ## break real processes on a real server for DURATION (default 10m), lose nothing (SEED=n: the same faults again)
	$(GO) test ./internal/soak -run '^TestSoak$$' -v -count=1 -timeout 0 -soak.duration $(or $(DURATION),10m) -soak.seed $(or $(SEED),0)

e2e: ## a whole deployment of processes on MinIO and PostgreSQL, broken under load for a minute more than in `make test` (HOLD=15s between faults)
	$(GO) test ./internal/e2e -run '^TestEndToEnd$$' -v -count=1 -timeout 15m -e2e.hold $(or $(HOLD),15s) -e2e.streams 4

clean: ## remove what was built
	rm -rf bin .cache demo
