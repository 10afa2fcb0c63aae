// SPDX-License-Identifier: Apache-2.0

// Package disturbed changes what the executor works on or with: targets, the API server,
// clocks and records.
package disturbed
