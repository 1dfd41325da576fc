# Everything that is done with this repository, one target each: `make help`.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

GO      ?= go
TOOL    := $(GO) tool -modfile=tools/go.mod
MODULE  := github.com/chandlery/chandlery
CLUSTER := $(GO) run ./test/controlplane/cluster
NODES   := $(GO) run ./test/nodes/bed

# The version that the programs report: the nearest tag, else the commit, else
# "devel" where there is no git history (a source archive).
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# Programs, tests, linters and tools compile with the same settings, so that each package is compiled
# once: without C, like the programs of a release, and without paths of this folder, so that what one
# clone has compiled serves all others. The toolchain collects garbage less often: compilers need a tenth less processor
# time, and linkers a fifth less.
BUILDING := -trimpath '-toolexec=env GOGC=400'
export CGO_ENABLED := 0
export GOFLAGS     := $(BUILDING) $(filter-out $(BUILDING),$(GOFLAGS))

# The race detector needs a C compiler; without one the tests run plainly.
RACE ?= $(if $(and $(shell command -v gcc 2>/dev/null),$(filter amd64 arm64,$(shell $(GO) env GOARCH))),-race)

# The detector makes suites on a control plane and whole supervisors several times slower;
# `make whole` has it there too.
SUITE_RACE ?=
RACE_GO  := $(if $(RACE),CGO_ENABLED=1 )$(GO)
SUITE_GO := $(if $(SUITE_RACE),CGO_ENABLED=1 )$(GO)

# What repeats itself does so less often in `make test` than in `make whole`, so that both are done in time.
# Compatibility rules: one in COMPAT_SHARE. `make compat` checks all.
COMPAT_SHARE         ?= 8
# Kinds of loss on real nodes, and frozen leaders.
export ROUNDS        ?= 1
# Interleavings of Subscriptions, and plans whose phases are watched.
export INTERLEAVINGS ?= 4
export PLANS         ?= 10
# Packages that are uninstalled without trace.
export PACKAGES      ?= 2
# Namespaces with the same operator.
export NAMESPACES    ?= 60
# Faults of the API server: one in FAULTS.
export FAULTS        ?= 48
# Removals of the supervisor. One of it with other objects is beside three operators with 1, and beside ten with more.
export UNINSTALLS    ?= 1
# Packages of real catalogs that are compared with opm: one in CATALOG_SHARE.
export CATALOG_SHARE ?= 32
# Writes of a takeover and of a handback at which each is killed; 0 is all. Of twelve supervisors that are killed while
# they take over, three are started for each.
export KILLS         ?= 1
# Ways in which OLM is installed: none, a number, or 0 for all.
export INSTALLATIONS ?= none
# How long a catalog is called while its certificates are renewed.
export LOAD          ?= 0s
# Large objects of each kind that a tenant creates.
export LARGE_OBJECTS ?= 8
# Moments of an installation at which a leader is killed.
export LEADER_KILLS  ?= 4
# Situations that are explained, and cases of the long tables of suites: one in so many.
export EXPLAIN_SHARE ?= 4
export CASE_SHARE    ?= 4
# Of the calls of commands, one in CALLS starts a program; others run its code in the test.
export CALLS         ?= 8
# Releases that are built and compared; with 1, a program and an image.
export RELEASES      ?= 1

# The contract as clients of the last release know it.
CONTRACT := proto/contract.txtpb

# Suites build our programs themselves, which Go's cache of test results does not
# see: what passed before a change would pass after it without being run. Other unit tests than
# LISTING build and list nothing, and are run again where they or what they read has changed.
AFRESH := -count=1

# A hundred test programs are linked; what debuggers read of them is not needed, and linking takes a fifth less time
# without it. The linters, or go vet before them, do what go test would do once more.
LEAN := '-ldflags=-s -w' -vet=off

# Suites wait for control planes much of the time, so twice as many packages are tested at a time as
# there are cores: half of them suites.
SIDE_BY_SIDE := -p $(shell nproc 2>/dev/null || echo 2)

