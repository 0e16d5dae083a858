// Package deploycheck holds the tests of deploy/ and of docker-compose.yml, by the code of
// those who read them: Prometheus's parser and engine, the Kubernetes API's types and
// kustomize, Compose's loader, and our own binary. It is a module of its own, so that
// nothing of theirs is a dependency of the product.
//
//	names_test.go      every metric and label in a rule or panel is in docs/telemetry.md
//	rules_test.go      the rules parse, and each has its section in docs/operations.md
//	alerts_test.go     each alert fires on what it is for, and is quiet otherwise
//	dashboard_test.go  the dashboard's JSON, its layout, and its queries over a real scrape
//	commands_test.go   the runbook's commands are run
//	engine_test.go     series, queries
//	deploy_test.go     the product, built and running
//	manifests_test.go  the manifests are decoded strictly, as written and as rendered
//	relations_test.go  selectors, services, budgets, secrets name what is there
//	pods_test.go       each pod's command line, variables and mounts, given to the binary
//	probes_test.go     ports and probes are what is served, over TLS
//	storage_test.go    files are mounted, directories are writable, a writer's stands
//	compose_test.go    the same of the compose file
//	knobs_test.go      what the binary says is in force for a command line
//	faults_test.go     what a check found; mistakes that it has to find
//	*mistakes_test.go  those mistakes, a line each
//
// `make deploy-check` runs all of it; `make lint` runs what starts no service. What it does
// not do: draw a panel, or ask a cluster. What the API server checks beyond its types
// (names, enumerations, sums) is only looked at where a mistake was thinkable.
package deploycheck
