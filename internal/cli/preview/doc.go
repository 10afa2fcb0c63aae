// SPDX-License-Identifier: Apache-2.0

// Package preview prints the plans that a policy would make now, with the dry runs of their
// writes: for "plan preview" and for "remediate --dry-run".
//
// internal/actions/preview decides, with the rights of the user.
package preview
