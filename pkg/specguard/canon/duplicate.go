// SPDX-License-Identifier: Apache-2.0

package canon

// duplicateKey finds the first repeated key of the object that begins at start
// and is known to have one. It reads that object again, which only an error
// costs: a tree that kept the place of every key would cost every parse.
func duplicateKey(src []byte, start int) *SyntaxError {
	seen := map[string]struct{}{}
	d := &Document{src: src}
	p := parser{doc: d, src: src, pos: start + 1}
	for p.next() == '"' {
		offset := p.pos
		s, err := p.scanString()
		if err != nil {
			break
		}
		text := src
		if s.decoded {
			text = d.text
		}
		key := string(text[s.start:s.end])
		if _, repeated := seen[key]; repeated {
			return &SyntaxError{Offset: offset, Reason: ReasonDuplicateKey, Key: key}
		}
		seen[key] = struct{}{}
		p.next() // the colon
		p.pos++
		if p.parseValue(memberName{}, 0, nil) != nil {
			break
		}
		p.next() // the comma
		p.pos++
	}
	return &SyntaxError{Offset: start, Reason: ReasonDuplicateKey}
}
