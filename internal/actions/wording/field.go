// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// bodies are the places of specs that a table leaves out, the longest first. A spec of pods is one of them.
var bodies = [][]string{
	{"spec", "jobTemplate", "spec", "template", "spec"}, {"spec", "jobTemplate", "spec"}, {"spec", "template", "spec"}, {"spec"},
}

// NameField shortens a path for a table, as in containers[app].image. A path that does not parse stays as it is.
func NameField(path string) string {
	parsed, err := canon.ParsePath(path)
	if err != nil || parsed.IsRoot() {
		return NamePath(path)
	}
	segments := parsed.Segments()
	for _, body := range bodies {
		if len(segments) > len(body) && slices.EqualFunc(segments[:len(body)], body, hasName) {
			segments = segments[len(body):]
			break
		}
	}
	return joinSegments(segments)
}

// NameLastField names the end of a path, with the list of a list element, as in containers[audit].
func NameLastField(path string) string {
	parsed, err := canon.ParsePath(path)
	if err != nil || parsed.IsRoot() {
		return NamePath(path)
	}
	segments := parsed.Segments()
	begin := len(segments) - 1
	for begin > 0 && strings.HasPrefix(writeSegment(segments[begin]), "[") {
		begin--
	}
	return joinSegments(segments[begin:])
}

func hasName(s canon.Segment, name string) bool { return s.Name() == name }

func joinSegments(segments []canon.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		text := writeSegment(s)
		if b.Len() > 0 && !strings.HasPrefix(text, "[") {
			b.WriteByte('.')
		}
		b.WriteString(text)
	}
	return b.String()
}

// writeSegment writes a member as its name, and an element, a position or a name with punctuation in brackets.
func writeSegment(s canon.Segment) string {
	if s.IsAny() {
		return "[*]"
	}
	if name := s.Name(); name != "" {
		if isIdentifier(name) {
			return name
		}
		return "[" + name + "]"
	}
	values := make([]string, 0, len(s.Keys()))
	for _, key := range s.Keys() {
		values = append(values, key.Value)
	}
	return "[" + strings.Join(values, ",") + "]"
}

// isIdentifier tells whether a name has letters and digits alone, and begins with a letter.
func isIdentifier(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return unicode.IsLetter(first) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// FormatValue gives a value of a finding: in full as JSON if wide, else cut to limit and a string without its quotes.
func FormatValue(value string, limit int, wide bool) string {
	if wide {
		return value
	}
	var text string
	if json.Unmarshal([]byte(value), &text) == nil && text != "" {
		value = text
	}
	return Shorten(value, limit)
}

// NameWriter names a user for a table: a service account by its namespace and name.
func NameWriter(user string) string {
	account, found := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, complete := strings.Cut(account, ":")
	if !found || !complete || name == "" || strings.ContainsAny(account, "/ ") {
		return NameActor(user)
	}
	return namespace + "/" + name + " (service account)"
}

// DescribeTrust tells whether the guards trust a writer, in one word.
func DescribeTrust(class v1alpha1.ActorClass) string {
	switch class {
	case v1alpha1.ActorTrusted:
		return "yes"
	case v1alpha1.ActorUntrusted:
		return "no"
	case v1alpha1.ActorExpected:
		return "expected"
	case v1alpha1.ActorSystem:
		return "system"
	case v1alpha1.ActorUnknown:
		return "unknown"
	}
	return "unknown"
}

// DescribeProof names the witness of a writer. A field manager proves no writer, since a client chooses it.
func DescribeProof(source v1alpha1.ActorSource) string {
	switch source {
	case v1alpha1.ActorSourceWriterStamp:
		return "API server"
	case v1alpha1.ActorSourceAdmission:
		return "webhook"
	case v1alpha1.ActorSourceManagedFields:
		return "field manager (not proof)"
	case v1alpha1.ActorSourceNone:
		return "no proof"
	}
	return "no proof"
}
