// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"slices"
	"strings"
)

// Gap is what no rule of a tool covers.
type Gap struct {
	Object *Object
	// Pointers to what is missing.
	Pointers []string
}

// Gaps are all fields of objects, as for a tool without any rule.
func Gaps(objects []Object) []Gap {
	out := make([]Gap, len(objects))
	for i := range objects {
		out[i] = Gap{&objects[i], []string{objects[i].Parent}}
	}
	return out
}

// PasteArgoCD is YAML for spec of an Application that closes gaps; option adds
// the sync option.
func PasteArgoCD(gaps []Gap, option bool) string {
	var b strings.Builder
	if len(gaps) > 0 {
		b.WriteString("ignoreDifferences:\n")
	}
	for _, gap := range gaps {
		field := "- "
		write := func(key, value string) {
			fmt.Fprintf(&b, "%s%s: %s\n", field, key, value)
			field = "  "
		}
		if gap.Object.Group != "" {
			write("group", gap.Object.Group)
		}
		write("kind", gap.Object.Kind)
		write("name", gap.Object.Name)
		if path := gap.Object.path; path != "" && slices.Contains(gap.Pointers, gap.Object.Parent) {
			write("jqPathExpressions", "['"+path+"']")
		} else {
			write("jsonPointers", flow(gap.Pointers))
		}
	}
	if option {
		fmt.Fprintf(&b, "syncPolicy:\n  syncOptions: [%s]\n", RespectOption)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// PasteFlux is YAML for spec of an object of Flux that closes gaps.
func PasteFlux(kind FluxKind, gaps []Gap) string {
	var b strings.Builder
	indent := ""
	if kind == HelmRelease {
		b.WriteString("driftDetection:\n")
		indent = "  "
	}
	b.WriteString(indent + "ignore:\n")
	for _, gap := range gaps {
		fmt.Fprintf(&b, "%s- paths: %s\n%s  target: {kind: %s, name: %s}\n", indent, flow(gap.Pointers), indent, gap.Object.Kind, gap.Object.Name)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// flow writes pointers as a YAML list in one line; those here need no quotes.
func flow(pointers []string) string { return "[" + strings.Join(pointers, ", ") + "]" }
