// SPDX-License-Identifier: Apache-2.0

// Package remediate tests on a real API server how policies become plans: the
// assessor runs within the test, as its binary does. What becomes of a plan is
// tested beside the executor.
package remediate
