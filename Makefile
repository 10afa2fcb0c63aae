# Plumbline. `make help` lists the targets; the two that matter on a new machine
# are `make demo` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 0
# One way to compile, so that each checkout finds what another has compiled; without
# debug information, which no test reads, and which takes a fifth of the compiler's time
# and a third of the linker's.
export GOFLAGS ?= -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s

# CLUSTER=local brings up a cluster of its own; CLUSTER=current uses whatever the
# current kubeconfig points to, and then REGISTRY= must name a registry that the
# cluster can pull from.
CLUSTER ?= local
REGISTRY ?=
# GO_TEST_FLAGS is added to every go test call, e.g. GO_TEST_FLAGS='-run TestX -v'.
GO_TEST_FLAGS ?=

# PLUMBLINE_ROTATION chooses the part of the long tests that `make test` runs. It
# changes with the commit; set it to repeat the choice of another commit.
ifndef PLUMBLINE_ROTATION
PLUMBLINE_ROTATION := $(shell printf '%d' "0x$$(git rev-parse --short=6 HEAD 2>/dev/null || echo 0)")
endif
export PLUMBLINE_ROTATION

# Property tests draw the same values in each quick run, and new ones in a long run.
ifndef PLUMBLINE_LONG
export RAPID_SEED ?= 1
endif

# REPORT_FLAGS is added to the report of a stage: -rewrite keeps its times as the table
# that later runs are compared with.
REPORT_FLAGS ?=
# Tests, the API servers that they start, the compiler and the linters collect garbage less
# often, which saves a seventh of their processor time. The servers of the product keep Go's
# default, and so do benchmarks.
verify lint binaries test-unit test-integration test-floods test-slice test-one e2e chart alerts: export GOGC ?= 400
# The linters collect it more often again near 6 GiB.
lint: export GOMEMLIMIT ?= 6GiB
# TIMEOUT of a package that does not set its own, on a machine that is busy.
TIMEOUT := -timeout 30m
# A stage of several go test calls has one report. Its make is called with REPORTED.
REPORTED = $(MAKE) --no-print-directory GO_TEST_FLAGS="-json $(GO_TEST_FLAGS)"
REPORT = bin/testreport $(if $(filter -v,$(GO_TEST_FLAGS)),-verbose) $(REPORT_FLAGS) -failures bin/stages/failures -waits "$$PLUMBLINE_WAITS" -stage
# AGAIN runs the tests of real parts that failed once more, if they are few.
AGAIN = -again bin/stages || hack/again.sh
# The folder in which the tests of a stage record their waits, made anew.
record_waits = export PLUMBLINE_WAITS=$(CURDIR)/bin/waits/$(1); rm -rf "$$PLUMBLINE_WAITS"; mkdir -p "$$PLUMBLINE_WAITS" bin/stages

TOOL := go tool -modfile=hack/tools/go.mod
CLUSTER_TOOL := bin/cluster

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-27s %s\n", $$1, $$2} /^##@ / {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ The two commands
.PHONY: demo
demo: preflight ## Bring up a cluster, install Plumbline, and show what it catches; CLUSTER=current uses yours.
# On a new machine, one build waits for modules and the linker while the other compiles. The
# cluster itself keeps Go's own collector.
	@if [ "$(CLUSTER)" = local ]; then GOGC=400 $(MAKE) --no-print-directory -j2 components-pods binaries; fi
	@go run ./hack/demo --cluster=$(CLUSTER) --registry=$(REGISTRY)

.PHONY: test
test: preflight bin/testreport ## Everything CI checks: verify, lint, unit, integration, chart, alerts, e2e, a slice of the long tests.
# End-to-end tests mostly wait, and unit tests mostly compute. Integration tests do both, and
# run by themselves: beside end-to-end tests, waits of both took three times as long. Beside
# floods, which end while end-to-end tests still wait, they took half as long again. On a new
# machine, the end-to-end tests wait for the programs that they need, and for no others.
	@hack/stages.sh 'verify,test-unit,test-floods|components-pods,e2e|~lint,chart,alerts,components,test-slice' test-integration

# ALL is what proves something and what proves it for longer, in pieces of at most an hour.
ALL := test test-seeds test-sim test-sim-rare integration-long guard-long test-oldest-envoy test-race faults fuzz xds-long upgrade-long skew-long lifecycle e2e-long mesh-chaos e2e-mesh-long delivery-long effectiveness-long mutants mutants-safeguards bench bench-units bench-admission bench-admission-peers bench-guard bench-remediation bench-xds bench-mesh bench-delivery bench-effectiveness bench-connectors bench-api

