// SPDX-License-Identifier: Apache-2.0

// Package randomwrites has random requests of four users to eleven kinds judged by an
// assessor on a real API server, beside Kubernetes' own controllers. A naive twin, which
// knows each author, predicts the authorized values, the state, and the findings with their
// authors.
package randomwrites