# Tests that read whole real catalogs or large objects, open thousands of connections, or go through
# a state machine in one goroutine take ten times as long with the race detector; the same code is
# raced with less. Tests of pages race nothing.
PLAIN := ^(TestIdleConnections|TestStoreRefusesMessagesThatAreTooLarge|TestSynthesizeRealCatalogs|TestSelectRealCatalog|TestRequireRealCatalog|TestSnapshotOfRealCatalogs|$\
  TestContract|TestObjectLimit|TestReducedListsDecodeOneAtATime|TestReducedWatches|TestReducedWatchesKeepNoBuffers|TestCompleteReadsWholeLists|TestGetReadsWholeObjects|$\
  TestTransformBoundsHeap|TestTransformBoundsObjectsOfTenants|TestManyWhiteouts|TestNoDeadEnd|TestTransitionsAreSound|$\
  TestSolutionsAreTheOraclesOnAllSmallProblems)$$
PLAIN_PACKAGES := ./server ./bundles/index ./bundles/selection ./bundles/fbc ./bundles/image ./supervisor/informer ./supervisor/catalogs $\
  ./supervisor/controllers/clusterserviceversion ./supervisor/resolution/sat
PAGES := ./test/docs ./test/depcheck

# These list the packages of the module, which the cache does not see either.
LISTING := ./test/packages ./test/golist

# These have a test that needs a built program, and much that goroutines share.
RACED := ./bundles/index ./bundles/selection ./bundles/fbc ./supervisor/catalogs ./supervisor/controllers/subscription

TEST_TIMEOUT ?= 25m
OLM_TIMEOUT  ?= 60m
FUZZTIME     ?= 10s
SOAK         ?= 4m
REST_TIMEOUT ?= 90m
BENCH        ?= .
BENCHTIME    ?= 1s

##@ Seeing it work

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Install, upgrade and fail over on a real control plane (CATALOG=DIR PACKAGE=NAME for others; ARGS=--exit).
	@echo 'Compiling the demo, which takes a minute or two the first time.'
	@$(GO) run ./test/demo \
	  $(if $(CATALOG),--catalog '$(CATALOG)') \
	  $(if $(PACKAGE),--package '$(PACKAGE)') \
	  $(if $(CHANNEL),--channel '$(CHANNEL)') $(ARGS)

.PHONY: cluster-up
cluster-up: ## Start a control plane in the background and print its kubeconfig.
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop what cluster-up started.
	@$(CLUSTER) down

.PHONY: nodes-up
nodes-up: ## Start three real nodes in the background, as root, and print how to use them.
	@$(NODES) up

.PHONY: nodes-down
nodes-down: ## Stop what nodes-up started.
	@$(NODES) down

.PHONY: node-lost
node-lost: ## Cut the power of a node (N=2).
	@$(NODES) lost $(or $(N),$(error say which node: make node-lost N=2))

.PHONY: node-back
node-back: ## Return a lost node and wait until it is Ready (N=2).
	@$(NODES) back $(or $(N),$(error say which node: make node-back N=2))

# ROUNDS has another default here than for tests that repeat themselves.
.PHONY: rehearsal
rehearsal: test-env ## Migrate a real OLM with sixteen operators on real nodes there and back, as root, and compare (ROUNDS=1).
	@$(GO) run ./test/rehearsal $(if $(filter-out file,$(origin ROUNDS)),--rounds '$(ROUNDS)') $(ARGS)

##@ Working on it

.PHONY: build
build: ## Build bin/registry, bin/catalog, bin/supervisor and bin/kubectl-chandlery.
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/registry ./cmd/catalog ./cmd/supervisor ./cmd/kubectl-chandlery

# kubectl finds plugins, and what completes their arguments, in the folders of $PATH.
DIR ?= $(HOME)/.local/bin

.PHONY: install-plugin
install-plugin: ## Build the kubectl plugin into a folder of the PATH, with its completion (DIR=~/.local/bin).
	@mkdir -p '$(DIR)'
	$(GO) build -ldflags '$(LDFLAGS)' -o '$(DIR)/' ./cmd/kubectl-chandlery
	@install -m 0755 cmd/kubectl-chandlery/kubectl_complete-chandlery '$(DIR)/'
	@case ":$$PATH:" in *":$(DIR):"*) ;; *) echo "$(DIR) is not in the PATH, so kubectl does not find the plugin. Run: export PATH=\"$(DIR):\$$PATH\"";; esac

.PHONY: images
images: ## Make the OCI images, into out/images (PUSH=HOST/PREFIX pushes them too, TAG=… names them, ARGS=--help says what else).
	@$(GO) run ./deploy/images/build --version '$(VERSION)' --commit '$(COMMIT)' --layout out/images \
	  $(if $(PUSH),--push '$(PUSH)') $(if $(TAG),--tag '$(TAG)') $(ARGS)

