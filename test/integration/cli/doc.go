// SPDX-License-Identifier: Apache-2.0

// Package cli runs kubectl plumbline against a real API server: arguments
// through real discovery, Baselines and revisions that the tests write in the
// assessor's place, acceptance under real preconditions and watches, and the
// plugin and its completion called by a real kubectl.
package cli
