// SPDX-License-Identifier: Apache-2.0

// Package placeholder replaces placeholders such as $(namespace) in queries and matchers by names.
package placeholder

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// Value is what a placeholder stands for.
type Value struct {
	// Name of the placeholder, without $( and ).
	Name string
	Text string
}

// IsName says that a text has the form of names of Kubernetes: no character of it means anything in a string
// of PromQL.
var IsName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$`).MatchString

// maxQuoted bounds what an error shows of an unknown placeholder, in bytes.
const maxQuoted = 63

// Expand replaces the placeholders of a text. The error names a placeholder that is unknown or not closed,
// or that stands for no text.
func Expand(text string, values []Value) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$(")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, ")")
		if !closed {
			return "", errors.New("a placeholder $( is not closed")
		}
		value, err := find(name, values)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

func find(name string, values []Value) (string, error) {
	known := make([]string, len(values))
	for i, v := range values {
		if v.Name == name {
			if v.Text == "" {
				return "", fmt.Errorf("the value of $(%s) is not a name", name)
			}
			return v.Text, nil
		}
		known[i] = "$(" + v.Name + ")"
	}
	last := len(known) - 1
	return "", fmt.Errorf("unknown placeholder $(%s): there are %s and %s", printable.Line(name, maxQuoted), strings.Join(known[:last], ", "), known[last])
}
