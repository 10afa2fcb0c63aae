// SPDX-License-Identifier: Apache-2.0

// Package faults breaks, one by one, what Plumbline stands on, and checks what
// has to be true while it is broken and after it is whole again. An API server
// and a redis-server are real, webhook and assessor are the binaries as shipped,
// with the rights and policies of the chart.
//
// webhook_* are faults of the webhook and its certificates, redis_* those of
// Redis, api_* those of the API server, assessor_* those of the assessor. Each
// test is named after what has to be true. Faults that take long run with
// PLUMBLINE_FAULTS=long, which `make faults` sets.
package faults
