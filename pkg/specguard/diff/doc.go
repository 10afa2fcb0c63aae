// SPDX-License-Identifier: Apache-2.0

// Package diff says which fields differ between two canonical documents, and
// carries a difference over to a third.
//
// [Compare] lists the changes from one [canon.Document] to another, exactly
// those that the pl1 hash sees: no changes if and only if the hashes are equal.
// [Apply] is the rule that a trusted write authorizes only the paths it
// changed: it takes the authorized body and the changes of one write, and gives
// the new authorized body. [Redact] and [Truncate] make a change fit to show,
// [TruncateText] the messages about it.
//
// Everything here is a pure function.
package diff
