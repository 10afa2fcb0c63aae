// SPDX-License-Identifier: Apache-2.0

// Package environment tells which Environment a namespace belongs to.
//
// [Assign] is the rule, a pure function: a namespace that several Environments
// pick belongs to the most critical of them, because of two opinions about how
// much something matters the wrong one must be the harmless one.
package environment
