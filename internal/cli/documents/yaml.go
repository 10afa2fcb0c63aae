// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// readYAML converts each document of a YAML stream into JSON. Documents that
// are empty, or hold comments only, are left out.
//
// The conversion is kubectl's (YAML 1.1 scalars, merge keys, non-string keys
// become strings) with three differences, all on the strict side: duplicate
// keys are errors, decimals keep every digit instead of passing through
// float64, and tags beyond the JSON types are refused.
func readYAML(source string, data []byte) ([]Document, error) {
	if at := invalidUTF8(data); at >= 0 {
		return nil, &InputError{Source: source, Offset: at, Problem: "invalid UTF-8"}
	}
	places := newPlaces(data)
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var docs []Document
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, yamlSyntaxError(source, data, err)
		}
		content := root.Content[0]
		if isEmptyDocument(content) {
			continue
		}
		d, err := convertDocument(source, content, places)
		if err != nil {
			return nil, err
		}
		d.Number = len(docs) + 1
		docs = append(docs, d)
	}
}

func isEmptyDocument(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0
}

func convertDocument(source string, content *yaml.Node, places places) (Document, error) {
	d := Document{Source: source, Start: places.offset(content)}
	if resolveAlias(content).Kind != yaml.MappingNode {
		return d, &InputError{Source: source, Offset: d.Start, Problem: "the document is not an object"}
	}
	c := converter{source: source, places: places}
	if err := c.value(content, 1); err != nil {
		return d, err
	}
	d.Body = c.out
	d.Locate = func(offset int) int {
		// Only an error asks, so only an error pays for the marks.
		again := converter{source: source, places: places, marking: true}
		if err := again.value(content, 1); err != nil {
			return d.Start
		}
		i, exact := slices.BinarySearchFunc(again.marks, offset, func(m mark, at int) int { return m.output - at })
		if !exact {
			i--
		}
		return again.marks[max(0, i)].input
	}
	return d, nil
}

// yamlSyntaxError gives the byte at which the parser gave up. The parser itself
// tells a line at best, so it runs again over a reader that counts the
// bytes: it reads ahead no further than the token it needs, so the fault is at
// that byte or shortly before, on the same line or the one above.
func yamlSyntaxError(source string, data []byte, err error) error {
	counted := bytes.NewReader(data)
	decoder := yaml.NewDecoder(oneByteReader{counted})
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			break
		}
	}
	taken := len(data) - counted.Len()
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		// The line is often one too low; the offset says it better.
		if _, words, ok := strings.Cut(rest, ": "); ok {
			problem = words
		}
	}
	return &InputError{Source: source, Offset: max(0, taken-1), Problem: problem}
}

// oneByteReader hands out one byte at a time, so that its source knows how far
// the parser has read.
type oneByteReader struct{ source io.Reader }

func (r oneByteReader) Read(p []byte) (int, error) {
	return r.source.Read(p[:min(1, len(p))])
}

func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// places turns the line and column of a node into a byte offset.
type places struct {
	data  []byte
	lines []int // where each line begins
}

func newPlaces(data []byte) places {
	start := len(data) - len(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	p := places{data: data, lines: []int{start}}
	for at := start; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		at += size
		switch r {
		case '\r':
			if at < len(data) && data[at] == '\n' {
				at++
			}
			p.lines = append(p.lines, at)
		case '\n', '\u0085', '\u2028', '\u2029': // YAML 1.1 line breaks
			p.lines = append(p.lines, at)
		}
	}
	return p
}

func (p places) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(p.lines) {
		return len(p.data)
	}
	at := p.lines[n.Line-1]
	for range n.Column - 1 { // columns count characters
		_, size := utf8.DecodeRune(p.data[at:])
		at += size
	}
	return at
}

// mark says which input byte an output byte came from.
type mark struct{ output, input int }

// converter writes one YAML document as JSON.
type converter struct {
	source  string
	places  places
	out     []byte
	visited int
	marking bool
	marks   []mark
}

func (c *converter) errorf(n *yaml.Node, format string, args ...any) error {
	return &InputError{Source: c.source, Offset: c.places.offset(n), Problem: fmt.Sprintf(format, args...)}
}

