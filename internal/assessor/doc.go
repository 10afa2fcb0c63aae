// SPDX-License-Identifier: Apache-2.0

// Package assessor wires the assessor's role "assess": the guards, the watches they
// ask for, the Baselines, Environments and GuardDefaults, under one leader lease.
//
// [Options] are the flags, [Run] is the process without its flags, so that tests
// run exactly what the binary runs.
package assessor