.PHONY: test-all
test-all: preflight ## Everything, in pieces that are kept for the commit; call it again to carry on (6 hours).
	@PLUMBLINE_STRICT=1 PIECES="$(ALL)" hack/test-all.sh

##@ Parts of the test
.PHONY: test-unit
test-unit: bin/testreport ## Unit, property and scenario tests, with the race detector where goroutines are.
	@$(call record_waits,unit); { $(REPORTED) unit-plain; $(REPORTED) unit-race; } | $(REPORT) unit

# What is vetted: see lint.
.PHONY: unit-plain
unit-plain: ## Unit tests of packages without goroutines.
	go test -vet=off $(TIMEOUT) $(GO_TEST_FLAGS) ./test/sim $$(hack/packages.sh plain)
	cd hack/tools/kal && go test $(TIMEOUT) $(GO_TEST_FLAGS) ./...

.PHONY: unit-race
unit-race: ## Unit tests of packages with goroutines, with the race detector.
	CGO_ENABLED=1 go test -vet=off -race $(TIMEOUT) $(GO_TEST_FLAGS) $$(hack/packages.sh race)
	CGO_ENABLED=1 go test -vet=off -race -tags failpoints $(TIMEOUT) $(GO_TEST_FLAGS) ./cmd/assessor ./cmd/xds
	cd hack/cluster && CGO_ENABLED=1 go test -vet=off -race $(TIMEOUT) $(GO_TEST_FLAGS) ./...

