// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// escaped characters: the digit after ~ is the index.
const escaped = "~/*[],="

// String writes the path so that [ParsePath] reads it back.
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p.segments {
		b.WriteByte('/')
		s.write(&b)
	}
	return b.String()
}

// String writes the segment as it stands in a path.
func (s Segment) String() string {
	var b strings.Builder
	s.write(&b)
	return b.String()
}

func (s Segment) write(b *strings.Builder) {
	switch s.kind {
	case wildcard:
		b.WriteByte('*')
	case byKeys:
		for i, kv := range s.keys {
			b.WriteByte("[,"[min(i, 1)])
			writeEscaped(b, kv.Key, "~/],=")
			b.WriteByte('=')
			writeEscaped(b, kv.Value, "~/],")
		}
		b.WriteByte(']')
	case byName:
		switch {
		case s.name == "*":
			b.WriteString("~2")
		case strings.HasPrefix(s.name, "["):
			b.WriteString("~3")
			writeEscaped(b, s.name[1:], "~/")
		default:
			writeEscaped(b, s.name, "~/")
		}
	}
}

func writeEscaped(b *strings.Builder, text, special string) {
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) < 0 {
			b.WriteByte(text[i])
			continue
		}
		b.WriteByte('~')
		b.WriteByte('0' + byte(strings.IndexByte(escaped, text[i])))
	}
}

// ParsePath reads a path; see [Path] for the form. The empty string is the
// whole object.
func ParsePath(text string) (Path, error) {
	switch {
	case len(text) > MaxPathBytes:
		return Path{}, fmt.Errorf("parsing path %.40q…: longer than %d bytes", text, MaxPathBytes)
	case !utf8.ValidString(text):
		return Path{}, fmt.Errorf("parsing path %.80q: not UTF-8", text)
	case text == "":
		return Path{}, nil
	case text[0] != '/':
		return Path{}, fmt.Errorf("parsing path %.80q: must begin with /", text)
	}
	parts := strings.Split(text[1:], "/")
	if len(parts) > MaxPathSegments {
		return Path{}, fmt.Errorf("parsing path %.40q…: more than %d segments", text, MaxPathSegments)
	}
	p := Path{segments: make([]Segment, len(parts))}
	for i, part := range parts {
		s, err := parseSegment(part)
		if err != nil {
			return Path{}, fmt.Errorf("parsing path %.80q: segment %d: %w", text, i+1, err)
		}
		p.segments[i] = s
	}
	return p, nil
}

func parseSegment(part string) (Segment, error) {
	if part == "*" {
		return Any(), nil
	}
	if !strings.HasPrefix(part, "[") {
		name, err := unescapeSegment(part)
		return Field(name), err
	}
	if len(part) < 3 || !strings.HasSuffix(part, "]") {
		return Segment{}, fmt.Errorf("%q: want [key=value,…]", part)
	}
	s := Segment{kind: byKeys}
	for pair := range strings.SplitSeq(part[1:len(part)-1], ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return Segment{}, fmt.Errorf("%q: want key=value", pair)
		}
		kv := KeyValue{}
		var err error
		if kv.Key, err = unescapeSegment(key); err != nil {
			return Segment{}, err
		}
		if kv.Value, err = unescapeSegment(value); err != nil {
			return Segment{}, err
		}
		if len(s.keys) == maxListKeys {
			return Segment{}, fmt.Errorf("more than %d keys", maxListKeys)
		}
		s.keys = append(s.keys, kv)
	}
	return s, nil
}

func unescapeSegment(text string) (string, error) {
	if !strings.Contains(text, "~") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '~' {
			b.WriteByte(text[i])
			continue
		}
		i++
		if i == len(text) || text[i] < '0' || int(text[i]-'0') >= len(escaped) {
			return "", fmt.Errorf("%q: ~ must be followed by a digit from 0 to %d", text, len(escaped)-1)
		}
		b.WriteByte(escaped[text[i]-'0'])
	}
	return b.String(), nil
}

// MarshalText is String, so that paths stand in JSON as strings.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is [ParsePath].
func (p *Path) UnmarshalText(text []byte) error {
	parsed, err := ParsePath(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
