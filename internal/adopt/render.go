// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// YAML is the proposed guard as a manifest that kubectl apply takes, with the
// reason beside each line that was added, and those to be decided about above.
func (r Report) YAML() ([]byte, error) {
	encoded, err := json.Marshal(r.Proposal.Guard)
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", r.Guard, err)
	}
	// JSON is YAML, and a node keeps the order of the API's fields.
	var document yaml.Node
	if err := yaml.Unmarshal(encoded, &document); err != nil {
		return nil, fmt.Errorf("printing %s: %w", r.Guard, err)
	}
	plain(&document)
	root := document.Content[0]
	if len(root.Content) >= 4 && root.Content[0].Value == "kind" { // as people write it
		root.Content[0], root.Content[1], root.Content[2], root.Content[3] = root.Content[2], root.Content[3], root.Content[0], root.Content[1]
	}
	root.Content[0].HeadComment = r.heading()
	annotate(member(root, "spec"), r.Proposal.Reasons)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("printing %s: %w", r.Guard, err)
	}
	return out.Bytes(), nil
}

// plain drops JSON's brackets and quotes; the encoder quotes what needs it.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}

// maxCommented bounds the writers that stand in the comment above a proposal.
const maxCommented = 20

func (r Report) heading() string {
	lines := []string{
		fmt.Sprintf("Proposed by kubectl plumbline adopt for %s,", plural.Of(r.Objects, "object")),
		fmt.Sprintf("from the writes until %s. Read each line before you apply it.", r.To.UTC().Format(time.RFC3339)),
	}
	if len(r.Undecided) > 0 {
		lines = append(lines, "", "To decide; not trusted as it stands:")
	}
	for i, u := range r.Undecided {
		if i == maxCommented {
			lines = append(lines, fmt.Sprintf("- and %d more", len(r.Undecided)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("- %s, %s%s: %s", u.Name(), plural.Of(u.Objects, "object"), lastTime(timeAt(u.Last)), u.Why))
	}
	return comment(lines...)
}

// Name of the writer: its user, or the managers that stand for it.
func (u Undecided) Name() string {
	if u.User != "" {
		return u.User
	}
	return "manager " + strings.Join(u.Managers, ", ")
}

// annotate puts each reason beside what it is about.
func annotate(spec *yaml.Node, reasons []Reason) {
	for _, reason := range reasons {
		switch reason.Field {
		case fieldAccounts:
			for _, item := range elements(member(member(spec, "trustedWriters"), "serviceAccounts")) {
				if scalar(item, "namespace")+"/"+scalar(item, "name") == reason.Value {
					item.HeadComment = comment(reason.Why)
				}
			}
		case fieldExpected:
			for _, item := range elements(member(spec, "expectedWriters")) {
				if scalar(item, "name") == reason.Value {
					item.HeadComment = comment(reason.Why)
				}
			}
		}
	}
	if mode := member(spec, "mode"); mode != nil && mode.Value == "Audit" {
		mode.LineComment = "# records, and sends no warnings; go on to Warn when the Baselines are quiet"
	}
}

// comment turns text, which may come from anybody, into lines of a comment.
func comment(lines ...string) string {
	safe := make([]string, len(lines))
	for i, line := range lines {
		line = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '\ufffd'
			}
			return r
		}, diff.TruncateText(line, 400))
		safe[i] = strings.TrimRight("# "+line, " ")
	}
	return strings.Join(safe, "\n")
}

func member(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func elements(n *yaml.Node) []*yaml.Node {
	if n == nil {
		return nil
	}
	return slices.Clone(n.Content)
}

func scalar(n *yaml.Node, name string) string {
	if m := member(n, name); m != nil {
		return m.Value
	}
	return ""
}
