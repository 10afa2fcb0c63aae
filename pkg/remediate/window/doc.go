// SPDX-License-Identifier: Apache-2.0

// Package window says when a policy may act.
//
// [Parse] turns a [Spec], as a person wrote it, into a [Schedule], or says which
// field is wrong and how to write it. A Schedule has up to three parts, and all
// of those that are given must hold at once:
//
//   - a maintenance window, "02:00" to "06:00" in an IANA time zone;
//   - allowed days;
//   - allowed times, which narrow the window, or stand alone in UTC.
//
// [Schedule.At] answers for one moment: open or not, since when, until when,
// when it opens next, and why, in a sentence for people. [Schedule.Decide] also
// asks whether the clock may be trusted, and [Schedule.Remaining] says how long
// it stays open, so that a caller can leave out what would not fit.
//
// # One rule
//
// A moment is open when a clock on a wall of that zone shows a time inside. All
// else follows, and is in docs/reference/maintenance-window.md with examples:
//
//   - The start belongs to the window, the end does not.
//   - A start after the end crosses midnight, and the night belongs to the day
//     on which it began: the one from Friday 22:00 lasts into Saturday morning,
//     whether Saturday is allowed or not.
//   - Clocks put forward: a start or an end that the clock skips is the moment
//     after the gap. A window that lies in the gap does not open that night.
//   - Clocks put back: an hour that is shown twice is open both times or closed
//     both times. A window that ends in that hour opens twice.
//   - Bounds are instants and durations are real time: 02:00 to 06:00 lasts three
//     hours in the one night and five in the other.
//
// Everything here is a function from values to values. Time zones come from the
// [ZoneLoader] that the caller hands in; whether their rules are built into a
// program is for its main to say.
package window
