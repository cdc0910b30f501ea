# The linters have a module of their own, so that importers never see them.
TOOL := go tool -modfile=tools/go.mod
FUZZTIME ?= 10s
PG_VERSIONS ?= 14 15 16 17 18

# Requests one after the other, compared with golden files; stores with faults, which the
# suite has to notice; pure functions, called for every code point: the race detector has
# nothing to find there, and these tests would take most of the time.
STEPWISE := Test(Ledger|Transcript|Traces|SuiteBites|[A-Za-z]+WrittenDown|WhatIsDecided|KeysOfAllCodePoints|CaseVariantsShareTheKey)

# Hashes, pictures and compression share nothing, and SQLite is C translated to Go, each
# connection with a memory of its own: they take much of the race detector's time, so they
# are compiled without it.
PURE := golang.org/x/crypto/... github.com/skip2/go-qrcode/... image/... compress/... github.com/ncruces/...
RACE := -race $(PURE:%=-gcflags=%=-race=false)

# The packages that take longest start first, so that none runs alone at the end. The go
# command runs each package once, in this order, and ./... after it names them all.
LONGEST := ./pgstore ./admin ./internal/tests/hostile ./dashboard ./pages ./internal/tests/takeover ./internal/tests/signin

.PHONY: help fmt vet lint test test-all test-pg-versions test-peers test-faults test-clients passkey-names race mutants fuzz bench bench-pg bench-growth vuln api check

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

fmt: ## format everything
	gofmt -w .

vet: ## go vet
	go vet ./... # so that the tests need no vet of their own (-vet=off)

lint: ## golangci-lint (the first run builds it), and whether it builds where an int has 32 bits
	GOOS=linux GOARCH=386 go build ./...
	cd tools/mutants && go vet ./...
	$(TOOL) golangci-lint run ./...

test: ## everything: format, vet, race, conformance, Postgres, browser, API listing, documents
	@scripts/ensure-chromium.sh
	@scripts/ensure-nginx.sh
	@scripts/ensure-axe.sh
	@scripts/ensure-postgres.sh
	@unformatted=$$(git ls-files -z "*.go" | xargs -0 gofmt -l) || exit 1; if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	go vet ./... # so that the tests need no vet of their own (-vet=off)
	GOGC=$${GOGC:-400} go test $(RACE) -vet=off -timeout 45m -skip '^$(STEPWISE)' $(LONGEST) ./...
	@dirs=$$(git grep -lE 'func $(STEPWISE)' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|'); [ -n "$$dirs" ] || exit 1; \
		echo go test -run "'^$(STEPWISE)'" $$dirs; GOGC=$${GOGC:-400} go test -vet=off -timeout 45m -run '^$(STEPWISE)' $$dirs
	cd examples/web && go vet ./... && go test $(RACE) ./...
	cd examples/metrics && go vet ./... && go test ./...

test-all: ## what `make test` draws a sample of, on both stores, and the races on 16 processors
	@scripts/ensure-postgres.sh
	go test -count=1 -timeout 30m -run '^(TestHostile|TestTakeoverClass)' ./internal/tests/hostile ./internal/tests/takeover -all
	AUTH_TEST_STORE=postgres go test -count=1 -timeout 30m -run '^(TestHostile|TestTakeoverClass)' ./internal/tests/hostile ./internal/tests/takeover -all
	go test -count=1 -timeout 30m -run Outages ./internal/tests/traces -all
	go test -count=1 -timeout 30m -run AtStricterIsolation ./pgstore -all
	GOMAXPROCS=16 go test $(RACE) -vet=off -count=1 -timeout 30m -run 'Parallel|Race|Conformance|Pool|Queue' ./...

test-pg-versions: ## pgstore on each version of Postgres; PG_VERSIONS="14 18" narrows it
	@for v in $(PG_VERSIONS); do scripts/ensure-postgres-versions.sh $$v >/dev/null || exit 1; done
	@failed=; for v in $(PG_VERSIONS); do \
		bin=$$(scripts/ensure-postgres-versions.sh $$v) || exit 1; \
		AUTH_TEST_DATABASE_URL= AUTH_TEST_POSTGRES_BIN=$$bin go test -count=1 -timeout 30m ./pgstore || failed="$$failed $$v"; \
	done; if [ -n "$$failed" ]; then echo "tests failed on Postgres$$failed" >&2; exit 1; fi

test-clients: ## the npm package: types, sizes, scenarios, Node, and applications built from it in browsers
	@clients/js/scripts/test-clients.sh

test-peers: ## sign in through a real OpenID provider, in a browser
	@scripts/ensure-chromium.sh
	@scripts/ensure-peers.sh
	go vet -tags peers ./internal/peertest
	go test -tags peers -count=1 ./internal/peertest

test-faults: ## kill servers, databases, primaries, disks, under load
	@scripts/ensure-postgres.sh
	@scripts/ensure-pgbouncer.sh
	go vet -tags faults ./bench/chaos
	go test -tags faults -count=1 -timeout 20m ./bench/chaos

passkey-names: ## refresh the product names of authenticators, from the community's list and the FIDO metadata
	curl -fsSL https://raw.githubusercontent.com/passkeydeveloper/passkey-authenticator-aaguids/main/combined_aaguid.json | jq -S 'map_values(.name)' > passkey/names.json

race: ## the concurrency tests again and again
	go test $(RACE) -count=5 -run 'Parallel|Race|Conformance|Pool|Queue' ./...

mutants: ## change the code in 150 small ways, and list the changes that no test notices; SEED=n repeats a sample, ONLY=regexp narrows it
	@scripts/ensure-postgres.sh && scripts/ensure-axe.sh
	go run -C tools/mutants . $(if $(SEED),-seed $(SEED)) $(if $(N),-n $(N)) $(if $(ONLY),-only '$(ONLY)')

fuzz: ## each fuzz target for FUZZTIME
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file target; do \
		go test -run '^$$' -fuzz "^$${target#func }$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
	done

bench: ## costs side by side: verify, require, login, refresh, me
	go test -run '^$$' -bench . . ./memstore

bench-pg: ## on Postgres, beside floors: login, sign-up, me, refresh (bench/README.md)
	@scripts/ensure-postgres.sh
	go run ./bench

bench-growth: ## what 1,000, 100,000 and 1,000,000 users cost, plans included
	@scripts/ensure-postgres.sh
	go run ./bench -growth

vuln: ## known vulnerabilities; says so if the database cannot be reached
	@scripts/vuln.sh $(TOOL)

api: ## write api.txt, the listing of the exported API
	go test -run '^TestAPI$$' . -update

check: test test-peers test-faults test-all test-clients lint vuln ## what CI runs
