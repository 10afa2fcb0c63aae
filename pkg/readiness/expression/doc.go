// SPDX-License-Identifier: Apache-2.0

// Package expression evaluates the readiness rules of GuardDefaults, which are CEL
// expressions about one object.
//
// The environment is that of the standard library with optional types and no clock, so a
// rule has one answer for one object. [Compile] finds at write time what can be found
// then. An evaluation has the cost limit that the API server gives one expression of an
// admission policy.
package expression
