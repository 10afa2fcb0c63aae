// SPDX-License-Identifier: Apache-2.0

// Package guard keeps guard objects in force.
//
// Its [Controller] compiles every SpecGuard and ClusterSpecGuard into one
// immutable snapshot, see package guards, starts
// and stops the watches that the snapshot needs, and tells the baseline
// controller when anything changed. A second controller, [Status], counts what
// each guard covers and writes its conditions. [Enforcement] tells of a guard of
// mode Deny, by proof, whether the API server refuses what it should.
//
// A guard that does not compile, or that names a kind the API server does not
// serve or that has no namespace, is inert as far as that goes and says so in
// its Stalled condition with the path of the field; the kinds that can be
// watched are.
package guard
