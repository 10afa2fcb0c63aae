// SPDX-License-Identifier: Apache-2.0

// Package randomwrites has random requests of four users to ten kinds judged by an
// assessor on a real API server, beside Kubernetes' own controllers. A naive twin, which
// knows each author, predicts the authorised values and the state.
package randomwrites