// value appends n; depth counts containers as canon.MaxDepth does. Aliases are
// followed under bounds on depth, values and output: a few lines of aliases can
// stand for more than any machine holds.
func (c *converter) value(n *yaml.Node, depth int) error {
	n = resolveAlias(n)
	if err := c.visit(n); err != nil {
		return err
	}
	if c.marking {
		c.marks = append(c.marks, mark{output: len(c.out), input: c.places.offset(n)})
	}
	if n.Kind != yaml.ScalarNode && depth > canon.MaxDepth {
		return c.errorf(n, "nesting deeper than %d", canon.MaxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.ScalarNode:
		s, err := c.scalar(n)
		c.out = append(c.out, s.json()...)
		return err
	default:
		return c.errorf(n, "unexpected YAML node")
	}
}

func (c *converter) visit(n *yaml.Node) error {
	if c.visited++; c.visited > canon.MaxValues+1 {
		return c.errorf(n, "more than %d values", canon.MaxValues)
	}
	if len(c.out) > canon.MaxBodyBytes {
		return c.errorf(n, "document of more than %d bytes as JSON", canon.MaxBodyBytes)
	}
	return nil
}

func (c *converter) sequence(n *yaml.Node, depth int) error {
	if tagged(n) && n.ShortTag() != "!!seq" {
		return c.errorf(n, "the tag %s has no JSON form", n.Tag)
	}
	c.out = append(c.out, '[')
	for i, element := range n.Content {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.value(element, depth+1); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

func (c *converter) mapping(n *yaml.Node, depth int) error {
	if tagged(n) && n.ShortTag() != "!!map" {
		return c.errorf(n, "the tag %s has no JSON form", n.Tag)
	}
	members := memberSet{seen: map[string]bool{}}
	if err := c.collect(n, &members, nil, depth); err != nil {
		return err
	}
	c.out = append(c.out, '{')
	for i, m := range members.list {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = append(append(c.out, quote(m.key)...), ':')
		if err := c.value(m.value, depth+1); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	return nil
}

// memberSet holds the members of a mapping with its merged ones.
type memberSet struct {
	list []member
	seen map[string]bool
}

type member struct {
	key   string
	value *yaml.Node
}

// collect adds the members of n, then those it merges in ("<<"): a present member
// wins, and of several merged mappings the first. A merge that follows
// a key it repeats is refused: by the YAML specification the key wins, for
// kubectl the merge does. above holds the keys that such a merge follows.
func (c *converter) collect(n *yaml.Node, into *memberSet, above map[string]bool, depth int) error {
	if depth > canon.MaxDepth { // a mapping that merges itself
		return c.errorf(n, "nesting deeper than %d", canon.MaxDepth)
	}
	own := map[string]bool{}
	var merged *yaml.Node
	var aboveMerged map[string]bool
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode, value := n.Content[i], n.Content[i+1]
		key, err := c.key(keyNode)
		if err != nil {
			return err
		}
		switch {
		case own[key]:
			return c.errorf(keyNode, "duplicate key %q", key)
		case isMerge(keyNode):
			merged, aboveMerged = value, maps.Clone(own)
		case above[key]:
			return c.errorf(keyNode, "%q is merged in below a key of the same name, which not all readers take alike; put the merge key first", key)
		case !into.seen[key]:
			into.seen[key] = true
			into.list = append(into.list, member{key: key, value: value})
		}
		own[key] = true
	}
	if merged == nil {
		return nil
	}
	maps.Copy(aboveMerged, above)
	return c.merge(merged, into, aboveMerged, depth)
}

func (c *converter) merge(n *yaml.Node, into *memberSet, above map[string]bool, depth int) error {
	target := resolveAlias(n)
	if err := c.visit(target); err != nil {
		return err
	}
	sources := []*yaml.Node{target}
	if target.Kind == yaml.SequenceNode {
		sources = target.Content
	}
	for _, source := range sources {
		source = resolveAlias(source)
		if source.Kind != yaml.MappingNode {
			return c.errorf(n, "a merge key needs a mapping or a list of mappings")
		}
		if err := c.visit(source); err != nil {
			return err
		}
		if err := c.collect(source, into, above, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && n.ShortTag() == "!!merge"
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }
