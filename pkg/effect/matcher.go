// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/placeholder"
)

// Target is the workload that alerts and metrics are about.
type Target struct {
	Namespace, Kind, Name string
	// Pods are the names of its pods.
	Pods []string
}

// values of the placeholders of matchers. In a regular expression a dot of a name is a dot.
func (t *Target) values(o Operator) []placeholder.Value {
	values := []placeholder.Value{{Name: "namespace", Text: t.Namespace}, {Name: "kind", Text: t.Kind}, {Name: "name", Text: t.Name}}
	for i := range values {
		switch {
		case !placeholder.IsName(values[i].Text):
			values[i].Text = ""
		case o == Matches || o == NotMatches:
			values[i].Text = regexp.QuoteMeta(values[i].Text)
		}
	}
	return values
}

// Operator says how a matcher compares a label.
type Operator string

// The operators, of which the last two take a regular expression.
const (
	Equals     Operator = "Equals"
	NotEquals  Operator = "NotEquals"
	Matches    Operator = "Matches"
	NotMatches Operator = "NotMatches"
)

// sign of an operator in the syntax of Alertmanager; empty for an unknown one.
func (o Operator) sign() string {
	switch o {
	case Equals:
		return "="
	case NotEquals:
		return "!="
	case Matches:
		return "=~"
	case NotMatches:
		return "!~"
	}
	return ""
}

// Matcher selects alerts by a label. Its value can have the placeholders $(namespace), $(kind) and $(name).
type Matcher struct {
	Label    string
	Operator Operator
	Value    string
}

// DefaultMatchers select the alerts of the namespace, of which [Target.IsAbout] chooses.
var DefaultMatchers = []Matcher{{"namespace", Equals, "$(namespace)"}}

// FormatMatchers writes matchers in the syntax of Alertmanager, for a target. The error names the matcher
// that cannot be used.
func FormatMatchers(all []Matcher, t *Target) ([]string, error) {
	out := make([]string, 0, len(all))
	for i, m := range all {
		sign := m.Operator.sign()
		if sign == "" {
			return nil, fmt.Errorf("alerts.matchers[%d].operator: %q is no operator", i, m.Operator)
		}
		value, err := placeholder.Expand(m.Value, t.values(m.Operator))
		if err != nil {
			return nil, fmt.Errorf("alerts.matchers[%d].value: %w", i, err)
		}
		out = append(out, m.Label+sign+quote(value))
	}
	return out, nil
}

// quote writes a string of Alertmanager, whose parser knows these three escapes.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// IsAbout says that an alert of the target's namespace is about the target: a label names the workload, or
// one of its pods. The labels are those of kube-state-metrics and of the rules that come with it.
func (t *Target) IsAbout(labels map[string]string) bool {
	kind := strings.ToLower(t.Kind)
	switch pod := labels["pod"]; {
	case labels["namespace"] != t.Namespace:
		return false
	case labels[kind] == t.Name:
		return true
	case labels["workload"] == t.Name && (labels["workload_type"] == "" || labels["workload_type"] == kind):
		return true
	default:
		return pod != "" && slices.Contains(t.Pods, pod)
	}
}