# SEPARATE are the tests whose product mostly runs as a process of its own, which the
# race detector of the test does not see: test-race has both. A heavy start comes first.
SEPARATE := xds executorfaults/... faults policies deny injection kinds redirect skew
# FLOODS are those that measure whether a flood displaces others, one package at a time.
FLOODS := admission attacks
# SELDOM are those that only a target of their own runs: they compile another program.
SELDOM := upgrade peers prometheus
# INPROCESS are all others.
INPROCESS = execute assess cli/roles $(filter-out execute assess $(SEPARATE:/...=) $(FLOODS) $(SELDOM),$(notdir $(patsubst %/,%,$(wildcard test/integration/*/))))
integration = $(addprefix ./test/integration/,$(1))
# Not set at once: the tool builds what it names.
SERVERS = KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)"
INTEGRATION = $(SERVERS) ENVOY="$$($(CLUSTER_TOOL) which envoy)" ENVOY_OLDEST="$$($(CLUSTER_TOOL) which envoy-oldest)" HAPROXY="$$($(CLUSTER_TOOL) which haproxy)" NGINX_BINARY="$$($(CLUSTER_TOOL) which nginx)" TRAEFIK="$$($(CLUSTER_TOOL) which traefik)" MOTO="$$($(CLUSTER_TOOL) which moto)" PROMETHEUS="$$($(CLUSTER_TOOL) which prometheus)" ALERTMANAGER="$$($(CLUSTER_TOOL) which alertmanager)"
TEST_INTEGRATION = go test -vet=off -count=1 -tags integration -timeout 40m

.PHONY: test-integration
test-integration: components bin/testreport ## Tests on a real kube-apiserver, a real Redis and a real Envoy: the two below.
# Five packages at a time, since most wait.
	@$(call record_waits,integration); { status=0; \
	  $(REPORTED) integration-separate >bin/stages/integration-separate.json & separate=$$!; \
	  $(REPORTED) integration-inprocess || status=1; \
	  wait $$separate || status=1; cat bin/stages/integration-separate.json; \
	  exit $$status; } | $(REPORT) integration $(AGAIN) integration

# The race detector takes half as much of the processors again. One rotation in four has it,
# and so has each long run.
INPROCESS_RACE = $(if $(PLUMBLINE_LONG),yes,$(filter 0,$(shell echo $$(($(PLUMBLINE_ROTATION) % 4)))))

.PHONY: integration-inprocess
integration-inprocess: $(CLUSTER_TOOL) ## Those that run the product inside the test; one rotation in four, and each long run, has the race detector.
	$(INTEGRATION) $(if $(INPROCESS_RACE),CGO_ENABLED=1) $(TEST_INTEGRATION) $(if $(INPROCESS_RACE),-race) -p 3 $(GO_TEST_FLAGS) $(call integration,$(INPROCESS)) ./test/sim/conformance

.PHONY: integration-separate
integration-separate: $(CLUSTER_TOOL) ## Those that run the product as processes.
	$(INTEGRATION) $(TEST_INTEGRATION) -p 2 $(GO_TEST_FLAGS) $(call integration,$(SEPARATE))

.PHONY: test-floods
test-floods: components-pods bin/testreport ## Floods of requests on a real kube-apiserver.
	@$(call record_waits,floods); $(REPORTED) floods | $(REPORT) floods $(AGAIN) floods

.PHONY: floods
floods: $(CLUSTER_TOOL) ## test-floods without its report.
	$(SERVERS) $(TEST_INTEGRATION) -p 1 $(GO_TEST_FLAGS) $(call integration,$(FLOODS))

.PHONY: integration-long
integration-long: ## Integration tests and floods with the tests that share rotations, each of them (25 minutes).
	PLUMBLINE_LONG=1 $(MAKE) --no-print-directory test-floods test-integration

.PHONY: components
components: $(CLUSTER_TOOL) ## The programs of a cluster, compiled where the cache lacks them.
	@$(CLUSTER_TOOL) build

.PHONY: components-pods
components-pods: $(CLUSTER_TOOL) ## Those of them that a cluster with pods needs.
	@$(CLUSTER_TOOL) build --only pods

.PHONY: test-slice
test-slice: ## A tenth of the long tests, which PLUMBLINE_ROTATION chooses (3 minutes).
	@hack/slice.sh

##@ Longer tests
.PHONY: test-seeds
test-seeds: ## Property tests with new seeds (10 minutes).
	RAPID_SEED=0 PLUMBLINE_LONG=1 go test -vet=off -count=1 -timeout 50m $(GO_TEST_FLAGS) $$({ hack/packages.sh plain; hack/packages.sh race; } | grep -v '/test/sim$$')

# The seeds begin anew in each run; the log says with which one, and PLUMBLINE_SEED repeats it.
.PHONY: test-sim
test-sim: ## 20,000 lives of the simulation with new seeds, and all mutants (40 minutes).
	PLUMBLINE_LONG=1 go test -vet=off -count=1 -timeout 58m -v -skip TestRareCases $(GO_TEST_FLAGS) ./test/sim

.PHONY: test-sim-rare
test-sim-rare: ## Short lives of the simulation, until each rare case was met 100 times (20 minutes).
	PLUMBLINE_LONG=1 go test -vet=off -count=1 -timeout 58m -v -run TestRareCases $(GO_TEST_FLAGS) ./test/sim

.PHONY: guard-long
guard-long: $(CLUSTER_TOOL) ## 2,000 random writes to eleven kinds, held against a naive twin, with a new seed (7 minutes).
	$(INTEGRATION) PLUMBLINE_LONG=1 $(TEST_INTEGRATION) $(GO_TEST_FLAGS) $(call integration,randomwrites)

.PHONY: upgrade-long
upgrade-long: $(CLUSTER_TOOL) ## A real upgrade of the API server, from the oldest Kubernetes to the newest, over 500 guarded objects, and all policies but that of stamps on the oldest (15 minutes).
	KUBE_APISERVER_OLDEST="$$($(CLUSTER_TOOL) which kube-apiserver-oldest)" $(INTEGRATION) $(TEST_INTEGRATION) -v $(GO_TEST_FLAGS) $(call integration,upgrade)
	KUBE_APISERVER_OLDEST="$$($(CLUSTER_TOOL) which kube-apiserver-oldest)" $(INTEGRATION) $(TEST_INTEGRATION) -v $(GO_TEST_FLAGS) $(call integration,policies)

.PHONY: skew-long
skew-long: $(CLUSTER_TOOL) ## An upgrade from the former release by Helm and its rollback, with the servers of both releases beside the kinds of the other (5 minutes).
	hack/former.sh build bin/former
	PLUMBLINE_FORMER=$(CURDIR)/bin/former $(INTEGRATION) $(TEST_INTEGRATION) -v $(GO_TEST_FLAGS) $(call integration,skew)

.PHONY: test-oldest-envoy
test-oldest-envoy: $(CLUSTER_TOOL) ## All that is tried with Envoy, with the oldest one that is served.
	oldest="$$($(CLUSTER_TOOL) which envoy-oldest)"; KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" PLUMBLINE_LONG=1 ENVOY="$$oldest" ENVOY_OLDEST="$$oldest" $(TEST_INTEGRATION) -p 2 $(GO_TEST_FLAGS) $(call integration,ads envoyxds inject xds mesh abrelease injection)

.PHONY: test-race
test-race: $(CLUSTER_TOOL) ## Tests that run the product as processes, with the race detector in both, and unit tests of packages that only lock.
	CGO_ENABLED=1 go test -vet=off -race -count=1 $(TIMEOUT) $(GO_TEST_FLAGS) $$(hack/packages.sh locks)
	PLUMBLINE_LONG=1 PLUMBLINE_RACE=1 $(INTEGRATION) CGO_ENABLED=1 $(TEST_INTEGRATION) -race -p 2 $(GO_TEST_FLAGS) $(call integration,$(SEPARATE))
	PLUMBLINE_LONG=1 PLUMBLINE_RACE=1 $(INTEGRATION) CGO_ENABLED=1 $(TEST_INTEGRATION) -race -p 1 $(GO_TEST_FLAGS) $(call integration,$(FLOODS))

.PHONY: mutants
mutants: ## How many small faults in the code of pure packages their unit tests notice (55 minutes).
	go build -o bin/mutants ./hack/mutants
	nice -n 19 bin/mutants $(MUTANTS_FLAGS)

.PHONY: mutants-safeguards
mutants-safeguards: ## Whether tests notice the loss of each safeguard of remediation (7 minutes on a busy machine).
	go build -o bin/mutants ./hack/mutants
	nice -n 19 bin/mutants --safeguards hack/mutants/safeguards.txt $(MUTANTS_FLAGS)

.PHONY: test-busy
test-busy: ## make test beside four busy loops, in which no test runs again.
	PLUMBLINE_STRICT=1 hack/busy.sh 4 $(MAKE) --no-print-directory test

.PHONY: test-one
test-one: $(CLUSTER_TOOL) ## Run the tests of PKG=./test/integration/assess once, those of RUN=TestX alone.
	hack/deflake.sh $(PKG) 0 $(RUN)

.PHONY: deflake
deflake: $(CLUSTER_TOOL) ## Run the tests of PKG=./pkg/traffic N=20 times beside busy loops, up to the first failure.
	hack/deflake.sh $(PKG) $(N) $(RUN)

.PHONY: faults
faults: $(CLUSTER_TOOL) ## All faults, those that take long included (45 minutes).
	PLUMBLINE_FAULTS=long $(INTEGRATION) $(TEST_INTEGRATION) -timeout 58m -p 2 -v $(GO_TEST_FLAGS) $(call integration,executorfaults/... faults)

# FUZZTIME is how long each fuzzer runs.
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Each fuzzer of the repository for FUZZTIME=30s, with new inputs (20 minutes).
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: xds-long
xds-long: $(CLUSTER_TOOL) ## The discovery server with real Envoys, ten times as much of it (15 minutes).
	PLUMBLINE_XDS=long $(INTEGRATION) CGO_ENABLED=1 $(TEST_INTEGRATION) -race -p 1 -v $(GO_TEST_FLAGS) $(call integration,ads envoyxds)

.PHONY: mesh-chaos
mesh-chaos: $(CLUSTER_TOOL) ## Half an hour of random events around proxies under load, and 200 returns of proxies to the discovery server (45 minutes).
	PLUMBLINE_LONG=1 PLUMBLINE_CHAOS=30m $(INTEGRATION) $(TEST_INTEGRATION) -v -run TestNoRequestIsLostInChaos $(GO_TEST_FLAGS) $(call integration,xds)
	PLUMBLINE_RETURNS=200 $(INTEGRATION) $(TEST_INTEGRATION) -v -run TestAProxyIsBackSoon $(GO_TEST_FLAGS) $(call integration,xds)

.PHONY: mesh-long
mesh-long: mesh-chaos e2e-mesh-long ## What the mesh loses on the worst day, for long: two pieces of test-all (75 minutes).

##@ Stages beside others
.PHONY: chart
chart: $(CLUSTER_TOOL) ## Render, lint and test the chart with Helm 4, and make a release of it and of small programs.
	HELM="$$($(CLUSTER_TOOL) which helm)" go test -vet=off $(TIMEOUT) $(GO_TEST_FLAGS) ./test/chart/...
	cd hack/release && HELM="$$(../../$(CLUSTER_TOOL) which helm)" go test -vet=off $(TIMEOUT) $(GO_TEST_FLAGS) ./...

.PHONY: alerts
alerts: bin/promtool ## Alert rules, runbooks and dashboard, with promtool.
	cd hack/alerts && PROMTOOL=$(CURDIR)/bin/promtool go test -vet=off -count=1 $(TIMEOUT) $(GO_TEST_FLAGS) ./...

bin/testreport: $(wildcard hack/testreport/*.go test/harness/waits/*.go)
	go build -o $@ ./hack/testreport

bin/promtool: hack/alerts/go.mod
	cd hack/alerts && go build -tags remove_all_sd -o ../../bin/promtool github.com/prometheus/prometheus/cmd/promtool

.PHONY: e2e
e2e: $(CLUSTER_TOOL) bin/testreport binaries ## Tests on a whole cluster with pods: the three below.
# Two of them at a time, since they mostly wait and share no cluster.
	@$(call record_waits,e2e); $(REPORTED) -j2 --output-sync=target e2e-plumbline e2e-demo e2e-cluster | $(REPORT) e2e -verbose $(AGAIN) e2e

.PHONY: e2e-plumbline
e2e-plumbline: $(CLUSTER_TOOL) ## Plumbline on a whole cluster.
	go test -vet=off -count=1 -tags e2e -timeout 40m -v $(GO_TEST_FLAGS) ./test/e2e/...

.PHONY: e2e-mesh-long
e2e-mesh-long: $(CLUSTER_TOOL) ## Splits on real pods: ten rounds of steps, kills and restarts at once, and a discovery server that is away for ten minutes, longer than tokens live.
	PLUMBLINE_OUTAGE=10m E2E_NAME=mesh go test -count=1 -tags e2e -timeout 60m -v -run 'TestSplitsOutliveFaults' $(GO_TEST_FLAGS) ./test/e2e/...

.PHONY: delivery-long
delivery-long: $(CLUSTER_TOOL) binaries ## Rollouts on real pods, each story, under 210 orders a second, and the gates' client with a real Prometheus (25 minutes).
	$(INTEGRATION) $(TEST_INTEGRATION) -v $(GO_TEST_FLAGS) $(call integration,prometheus)
	PLUMBLINE_LONG=1 E2E_NAME=delivery go test -count=1 -tags e2e -timeout 60m -v -run 'TestOnRealPods/rollouts' $(GO_TEST_FLAGS) ./test/e2e/...

.PHONY: effectiveness-long
effectiveness-long: $(CLUSTER_TOOL) binaries ## Repairs on real pods and what became of them, beside a real Prometheus and a real Alertmanager (25 minutes).
	PLUMBLINE_EFFECTS=long E2E_NAME=effects go test -count=1 -tags e2e -timeout 50m -v -run 'TestEffectsOnRealPods' $(GO_TEST_FLAGS) ./test/e2e/...

.PHONY: e2e-cluster
e2e-cluster: ## The clusters themselves: life, repair, end.
	cd hack/cluster && go test -vet=off -count=1 -tags cluster $(TIMEOUT) $(GO_TEST_FLAGS) .

.PHONY: e2e-demo
e2e-demo: $(CLUSTER_TOOL) ## The demo on somebody else's cluster, with a registry.
	go test -vet=off -count=1 -tags e2e $(TIMEOUT) -v $(GO_TEST_FLAGS) ./test/hack/demo

.PHONY: e2e-long
e2e-long: $(CLUSTER_TOOL) binaries ## All stories on whole clusters; the demo tells its own twice on each kind of cluster, and the README is followed by copy and paste (35 minutes).
	PLUMBLINE_LONG=1 E2E_NAME=long go test -count=1 -tags e2e -timeout 50m -v $(GO_TEST_FLAGS) ./test/e2e/...
	PLUMBLINE_LONG=1 go test -count=1 -tags e2e -timeout 40m -v $(GO_TEST_FLAGS) ./test/hack/demo

.PHONY: lifecycle
lifecycle: $(CLUSTER_TOOL) binaries ## Update, scale, drain, upgrade, removal with 200 writes/s offered: no call fails (15 minutes).
	go test -count=1 -tags lifecycle -timeout 30m -v $(GO_TEST_FLAGS) ./test/lifecycle

.PHONY: bench
bench: $(CLUSTER_TOOL) ## Benchmarks, each beside its reference.
	go test -run '^$$' -bench . -benchmem -count 3 ./pkg/specguard/... ./pkg/admission/...
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench WatchToStatus -benchtime 500x -count 3 -timeout 30m ./test/integration/assess
	PLUMBLINE_BENCH_OBJECTS=10000 KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench ColdStart -benchtime 1x -timeout 30m ./test/integration/assess

.PHONY: bench-units
bench-units: $(CLUSTER_TOOL) ## Benchmarks of single packages that no other target runs, and of tokens and Deny on an API server (15 minutes).
	go test -run '^$$' -bench . -benchmem -timeout 40m ./internal/... ./pkg/tlsport/... ./pkg/traffic/...
	$(INTEGRATION) go test -tags integration -run '^$$' -bench Tokens -timeout 15m ./test/integration/identity
	$(INTEGRATION) go test -tags integration -run '^$$' -bench Writes -benchtime 300x -timeout 15m ./test/integration/deny

.PHONY: bench-admission
bench-admission: $(CLUSTER_TOOL) ## The webhook under load: replay, the API server's own metric, what stays inside it.
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench 'Replay|APIServer|DeployTrace' -benchtime 1x -timeout 15m -v ./test/integration/admission

.PHONY: bench-admission-peers
bench-admission-peers: $(CLUSTER_TOOL) ## What Plumbline adds to a write, beside Kyverno's CEL policy (12 minutes; at first it builds Kyverno for 15).
	KYVERNO="$$(hack/kyverno.sh)" KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench Peers -benchtime 1x -timeout 30m -v ./test/integration/peers

.PHONY: bench-admission-parts
bench-admission-parts: $(CLUSTER_TOOL) ## What each part of Plumbline adds to a write, profiles of the API server in bin/peers, and the ReplicaSets of real controllers (12 minutes).
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench 'Parts|Controllers' -benchtime 1x -timeout 30m -v ./test/integration/peers

# BENCH_ROUNDS is how many drifts are measured for each number of others. With many
# more no object is left that has not drifted before, and the ledger is full.
BENCH_ROUNDS ?= 60

.PHONY: bench-guard
bench-guard: $(CLUSTER_TOOL) ## What a tenant can cost: expressions by size, calls to discovery, detection beside edits, writes of Baselines (25 minutes).
	$(INTEGRATION) go test -tags integration -run '^$$' -bench 'WebhookConditions|Policies|Deny' -benchtime 5x -timeout 50m ./test/integration/policies
	$(INTEGRATION) go test -tags integration -run '^$$' -bench DiscoveryCalls -benchtime 1x -timeout 15m ./test/integration/attacks
	$(INTEGRATION) PLUMBLINE_BENCH_OBJECTS=5000 go test -tags integration -run '^$$' -bench PodsThatComeAndGo -benchtime 1x -timeout 15m ./test/integration/assess
	$(INTEGRATION) go test -tags integration -run '^$$' -bench BaselineWrites -benchtime 1x -timeout 15m -v ./test/integration/assess
	$(INTEGRATION) go test -tags integration -run '^$$' -bench BesideATenant -benchtime 50x -timeout 15m -v ./test/integration/assess

.PHONY: bench-guard-long
bench-guard-long: $(CLUSTER_TOOL) ## Memory of the assessor with 400 padded objects, 10,000 and 50,000 objects; it needs 12 GiB.
	$(INTEGRATION) PLUMBLINE_LONG=1 $(TEST_INTEGRATION) -v -run TestFourHundredPadded ./test/integration/assess
	$(INTEGRATION) PLUMBLINE_BENCH_OBJECTS=10000 PLUMBLINE_BENCH_MEMORY=250MiB go test -tags integration -run '^$$' -bench ColdStart -benchtime 1x -timeout 40m ./test/integration/assess
	$(INTEGRATION) PLUMBLINE_BENCH_OBJECTS=50000 PLUMBLINE_BENCH_MEMORY=820MiB go test -tags integration -run '^$$' -bench ColdStart -benchtime 1x -timeout 3h ./test/integration/assess

.PHONY: bench-remediation
bench-remediation: $(CLUSTER_TOOL) ## Planner, Redis scripts, and how long a drift takes to be found, planned and put back, with others queued.
	go test -run '^$$' -bench . -benchmem -count 3 ./pkg/remediate/... ./pkg/readiness/...
	go test -tags integration -run '^$$' -bench . -benchtime 3000x ./test/integration/redisguard
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench DriftToPlan -benchtime 30x ./test/integration/remediate
	@echo "each on an API server of its own: what is left of the one before is no part of it"
	@for others in 0 100 1000; do \
	  KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" HELM="$$($(CLUSTER_TOOL) which helm)" go test -tags integration -run '^$$' -bench "DriftToPutBack/^$$others$$" -benchtime $(BENCH_ROUNDS)x -timeout 30m ./test/integration/execute; \
	done

.PHONY: bench-xds bench-xds-path bench-xds-long
bench-xds: $(CLUSTER_TOOL) ## The discovery server beside go-control-plane's two, and behind a real API server, under 1,000 proxies (6 minutes).
	go run ./hack/xdsload --counting --proxies 1000 --services 5000 --rounds 20 --phase-limit 25s --limit 5m --servers plumbline,snapshot,linear
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" go run ./hack/xdsload path --proxies 1000 --services 5000 --endpoints 10 --scopes 1000 --limit 5m

bench-xds-path: $(CLUSTER_TOOL) ## The whole path with 10,000 proxies: a table of the three figures of a replica (up to 24 minutes; it needs 15,100 open files).
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" go run ./hack/xdsload path --proxies 10000 --services 5000 --endpoints 10 --scopes 1000 --rounds 100 --phase-limit 3m --limit 24m

bench-xds-long: bench-xds-path ## That, and the three servers with 100, 1,000 and 10,000 proxies (four pieces, each in up to 25 minutes).
	for n in 100 1000 10000; do go run ./hack/xdsload --counting --proxies $$n --services 5000 --rounds 20 --phase-limit 3m --limit 25m --servers plumbline,snapshot,linear; done

.PHONY: bench-delivery
bench-delivery: $(CLUSTER_TOOL) ## What 1, 100 and 500 rollouts under way cost the leader and the API server, and how soon the judge stops a canary beside fixed windows (12 minutes).
	$(INTEGRATION) go test -tags integration -run '^$$' -bench RunningReleases -benchtime 1x -timeout 30m ./test/integration/abrelease
	$(INTEGRATION) go test -tags integration -run '^$$' -bench RejectingReleases -benchtime 200x -timeout 30m ./test/integration/policies
	go test -run '^$$' -bench 'Count|Judge|Checkpoint' ./pkg/traffic/judge
	go test -run '^$$' -bench CellsToldAndTaken ./pkg/traffic/ads/peers
	PLUMBLINE_LONG=1 go test -count=1 -run TestTheTableOfWindows -v ./pkg/traffic/judge

.PHONY: bench-effectiveness
bench-effectiveness: $(CLUSTER_TOOL) ## What 1,000 assessments in flight cost, when all sources answer and when one does not, beside a poll every 15 s; what verdicts add to a repaired object (10 minutes).
	$(INTEGRATION) go test -tags integration -run '^$$' -bench 'Assessments|Feedback' -benchtime 1x -timeout 40m -v ./test/integration/execute

.PHONY: bench-mesh
bench-mesh: $(CLUSTER_TOOL) ## Real Envoys: from a step, or a canary that loses its endpoints, to the first response that shows it; what retries, ejection, failover and lost packets cost (15 minutes).
	ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench FirstChangedResponse -benchtime 2000x -count 3 ./test/integration/ads
	ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench SelfHelp -benchtime 10000x -count 3 ./test/integration/envoyxds
	ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench Ejection -benchtime 30x ./test/integration/envoyxds
	ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench 'Loss|IdleConnections' -benchtime 1x -timeout 15m ./test/integration/envoyxds
	KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench Clamp -benchtime 15x -timeout 15m ./test/integration/abrelease

.PHONY: bench-connectors
bench-connectors: $(CLUSTER_TOOL) ## A real HAProxy, nginx and Traefik: from a step to its proof, and what the split costs a request, beside an Envoy (2 minutes).
	HAPROXY="$$($(CLUSTER_TOOL) which haproxy)" ENVOY="$$($(CLUSTER_TOOL) which envoy)" go test -tags integration -run '^$$' -bench . -benchtime 5000x -count 3 ./test/integration/haproxy
	NGINX_BINARY="$$($(CLUSTER_TOOL) which nginx)" go test -tags integration -run '^$$' -bench . -benchtime 100x ./test/integration/nginx
	TRAEFIK="$$($(CLUSTER_TOOL) which traefik)" go test -tags integration -run '^$$' -bench . -benchtime 100x ./test/integration/traefik

.PHONY: bench-api
bench-api: $(CLUSTER_TOOL) ## The REST API in the cluster with 10,000 Baselines, beside one call to the API server; streams of events (6 minutes).
	$(SERVERS) go test -tags integration -run '^$$' -bench 'Serve|Streams' -benchtime 1000x -timeout 30m ./test/integration/cli/roles

##@ Code
.PHONY: generate
generate: ## Regenerate everything that is generated and committed.
	hack/generate.sh

.PHONY: demo-recording
demo-recording: preflight ## Run the demo, and draw its scenes as the recorded terminal of the README.
	@go run ./hack/demo --cluster=$(CLUSTER) --registry=$(REGISTRY) | go run ./hack/pictures record docs/pictures/demo.txt
	go generate ./hack/pictures

.PHONY: former-release
former-release: $(CLUSTER_TOOL) ## Make the release at COMMIT the former one, from which tests upgrade.
	HELM="$$($(CLUSTER_TOOL) which helm)" hack/former.sh freeze $(COMMIT)

.PHONY: golden
golden: $(CLUSTER_TOOL) ## Rewrite golden files from the present behavior; read the diff before you commit.
	UPDATE_GOLDEN=1 HELM="$$($(CLUSTER_TOOL) which helm)" go test -count=1 ./cmd/... ./internal/... ./pkg/... ./test/arch/... ./test/chart/...
	UPDATE_GOLDEN=1 KUBEBUILDER_ASSETS="$$($(CLUSTER_TOOL) assets)" go test -count=1 -tags integration ./test/integration/kinds
	cd hack/cluster && UPDATE_GOLDEN=1 go test -count=1 ./internal/plan

.PHONY: verify
verify: ## Fail when generated files or module files are stale.
	hack/verify.sh

.PHONY: lint
lint: ## golangci-lint (import rules included), the linter for Kubernetes kinds, and the rule of words.
	$(TOOL) golangci-lint run --allow-parallel-runners ./...
	$(TOOL) golangci-lint run --allow-parallel-runners --build-tags failpoints ./cmd/assessor/... ./cmd/xds/...
	cd hack/cluster && go tool -modfile=../tools/go.mod golangci-lint run --allow-parallel-runners --config ../../.golangci.yml . ./image/... ./internal/...
	cd hack/release && go tool -modfile=../tools/go.mod golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...
	cd hack/alerts && go tool -modfile=../tools/go.mod golangci-lint run --allow-parallel-runners --config ../../.golangci.yml .
	go -C hack/tools/kal run . -C ../../.. ./pkg/apis/...
	go run ./hack/prose

.PHONY: fmt
fmt: ## Format the code.
	$(TOOL) golangci-lint fmt ./...

##@ Artefacts
.PHONY: binaries
binaries: ## Static binaries into bin/.
	go build -o bin/ ./cmd/... ./hack/images/shop
	ln -sf kubectl-plumbline bin/kubectl_complete-plumbline

.PHONY: images
images: $(CLUSTER_TOOL) binaries ## Image archives into bin/images, without Docker; pushed when REGISTRY is set.
	go run ./hack/demo images --registry=$(REGISTRY)

# What a release can be told: see docs/guides/release.md.
RELEASE_FLAGS = -version '$(VERSION)' -registry '$(REGISTRY)' $(if $(PLAIN_HTTP),-plain-http) $(if $(DIRTY),-dirty) $(if $(PIN),-pin-upstream) \
  $(if $(KEY),-key '$(abspath $(KEY))') $(if $(DOWNLOADS),-downloads '$(DOWNLOADS)') $(if $(BUILDER),-builder '$(BUILDER)')

.PHONY: release
release: $(CLUSTER_TOOL) ## A release in dist/VERSION: images, chart, plugin, SBOM; pushed when REGISTRY is set (PLAIN_HTTP=1 without TLS).
	helm="$$($(CLUSTER_TOOL) which helm)" && cd hack/release && go run . -root ../.. -dist $(CURDIR)/dist -helm "$$helm" $(RELEASE_FLAGS)

##@ Cluster
.PHONY: preflight
preflight: $(CLUSTER_TOOL) ## Say what this machine lacks for a cluster, before anything is built.
	@if [ "$(CLUSTER)" = local ]; then $(CLUSTER_TOOL) preflight; fi

.PHONY: cluster-up
cluster-up: preflight ## A cluster with one node; prints how to reach it.
	$(CLUSTER_TOOL) up --name demo

.PHONY: cluster-down
cluster-down: $(CLUSTER_TOOL) ## Remove it; nothing is left.
	$(CLUSTER_TOOL) down --name demo

$(CLUSTER_TOOL): $(shell find hack/cluster -name '*.go' -not -path '*/components/*' 2>/dev/null) hack/cluster/go.mod
	@mkdir -p bin
	cd hack/cluster && go build -o ../../bin/cluster .
