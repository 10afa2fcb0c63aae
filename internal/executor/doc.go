// SPDX-License-Identifier: Apache-2.0

// Package executor is the role execute of the assessor: it carries RemediationPlans
// out, and is the only part of Plumbline that writes guarded objects. It has a
// service account of its own, and runs alone.
package executor
