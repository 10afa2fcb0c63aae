// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a real Prometheus and a real Alertmanager in tests: those of `bin/cluster which
// prometheus` and of `bin/cluster which alertmanager`. A server keeps its data and its address while the
// test stops it and starts it again.
package monitoring
