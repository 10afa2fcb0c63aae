// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrMalformed says that a review is not the JSON that it should be.
var ErrMalformed = errors.New("malformed review")

// scanner walks over JSON without building anything. It finds where values
// begin and end and leaves their content unchecked: the two objects, nearly all
// of a review, are parsed only once, by the judge.
type scanner struct {
	b []byte
	i int
}

// maxEnvelopeDepth bounds the nesting that is skipped; the judge bounds that of the
// objects themselves.
const maxEnvelopeDepth = 1000

func (s *scanner) fail(what string) error {
	return fmt.Errorf("%w: %s at offset %d", ErrMalformed, what, s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek is the next byte that is no space; 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) expect(c byte) error {
	if s.peek() != c {
		return s.fail("expected " + string(rune(c)))
	}
	s.i++
	return nil
}

// members calls visit for every member of the object that begins here; visit
// has to consume the value. A key that comes twice is an error: two readers
// could otherwise see two different reviews.
func (s *scanner) members(visit func(key string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.i++
		return nil
	}
	var seen []string
	for {
		key, err := s.text()
		if err != nil {
			return err
		}
		if slices.Contains(seen, key) {
			return s.fail("duplicate key")
		}
		seen = append(seen, key)
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := visit(key); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return s.fail("expected , or }")
		}
	}
}

// text reads a string.
func (s *scanner) text() (string, error) {
	raw, err := s.raw()
	if err != nil {
		return "", err
	}
	if raw[0] != '"' {
		return "", s.fail("expected a string")
	}
	return unquote(raw)
}

func unquote(raw []byte) (string, error) {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && isPlain(inner) {
		return string(inner), nil
	}
	var out string
	if err := json.Unmarshal(raw, &out); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return out, nil
}

// isPlain says that a string needs no decoding at all: printable ASCII.
func isPlain(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c >= 0x80 {
			return false
		}
	}
	return true
}

// raw is the next value as it is written.
func (s *scanner) raw() ([]byte, error) {
	first := s.peek()
	start := s.i
	var err error
	switch first {
	case '{', '[':
		err = s.skipNested()
	case '"':
		err = s.skipString()
	case 0, ',', ':', '}', ']':
		err = s.fail("expected a value")
	default:
		s.skipScalar()
	}
	return s.b[start:s.i], err
}

// skipNested skips an object or array by counting brackets outside of strings.
func (s *scanner) skipNested() error {
	depth := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		case '{', '[':
			if depth++; depth > maxEnvelopeDepth {
				return s.fail("nested too deep")
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.i++
				return nil
			}
		}
		s.i++
	}
	return s.fail("unexpected end")
}

func (s *scanner) skipString() error {
	s.i++
	for s.i < len(s.b) {
		end := bytes.IndexByte(s.b[s.i:], '"')
		if end < 0 {
			break
		}
		escapes := 0
		for k := s.i + end - 1; k >= s.i && s.b[k] == '\\'; k-- {
			escapes++
		}
		s.i += end + 1
		if escapes%2 == 0 {
			return nil
		}
	}
	s.i = len(s.b)
	return s.fail("unexpected end")
}

func (s *scanner) skipScalar() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return
		}
		s.i++
	}
}
