// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// CommandName is how people call the plugin.
const CommandName = "kubectl plumbline"

// FormatHash gives a hash, shortened unless wide.
func FormatHash(hash string, wide bool) string {
	if wide {
		return hash
	}
	return actions.ShortenHash(hash)
}

// ListActors names users; [Unknown] without a user.
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

// Unknown stands for an unknown value.
const Unknown = "<unknown>"

// NameActor names a user; [Unknown] without a recorded one.
func NameActor(user string) string { return cmp.Or(user, Unknown) }

// NamePath names a path in an object; the empty path is the object itself.
func NamePath(path string) string {
	if path == "" {
		return "(object)"
	}
	return path
}

// NameAuthor names the user that authorized a state, and the run that did so in the name of the user.
func NameAuthor(by string, release *v1alpha1.AuthorizedRelease) string {
	if release == nil {
		return NameActor(by)
	}
	return fmt.Sprintf("%s by release %s, run %d", NameActor(by), release.Name, release.Run)
}

// Shorten cuts text to limit characters, for table cells.
func Shorten(text string, limit int) string {
	runes := []rune(diff.Printable(text))
	if len(runes) <= limit {
		return string(runes)
	}
	return string(runes[:limit-1]) + "…"
}
