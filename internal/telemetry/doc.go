// SPDX-License-Identifier: Apache-2.0

// Package telemetry makes what a server shows of itself: the JSON logger, the
// metrics registry with build_info, and the servers for /metrics, /healthz and
// /readyz.
//
// Nothing here is global: NewLogger and NewRegistry return values that main
// passes on. Start with Health, which collects readiness checks by name, and
// Serve, which runs one HTTP server until its context ends.
package telemetry
