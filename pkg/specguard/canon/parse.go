// SPDX-License-Identifier: Apache-2.0

package canon

import "bytes"

// parser turns bytes into a Document in one pass. Children are collected on
// Document.stack and move to the arena, side by side, when their container
// closes.
type parser struct {
	doc   *Document
	src   []byte
	pos   int
	depth int
	// impure counts what makes source bytes differ from canonical ones. A
	// container during which it did not grow is canonical as written.
	impure int
	values int
}

// Parse reads one JSON object of at most [MaxBodyBytes]. The gvk chooses the
// list semantics and the removal table. The error is a [*SyntaxError].
func Parse(body []byte, gvk GVK) (*Document, error) {
	if len(body) > MaxBodyBytes {
		return nil, &SyntaxError{Offset: MaxBodyBytes, Reason: ReasonTooLarge}
	}
	d := documents.Get().(*Document)
	d.reset(body, gvk)
	p := parser{doc: d, src: body}
	if err := p.parseDocument(); err != nil {
		d.Release()
		return nil, err
	}
	return d, nil
}

func (p *parser) parseDocument() error {
	p.skipSpace()
	if p.pos == len(p.src) {
		return p.fail(p.pos, ReasonEmpty)
	}
	if p.src[p.pos] != '{' {
		return p.fail(p.pos, ReasonNotObject)
	}
	d := p.doc
	if err := p.parseMap(kindTypes[d.gvk], removalTrees[d.gvk], true); err != nil {
		return err
	}
	p.skipSpace()
	if p.pos != len(p.src) {
		return p.fail(p.pos, ReasonTrailingData)
	}
	d.root = uint32(len(d.nodes))
	d.nodes = append(d.nodes, d.stack[0])
	return nil
}

func (p *parser) fail(offset int, reason Reason) *SyntaxError {
	return &SyntaxError{Offset: offset, Reason: reason}
}

// unexpected is the error of a byte that does not fit, or of the end.
func (p *parser) unexpected(offset int) *SyntaxError {
	if offset >= len(p.src) {
		return p.fail(len(p.src), ReasonUnexpectedEnd)
	}
	return p.fail(offset, ReasonUnexpectedByte)
}

func (p *parser) skipSpace() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.impure++
			p.pos++
		default:
			return
		}
	}
}

// next skips white space and gives the byte there; 0, which is never valid
// outside a string, at the end.
func (p *parser) next() byte {
	if p.pos < len(p.src) && p.src[p.pos] > ' ' {
		return p.src[p.pos]
	}
	p.skipSpace()
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

// parseValue pushes the value at the next position on the stack.
func (p *parser) parseValue(typ typeID, tree *removalTree) error {
	c := p.next()
	if err := p.admit(); err != nil {
		return err
	}
	switch {
	case c == '"':
		return p.parseString()
	case c == '{':
		return p.parseMap(typ, tree, false)
	case c == '[':
		return p.parseList(typ, tree)
	case c == '-' || c >= '0' && c <= '9':
		return p.parseNumber()
	case c == 't':
		return p.parseLiteral("true", Bool)
	case c == 'f':
		return p.parseLiteral("false", Bool)
	case c == 'n':
		return p.parseLiteral("null", Null)
	default:
		return p.unexpected(p.pos)
	}
}

func (p *parser) push(n node) { p.doc.stack = append(p.doc.stack, n) }

// admit counts one more value; it is called with p.pos at its first byte.
func (p *parser) admit() error {
	if p.values++; p.values > MaxValues {
		return p.fail(p.pos, ReasonTooManyValues)
	}
	return nil
}

func (p *parser) parseString() error {
	s, err := p.scanString()
	if err != nil {
		return err
	}
	n := node{kind: String, start: s.start, end: s.end}
	if s.decoded {
		n.flags |= textDecoded
	}
	if s.escapes {
		n.flags |= textEscapes
	}
	p.push(n)
	return nil
}

func (p *parser) parseNumber() error {
	start := p.pos
	num, err := p.scanNumber()
	if err != nil {
		return err
	}
	if num.canonical() {
		p.push(node{kind: Number, start: uint32(start), end: uint32(p.pos)})
		return nil
	}
	p.impure++
	d := p.doc
	mark := len(d.text)
	var ok bool
	if d.text, ok = num.appendCanonical(d.text); !ok {
		return p.fail(start, ReasonNumberRange)
	}
	p.push(node{kind: Number, start: uint32(mark), end: uint32(len(d.text)), flags: textDecoded})
	return nil
}

func (p *parser) parseLiteral(word string, kind Kind) error {
	for i := range len(word) {
		if p.pos+i == len(p.src) || p.src[p.pos+i] != word[i] {
			return p.unexpected(p.pos + i)
		}
	}
	p.push(node{kind: kind, start: uint32(p.pos), end: uint32(p.pos + len(word))})
	p.pos += len(word)
	return nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(p.pos, ReasonTooDeep)
	}
	p.pos++
	return nil
}

