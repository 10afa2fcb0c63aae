// SPDX-License-Identifier: Apache-2.0

// Package composite makes one router of several, each of which divides a part of the requests of a Service.
//
//	Apply ───▶ all parts at once
//	Observe ◀── the lowest sequence, the weakest knowledge, those out of sync, gone and counts together
//	Measure ◀── the cells of all parts, each after a cursor of its own
//
// So a split is in force when every part has it, and one part that is late, silent or wrong holds a release as a
// proxy of the mesh would. What each observation says together is a function without effects.
//
// A part that answers with an error is named among Unheard, and all that it knows is missing. The composite itself
// answers with an error only if no part answers.
//
// Adapter. It uses goroutines.
package composite
