# The linters have a module of their own, so that importers never see them.
TOOL := go tool -modfile=tools/go.mod
FUZZTIME ?= 10s

.PHONY: help fmt lint test race fuzz bench vuln api check

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

fmt: ## format everything
	gofmt -w .

lint: ## golangci-lint (the first run builds it)
	$(TOOL) golangci-lint run ./...

test: ## everything: format, vet, race, conformance, browser, API listing
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	go vet ./...
	@scripts/ensure-chromium.sh
	go test -race ./...

race: ## the concurrency tests again and again
	go test -race -count=5 -run 'Parallel|Race|Conformance|Pool|Queue' ./...

fuzz: ## each fuzz target for FUZZTIME
	@for target in $$(grep -ho 'func Fuzz[A-Za-z]*' *_test.go | cut -c6-); do go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) . || exit 1; done
	go test -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZTIME) ./internal/passhash

bench: ## costs side by side: verify, require, login, refresh, me
	go test -run '^$$' -bench . . ./memstore

vuln: ## known vulnerabilities; says so if the database cannot be reached
	@scripts/vuln.sh $(TOOL)

api: ## write api.txt, the listing of the exported API
	go test -run TestAPI . -update

check: test lint vuln ## what CI runs
