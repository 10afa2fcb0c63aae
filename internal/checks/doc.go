// SPDX-License-Identifier: Apache-2.0

// Package checks reads guarded objects past the watch: on schedule, and when a person
// asks for it. It judges nothing; a reconciliation of the Baseline takes what was read.
//
//	agenda.go     when each object is checked, and which checks go on
//	selection.go  which checks start now, as pkg/specguard/resync picks them
//	scheduler.go  starts them at a pace, and waits for the watch to come to what was read
//	live.go       reads one object from the API server
//	ahead.go      adds to the watch what a check has read and the watch does not have
//
// A reconciliation notes an [Appointment] on the [Agenda], finds the [Answer] of a check
// there, and ends the check once the answer is in the Baseline.
package checks
