// SPDX-License-Identifier: Apache-2.0

// Package alerts tests what the chart ships for Prometheus and Grafana: the alert
// rules (with promtool, each firing and staying quiet), their runbook pages, and
// the dashboard. It is a module of its own, because it needs Prometheus' own
// parser and promtool, which bring more dependencies than the rest of the project.
//
// Which metrics exist is read from docs/reference/metrics.md, which other tests
// hold equal to the code.
package alerts
