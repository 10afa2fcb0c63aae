// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
)

// WaitingWidth is the number of characters that a table shows of a cause of waiting without -o wide.
const WaitingWidth = 60

// FormatHash gives a hash, shortened unless wide.
func FormatHash(hash string, wide bool) string {
	if wide {
		return hash
	}
	return actions.ShortenHash(hash)
}

// ListActors names users; <unknown> where there is none.
func ListActors(actors []string) string {
	if len(actors) == 0 {
		return NameActor("")
	}
	return strings.Join(actors, ", ")
}

// AppendReason appends a reason to a text, if there is one.
func AppendReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// NameActor names a user; <unknown> where none is recorded.
func NameActor(user string) string {
	if user == "" {
		return "<unknown>"
	}
	return user
}

// NamePath names a path in an object; the empty path is the object itself.
func NamePath(path string) string {
	if path == "" {
		return "(object)"
	}
	return path
}
