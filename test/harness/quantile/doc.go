// SPDX-License-Identifier: Apache-2.0

// Package quantile says in a benchmark how long most of something took.
package quantile
