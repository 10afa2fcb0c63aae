// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"slices"
)

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
	// removals counts what the removal table took out.
	removals int
	values   int
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
	if err := p.parseMap(memberName{}, kindTypes[d.gvk], removalTrees[d.gvk], true); err != nil {
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

// parseValue pushes the value at the next position on the stack, under the key
// k when it is a map's member.
func (p *parser) parseValue(k memberName, typ typeID, tree *removalTree) error {
	c := p.next()
	if p.values++; p.values > MaxValues {
		return p.fail(p.pos, ReasonTooManyValues)
	}
	switch c {
	case '"':
		return p.parseString(k)
	case '{':
		return p.parseMap(k, typ, tree, false)
	case '[':
		return p.parseList(k, typ, tree)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.parseNumber(k)
	case 't':
		return p.parseLiteral(k, "true", Bool)
	case 'f':
		return p.parseLiteral(k, "false", Bool)
	case 'n':
		return p.parseLiteral(k, "null", Null)
	default:
		return p.unexpected(p.pos)
	}
}

// memberName is the key of a value that is a map's member; zero for others.
type memberName struct {
	start, end uint32
	flags      flags // keyDecoded, keyEscapes
}

// push puts a value on the stack. It writes field by field, which the slot's
// last user makes needful: a literal would be built elsewhere and copied in
// wider pieces than it was written in, for which the processor has to wait.
func (p *parser) push(k memberName, kind Kind, start, end uint32, f flags) *node {
	d := p.doc
	at := len(d.stack)
	if at == cap(d.stack) {
		d.stack = slices.Grow(d.stack, 1)
	}
	d.stack = d.stack[:at+1]
	n := &d.stack[at]
	n.keyStart, n.keyEnd = k.start, k.end
	n.start, n.end = start, end
	n.first, n.count, n.order = 0, 0, 0
	n.list, n.kind, n.mode, n.flags = 0, kind, Atomic, k.flags|f
	return n
}

func (p *parser) parseString(k memberName) error {
	s, err := p.scanString()
	if err != nil {
		return err
	}
	var f flags
	if s.decoded {
		f = textDecoded
		if s.escapes {
			f |= textEscapes
		}
	}
	p.push(k, String, s.start, s.end, f)
	return nil
}

func (p *parser) parseNumber(k memberName) error {
	start := p.pos
	if end := plainInteger(p.src, start); end > 0 {
		p.push(k, Number, uint32(start), uint32(end), 0)
		p.pos = end
		return nil
	}
	num, err := p.scanNumber()
	if err != nil {
		return err
	}
	if num.canonical() {
		p.push(k, Number, uint32(start), uint32(p.pos), 0)
		return nil
	}
	p.impure++
	d := p.doc
	mark := len(d.text)
	var ok bool
	if d.text, ok = num.appendCanonical(d.text); !ok {
		return p.fail(start, ReasonNumberRange)
	}
	p.push(k, Number, uint32(mark), uint32(len(d.text)), textDecoded)
	return nil
}

func (p *parser) parseLiteral(k memberName, word string, kind Kind) error {
	for i := range len(word) {
		if p.pos+i == len(p.src) || p.src[p.pos+i] != word[i] {
			return p.unexpected(p.pos + i)
		}
	}
	p.push(k, kind, uint32(p.pos), uint32(p.pos+len(word)), 0)
	p.pos += len(word)
	return nil
}

// opened is where a container began, and how things stood then.
type opened struct {
	start, base      int // its bracket in the source; its children on the stack
	impure, removals int
	text             int // length of Document.text
}

func (p *parser) open(o *opened) error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(p.pos, ReasonTooDeep)
	}
	o.start, o.base = p.pos, len(p.doc.stack)
	o.impure, o.removals, o.text = p.impure, p.removals, len(p.doc.text)
	p.pos++
	return nil
}

func (p *parser) parseMap(k memberName, typ typeID, tree *removalTree, top bool) error {
	var o opened
	if err := p.open(&o); err != nil {
		return err
	}
	sorted := true
	var before uint64 // prefix of the key before
	for c := p.next(); c != '}'; {
		if c != '"' {
			return p.unexpected(p.pos)
		}
		prefix, err := p.parseMember(typ, tree, top)
		if err != nil {
			return err
		}
		if sorted && prefix <= before {
			sorted = p.lastTwoSorted(o.base, prefix == before)
		}
		before = prefix
		if c = p.next(); c == ',' {
			p.pos++
			if c = p.next(); c == '}' {
				return p.unexpected(p.pos)
			}
		} else if c != '}' {
			return p.unexpected(p.pos)
		}
	}
	if !p.closeMap(k, &o, sorted, top) {
		return duplicateKey(p.src, o.start)
	}
	return nil
}

// lastTwoSorted tells whether the last member on the stack comes after the one
// before it, if there is one; alike says that their prefixes decide nothing.
func (p *parser) lastTwoSorted(base int, alike bool) bool {
	stack := p.doc.stack
	if len(stack) == base+1 {
		return true
	}
	return alike && bytes.Compare(p.doc.keyOf(&stack[len(stack)-2]), p.doc.keyOf(&stack[len(stack)-1])) < 0
}

// parseMember pushes one value under its key, and gives the key's prefix.
func (p *parser) parseMember(typ typeID, tree *removalTree, top bool) (prefix uint64, err error) {
	d := p.doc
	s, err := p.scanString()
	if err != nil {
		return 0, err
	}
	k := memberName{start: s.start, end: s.end}
	text := p.src
	if s.decoded {
		k.flags, text = keyDecoded, d.text
		if s.escapes {
			k.flags |= keyEscapes
		}
	}
	key := text[s.start:s.end:s.end]
	prefix = keyPrefixIn(text, s.start, s.end)
	if p.next() != ':' {
		return 0, p.unexpected(p.pos)
	}
	p.pos++
	var step *removalStep
	if tree != nil { // nearly everywhere there is none
		step = tree.find(key)
	}
	if typ != 0 {
		typ = memberType(typ, key)
	}
	if err := p.parseValue(k, typ, step.below()); err != nil {
		return 0, err
	}
	n := &d.stack[len(d.stack)-1]
	if top || step != nil || n.kind == Null && d.algorithm == PL1 {
		p.ignore(n, key, step, top)
	}
	return prefix, nil
}

// ignore marks a member that has no part in the hash.
func (p *parser) ignore(n *node, key []byte, step *removalStep, top bool) {
	switch {
	case top && isUncovered(key):
		n.flags |= uncovered
	case n.kind == Null && p.doc.algorithm == PL1:
		n.flags |= absentNull
	case step.takes(p.doc, n):
		n.flags |= removed
		p.removals++
	}
	if n.flags&ignored != 0 {
		p.impure++
	}
}

func isUncovered(key []byte) bool {
	switch string(key) {
	case "apiVersion", "kind", "metadata", "status":
		return true
	default:
		return false
	}
}

func (p *parser) parseList(k memberName, typ typeID, tree *removalTree) error {
	var o opened
	if err := p.open(&o); err != nil {
		return err
	}
	below := tree.find([]byte("*")).below()
	element := schemaTypes[typ].element
	for c := p.next(); c != ']'; {
		if err := p.parseValue(memberName{}, element, below); err != nil {
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
	p.closeList(k, &o, typ)
	return nil
}
