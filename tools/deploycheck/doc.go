// Package deploycheck holds the tests of deploy/prometheus and deploy/grafana, with
// Prometheus's own parser and engine. It is a module of its own, so that nothing of
// Prometheus is a dependency of the product.
//
//	names_test.go      every metric and label in a rule or panel is in docs/telemetry.md
//	rules_test.go      the rules parse, and each has its section in docs/operations.md
//	alerts_test.go     each alert fires on what it is for, and is quiet otherwise
//	dashboard_test.go  the dashboard's JSON, its layout, and its queries over a real scrape
//	commands_test.go   the runbook's commands are run
//	engine_test.go     series, queries
//
// Run it with `make deploy-check`. What it does not do: draw.
package deploycheck
