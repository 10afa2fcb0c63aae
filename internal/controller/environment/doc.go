// SPDX-License-Identifier: Apache-2.0

// Package environment tells which Environment a namespace belongs to and keeps
// the status of Environments.
//
// [Assign] is the rule, a pure function: a namespace that several Environments
// pick belongs to the most critical of them, because of two opinions about how
// much something matters the wrong one must be the harmless one. The others say
// so in their Overlaps condition.
package environment
