// SPDX-License-Identifier: Apache-2.0

// Package world has what a simulated remediation is about, and who takes part in
// it: a namespace with guarded Deployments that drifted, a policy, plans, the
// ledgers; two executors that both believe to be the only one; a controller that
// makes Deployments ready; people who pause, cancel and halt; writers who change
// the targets, put them back, delete them and make them anew; a Redis that answers
// anything.
//
// The executors are the real ones (pkg/remediate/exec and the controller of plans
// around it), over the simulated API server and scheduler beside this package.
//
//	report := world.Run(t, seed, world.Options{}) // within a bubble of testing/synctest
//
// [Judge] holds what was written against the promises: I1 to I13 about everything
// that was ever stored, L1 to L3 about how it ends. A [Mutant] is an executor with
// one of its protections taken out; the promises must catch each.
//
// One executor carries out one plan after the other, where the real one has four
// workers: within a process there is nothing to interleave but what the API server
// sees, and of that the other executor does as much.
package world