# The programs that make and verify a release, from modules of their own.
RELEASE_RUN = $(GO) run ./deploy/release/command
# The version of a release; empty unless VERSION is on the command line.
RELEASE_VERSION = $(if $(filter command,$(origin VERSION)),$(patsubst v%,%,$(VERSION)))
# The folder of a release: that of its version, else the newest. Incomplete ones do not count.
RELEASE_DIR = out/release/$(or $(RELEASE_VERSION),$(notdir $(shell ls -td out/release/*/SHA256SUMS 2>/dev/null | grep -v '\.incomplete/' | head -1 | xargs -r dirname)))
# Fails unless the folder holds a release.
RELEASE_MADE = test -f '$(RELEASE_DIR)/SHA256SUMS' || { echo 'There is no release in $(RELEASE_DIR); run make release VERSION=$(or $(RELEASE_VERSION),…) first.' >&2; exit 1; }

.PHONY: release
release: ## Make all files of a release in out/release/VERSION (VERSION=1.2.0, KEY=cosign.key or KEYLESS=1, IMAGES=HOST/PREFIX).
	@$(RELEASE_RUN) build '$(RELEASE_DIR)' --version '$(RELEASE_VERSION)' \
	  $(if $(IMAGES),--images '$(IMAGES)') $(if $(DOWNLOADS),--downloads '$(DOWNLOADS)') $(if $(BUILDER),--builder '$(BUILDER)') \
	  $(if $(KEY),--key '$(KEY)') $(if $(KEYLESS),--keyless) $(ARGS)

.PHONY: release-verify
release-verify: ## Verify a release as a user would, the newest without VERSION (PUBLIC_KEY=FILE, or IDENTITY=NAME ISSUER=URL).
	@$(RELEASE_MADE)
	@$(RELEASE_RUN) verify '$(RELEASE_DIR)' \
	  $(if $(PUBLIC_KEY),--key '$(PUBLIC_KEY)') $(if $(IDENTITY),--identity '$(IDENTITY)') $(if $(ISSUER),--issuer '$(ISSUER)')

.PHONY: release-push
release-push: ## Push images, chart and signatures of a release to the registry of IMAGES.
	@$(RELEASE_MADE)
	@$(RELEASE_RUN) push '$(RELEASE_DIR)'

.PHONY: check
check: contract ## Fast loop: compile and vet, then tests that need nothing but Go.
	@$(GO) vet ./...
	@$(GO) run ./test/packages unit | xargs $(GO) test -short $(LEAN)

.PHONY: lint
lint: contract ## Run every linter over everything.
	@$(TOOL) golangci-lint run ./...

.PHONY: contract
contract: ## Lint the gRPC contract, and fail when clients of the last release could not speak it.
	@$(TOOL) buf lint
	@$(TOOL) buf breaking proto --against $(CONTRACT)

.PHONY: release-contract
release-contract: contract ## Store the contract as that of a release.
	@$(TOOL) buf build proto --exclude-source-info -o $(CONTRACT)

.PHONY: format
format: ## Format all Go and proto files.
	@$(TOOL) golangci-lint fmt ./...
	@$(TOOL) buf format -w

.PHONY: generate
generate: ## Regenerate the contract's Go code, the sample catalog, the CustomResourceDefinitions and reference pages.
	@$(TOOL) buf generate
	@$(GO) run ./examples/render
	@$(GO) run ./deploy/prerequisites/crds/render deploy/prerequisites/crds deploy/chart/files/crds
	@$(GO) run ./supervisor/api/configoverrides/render supervisor/api/configoverrides/schema.json
	@cp deploy/components/monitoring/prometheusrule.yaml deploy/components/monitoring/dashboard.json deploy/chart/files/monitoring/
	@$(GO) run ./docs/reference/render

.PHONY: clean
clean: ## Remove what build made.
	@rm -rf bin out

##@ Proving it

.PHONY: test-env
test-env: ## Build the programs of the control plane and of nodes into the cache (six minutes, once).
	@$(NODES) build

# On a machine without a build cache, compilers take all processors for minutes. Suites have limits of seconds, so what
# many of them need is compiled before. `go list -export` compiles packages without linking forty programs.
.PHONY: compile
compile:
	@$(GO) run ./test/packages unit | xargs env $(RACE_GO) list $(RACE) -export >/dev/null
	@for tool in cosign krew kustomize; do $(GO) tool -modfile=tools/release/go.mod -n $$tool >/dev/null; done

.PHONY: test
test: test-env build compile ## Every test: units, control-plane suites, conformance, then the end-to-end suites.
	@$(MAKE) -j 2 computing waiting
	@$(MAKE) losses

.PHONY: whole
whole: ## The tests of `make test` with the race detector everywhere, and nothing left out: hours.
	@$(MAKE) test SUITE_RACE='$(RACE)' COMPAT_SHARE=1 ROUNDS=20 INTERLEAVINGS=500 PLANS=1000 PACKAGES=24 NAMESPACES=200 FAULTS=1 UNINSTALLS=20 CATALOG_SHARE=1 \
	  KILLS=0 INSTALLATIONS=0 LOAD=60s LARGE_OBJECTS=20 LEADER_KILLS=12 EXPLAIN_SHARE=1 CASE_SHARE=1 CALLS=1 RELEASES=2
	@$(MAKE) operatorhub disconnected

# Two rows of packages are tested side by side: one computes most of the time and then has the short suites, the other
# has the long ones, which wait for control planes. Beside so much load, the limits of the compatibility rules
# count four times; `make compat` checks them exactly.
.PHONY: computing waiting
computing:
	@$(MAKE) units
	@$(MAKE) peers
	@$(call suites,short,4)
waiting:
	@$(call suites,long,3)

# suites tests a class of suites, so many packages at a time. Those of the units are not among them.
suites = $(GO) run ./test/packages $(1) | grep -vxF "$$($(GO) list $(RACED) $(PAGES))" | \
  COMPAT_SHARE=$(COMPAT_SHARE) COMPAT_LIMIT_FACTOR=4 xargs env $(SUITE_GO) test $(LEAN) $(SUITE_RACE) $(AFRESH) -p $(2) -timeout $(TEST_TIMEOUT)

.PHONY: units
units:
	@$(GO) test $(LEAN) $(AFRESH) $(PAGES)
	@$(RACE_GO) test $(LEAN) $(RACE) $(AFRESH) -skip '$(PLAIN)' $(SIDE_BY_SIDE) -timeout $(TEST_TIMEOUT) $(RACED) $(LISTING)
	@$(GO) run ./test/packages unit | grep -vxF "$$($(GO) list $(PAGES) $(LISTING))" | xargs env $(RACE_GO) test $(LEAN) $(RACE) -skip '$(PLAIN)' $(SIDE_BY_SIDE) -timeout $(TEST_TIMEOUT)

.PHONY: e2e
e2e: test-env build ## The end-to-end suites, as root on real nodes too.
	@$(GO) run ./test/packages e2e | xargs env $(SUITE_GO) test $(LEAN) $(SUITE_RACE) $(AFRESH) -v -p 2 -timeout $(TEST_TIMEOUT)
	@$(MAKE) losses

.PHONY: peers
peers:
	@$(GO) test $(LEAN) $(AFRESH) $(SIDE_BY_SIDE) -run '$(PLAIN)' $(PLAIN_PACKAGES)
	@$(GO) run ./test/packages peers | xargs $(GO) test $(LEAN) $(AFRESH) -timeout $(TEST_TIMEOUT)

# Nothing else runs beside the suite that measures how long calls fail when nodes are lost;
# its verbose output is the table of what was lost. The suites with the files of a release have targets of their own.
.PHONY: losses
losses:
	@$(GO) run ./test/packages nodes | grep -v -e /operatorhub$$ -e /disconnected$$ | xargs env $(SUITE_GO) test $(LEAN) $(SUITE_RACE) $(AFRESH) -v -p 1 -timeout $(TEST_TIMEOUT)

.PHONY: operatorhub
operatorhub: test-env ## Do what OperatorHub.io prints on real nodes with the files of a release, then operator-sdk's and kubectl-operator's commands, as root.
	@$(GO) test $(LEAN) $(AFRESH) -v -timeout $(TEST_TIMEOUT) ./test/e2e/nodes/operatorhub

.PHONY: disconnected
disconnected: test-env ## Install a release on real nodes that reach only a mirror, restart supervisors while catalogs are away, and rotate certificates, as root.
	@$(GO) test $(LEAN) $(AFRESH) -v -timeout $(TEST_TIMEOUT) ./test/e2e/nodes/disconnected

# Dots show the progress. The command outcomes prints the results, and decides.
COMPAT = $(TOOL) gotestsum --format dots --hide-summary all
# RUN is a regular expression of tests, for a part of the rules.
RUN =

# One package follows the other (-p 1): beside the cases on a real node, the other ones exceed limits of two seconds.
# EXTERNAL is the kubeconfig of an existing cluster. KUBECONFIG counts on the command line only: with the variable of a
# shell, the cases could run in a cluster by mistake.
EXTERNAL = $(abspath $(or $(COMPAT_KUBECONFIG),$(if $(filter command,$(origin KUBECONFIG)),$(KUBECONFIG))))

.PHONY: compat
compat: test-env ## Check each rule of docs/compatibility.md (RUN=regexp, KUBECONFIG=FILE for an existing cluster).
	@mkdir -p out && rm -f out/compat.json
	-@$(if $(EXTERNAL),COMPAT_KUBECONFIG=$(EXTERNAL)) $(COMPAT) --junitfile out/compat.xml --jsonfile out/compat.json -- $(LEAN) $(AFRESH) -p 1 -timeout $(TEST_TIMEOUT) $(if $(RUN),-run '$(RUN)') ./test/compat ./test/compat/nodes
	@$(GO) run ./test/compat/outcomes $(if $(RUN),--part) --clients out/compat-clients.xml out/compat.json

# Cases with a difference fail with OLM.
.PHONY: compat-olm
compat-olm: test-env ## Check that OLM fails exactly the cases that docs/compatibility.md names, as root.
	@mkdir -p out && rm -f out/compat-olm.json out/compat-olm-nodes.json
	-@COMPAT_MANAGER=olm $(COMPAT) --junitfile out/compat-olm.xml --jsonfile out/compat-olm.json -- $(LEAN) $(AFRESH) -timeout $(OLM_TIMEOUT) -parallel 8 ./test/compat
	-@COMPAT_MANAGER=olm $(COMPAT) --junitfile out/compat-olm-nodes.xml --jsonfile out/compat-olm-nodes.json -- $(LEAN) $(AFRESH) -timeout $(OLM_TIMEOUT) -parallel 8 ./test/compat/nodes
	@$(GO) run ./test/compat/outcomes --olm --clients out/compat-olm-clients.xml out/compat-olm.json out/compat-olm-nodes.json

.PHONY: bench
bench: ## Run the benchmarks (BENCH=regexp, BENCHTIME=1s).
	@$(GO) run ./test/packages bench | xargs -r $(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem

.PHONY: bench-registry
bench-registry: ## Compare the registry with opm and a bare server, about half an hour (ARGS=--help says what else).
	@$(GO) run ./bench/registry --write docs/measurements.md $(ARGS)

.PHONY: bench-catalog
bench-catalog: ## Compare making catalogs with opm (ARGS=--help says what else).
	@$(GO) run ./bench/catalog --write docs/measurements.md $(ARGS)

.PHONY: bench-footprint
bench-footprint: ## Binaries, memory at rest and an installation, beside another commit (ARGS="--base COMMIT").
	@$(GO) run ./bench/footprint $(ARGS)

.PHONY: bench-failover
bench-failover: ## Lose nodes and leaders on real nodes, beside a plain Deployment: half an hour, as root.
	@$(GO) run ./bench/failover $(ARGS)

.PHONY: bench-sources
bench-sources: ## What 200 CatalogSources cost a supervisor, as root (ARGS=--help says what else).
	@$(GO) run ./bench/sources $(ARGS)

.PHONY: bench-packagemanifests
bench-packagemanifests: ## What PackageManifests cost beside OLM's package server: times, memory and CPU, as root (ARGS=--help says what else).
	@$(GO) run ./bench/packagemanifests $(ARGS)

.PHONY: bench-resolver
bench-resolver: ## How long resolution takes on the real metadata catalog, with curves (ARGS=--help says what else).
	@$(GO) run ./bench/resolver --write docs/measurements.md --plot docs/resolution.svg $(ARGS)

.PHONY: bench-installation
bench-installation: ## How long an installation takes, and what it writes to the API server (ARGS=--help says what else).
	@$(GO) run ./bench/installation --write docs/measurements.md $(ARGS)

.PHONY: bench-scale
bench-scale: ## What one operator in 10 to 1,000 namespaces costs, beside a plain client (ARGS=--help says what else).
	@$(GO) run ./bench/scale --write docs/measurements-scale.md $(ARGS)

.PHONY: bench-tenant
bench-tenant: ## What a tenant with edit in one namespace can do to a supervisor: lead, memory, installations of others (ARGS=--help says what else).
	@$(GO) run ./bench/tenant $(ARGS)

.PHONY: bench-copies
bench-copies: ## What copied versions cost a supervisor: memory with and without, writes at rest (ARGS=--help says what else).
	@$(GO) run ./bench/copies $(ARGS)

.PHONY: bench-demo
bench-demo: ## What make demo costs with an empty build cache, beside go build of kube-apiserver alone (ARGS=--help says what else).
	@$(GO) run ./bench/demo $(ARGS)

.PHONY: bench-versions
bench-versions: ## How soon versions have succeeded, and what others notice of a removal (ARGS=--help says what else).
	@$(GO) run ./bench/versions $(ARGS)

.PHONY: measurements
measurements: ## Measure again what docs/measurements*.md publishes, for some hours, as root; what has no markers there is printed.
	@for bench in scale installation catalog resolver registry copies packagemanifests versions sources tenant failover; do \
	  echo "==> bench-$$bench" >&2; $(MAKE) bench-$$bench; done

.PHONY: measurements-check
measurements-check: ## List the published figures that are older than what they measure (RELEASE=1 fails on them).
	@$(GO) run ./bench/document/check $(if $(RELEASE),--release)

.PHONY: soak
soak: test-env ## Two replicas under load while content and processes change (SOAK=4m), and compatibility over an hour of rest, as root.
	@SOAK=$(SOAK) $(RACE_GO) test $(RACE) $(AFRESH) -v -timeout $(TEST_TIMEOUT) -run TestSoak ./test/soak
	@COMPAT_REST=full $(GO) test $(LEAN) $(AFRESH) -v -timeout $(REST_TIMEOUT) ./test/compat ./test/compat/nodes

.PHONY: takeover-kills
takeover-kills: test-env ## Kill a takeover from a real OLM and a handback at every write, and repeat them: ten minutes.
	@KILLS=0 $(GO) test $(LEAN) $(AFRESH) -v -timeout $(REST_TIMEOUT) -run '^(TestTakeOver|TestRealOLM)$$/^KilledAtWrites$$' ./test/e2e/takeover

.PHONY: takeover-installations
takeover-installations: test-env ## Take over from a real OLM in either namespace, installed with Helm or kustomize, and hand back: five minutes.
	@INSTALLATIONS=0 $(GO) test $(LEAN) $(AFRESH) -v -timeout $(REST_TIMEOUT) -run TestInstallations ./test/e2e/takeover

.PHONY: uninstalls
uninstalls: test-env ## Uninstall the supervisor 20 times in each way, and check that no APIService is left and a namespace can be deleted.
	@UNINSTALLS=20 $(GO) test $(LEAN) $(AFRESH) -v -p 1 -timeout $(REST_TIMEOUT) -run '^(TestUninstalling|TestUninstallingLeavesNoAPIService)$$' \
	  ./supervisor/controllers/packagemanifest/suite ./cmd/internal/command/uninstall/suite

.PHONY: release-reproducible
release-reproducible: ## Build a release twice, and check that both are the same.
	@RELEASES=2 $(GO) test $(LEAN) $(AFRESH) -v -timeout $(TEST_TIMEOUT) -run TestReleaseIsReproducible ./deploy/release/suite

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s each), from its committed corpus on.
	@$(GO) run ./test/packages fuzz | $(GO) run ./test/fuzz -fuzztime $(FUZZTIME) -fuzzminimizetime=1x

.PHONY: vulncheck
vulncheck: ## Fail on calls of functions with known vulnerabilities, as GOVULNDB lists them (RELEASE=1 needs the database).
	@$(GO) run ./test/vulncheck $(if $(RELEASE),--release)

.PHONY: verify
verify: generate ## Fail when generated code, go.mod or formatting is not what is committed.
	@$(GO) mod tidy -diff
	@$(GO) mod verify >/dev/null
	@$(TOOL) golangci-lint fmt --diff ./...
	@$(TOOL) buf format --diff --exit-code
	@dirty=$$(git status --porcelain); \
	if [ -n "$$dirty" ]; then \
	  echo "verify: the tree differs from what is committed; commit the following or run 'make generate format':" >&2; \
	  echo "$$dirty" >&2; git --no-pager diff --stat; exit 1; \
	fi