func (p *parser) parseMap(typ typeID, tree *removalTree, top bool) error {
	start, impure, base := p.pos, p.impure, len(p.doc.stack)
	if err := p.enter(); err != nil {
		return err
	}
	sorted := true
	for c := p.next(); c != '}'; {
		if c != '"' {
			return p.unexpected(p.pos)
		}
		key, err := p.parseMember(typ, tree, top)
		if err != nil {
			return err
		}
		if n := len(p.doc.stack); sorted && n > base+1 {
			sorted = bytes.Compare(p.doc.keyOf(&p.doc.stack[n-2]), key) < 0
		}
		if c = p.next(); c == ',' {
			p.pos++
			if c = p.next(); c == '}' {
				return p.unexpected(p.pos)
			}
		} else if c != '}' {
			return p.unexpected(p.pos)
		}
	}
	p.pos++
	p.depth--
	n := p.closeContainer(Map, base, top)
	if !sorted {
		p.impure++
		if !p.doc.sortMembers(&n) {
			return duplicateKey(p.src, start)
		}
	}
	p.finish(&n, start, impure)
	p.push(n)
	return nil
}

// parseMember pushes one value, with its key.
func (p *parser) parseMember(typ typeID, tree *removalTree, top bool) (key []byte, err error) {
	d := p.doc
	s, err := p.scanString()
	if err != nil {
		return nil, err
	}
	key = p.src[s.start:s.end:s.end]
	if s.decoded {
		key = d.text[s.start:s.end:s.end]
	}
	if p.next() != ':' {
		return nil, p.unexpected(p.pos)
	}
	p.pos++
	step := tree.find(key)
	if err := p.parseValue(memberType(typ, key), step.below()); err != nil {
		return nil, err
	}
	n := &d.stack[len(d.stack)-1]
	n.keyStart, n.keyEnd = s.start, s.end
	if s.decoded {
		n.flags |= keyDecoded
	}
	if s.escapes {
		n.flags |= keyEscapes
	}
	switch {
	case top && isUncovered(key):
		n.flags |= uncovered
	case n.kind == Null:
		n.flags |= absentNull
	case step.takes(d, n):
		n.flags |= removed
	}
	if n.flags&ignored != 0 {
		p.impure++
	}
	return key, nil
}

func isUncovered(key []byte) bool {
	switch string(key) {
	case "apiVersion", "kind", "metadata", "status":
		return true
	default:
		return false
	}
}

func (p *parser) parseList(typ typeID, tree *removalTree) error {
	start, impure, base := p.pos, p.impure, len(p.doc.stack)
	if err := p.enter(); err != nil {
		return err
	}
	step := tree.find([]byte("*"))
	element := schemaTypes[typ].element
	for c := p.next(); c != ']'; {
		if err := p.parseValue(element, step.below()); err != nil {
			return err
		}
		if c = p.next(); c == ',' {
			p.pos++
			if c = p.next(); c == ']' {
				return p.unexpected(p.pos)
			}
		} else if c != ']' {
			return p.unexpected(p.pos)
		}
	}
	p.pos++
	p.depth--
	n := p.closeContainer(List, base, false)
	p.orderList(&n, typ)
	p.finish(&n, start, impure)
	p.push(n)
	return nil
}

// closeContainer moves the children above base to the arena. A container that
// the removal table emptied is removed itself.
func (p *parser) closeContainer(kind Kind, base int, top bool) node {
	d := p.doc
	n := node{kind: kind, first: uint32(len(d.nodes)), count: uint32(len(d.stack) - base)}
	var union flags
	remaining := 0
	for i := base; i < len(d.stack); i++ {
		union |= d.stack[i].flags
		if d.stack[i].flags&ignored == 0 {
			remaining++
		}
	}
	if union&removed != 0 && remaining == 0 && !top {
		n.flags |= removed
		p.impure++
	}
	d.nodes = append(d.nodes, d.stack[base:]...)
	d.stack = d.stack[:base]
	return n
}

func (p *parser) finish(n *node, start, impure int) {
	n.start, n.end = uint32(start), uint32(p.pos)
	if p.impure == impure {
		n.flags |= verbatim
	}
}
