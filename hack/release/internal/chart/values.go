// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SetScalars replaces scalar values of a YAML text, by their paths with dots, and leaves
// every other byte of it: the comments of values.yaml are its documentation.
func SetScalars(text []byte, values map[string]string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	for _, path := range slices.Sorted(maps.Keys(values)) {
		node := find(&document, strings.Split(path, "."))
		if node == nil || node.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("setting %s: the values have no scalar of that name", path)
		}
		line := &lines[node.Line-1]
		before, rest := (*line)[:node.Column-1], (*line)[node.Column-1:]
		written := node.Value
		if node.Style == yaml.DoubleQuotedStyle {
			written = strconv.Quote(node.Value)
		}
		after, found := strings.CutPrefix(rest, written)
		if !found || strings.Trim(after, " ") != "" && !strings.HasPrefix(strings.TrimLeft(after, " "), "#") {
			return nil, fmt.Errorf("setting %s: line %d is not a plain or a quoted scalar alone: %q", path, node.Line, *line)
		}
		*line = before + strconv.Quote(values[path]) + after
	}
	return []byte(strings.Join(lines, "\n")), nil
}

// Scalar reads one value, by its path with dots.
func Scalar(text []byte, path string) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return "", fmt.Errorf("reading the values: %w", err)
	}
	node := find(&document, strings.Split(path, "."))
	if node == nil || node.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("reading %s: the values have no scalar of that name", path)
	}
	return node.Value, nil
}

func find(node *yaml.Node, path []string) *yaml.Node {
	if node.Kind == yaml.DocumentNode {
		return find(node.Content[0], path)
	}
	if len(path) == 0 {
		return node
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == path[0] {
			return find(node.Content[i+1], path[1:])
		}
	}
	return nil
}
