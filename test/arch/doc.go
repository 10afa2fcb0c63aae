// SPDX-License-Identifier: Apache-2.0

// Package arch tests the import rules of docs/reference/architecture.md by
// walking the real dependency graph, so that a rule also holds through
// packages in between, which a linter that reads one file at a time cannot see.
package arch
