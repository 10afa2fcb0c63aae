// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"crypto/sha256"
	"hash"
	"sync"
)

// encoder writes canonical bytes. With a digest it streams: the buffer is
// handed over whenever it has grown to flushBytes.
type encoder struct {
	doc    *Document
	mask   *mask
	buf    []byte
	digest hash.Hash
}

const flushBytes = 16 << 10

// encoders keeps buffers and digests; neither refers to a document.
var encoders = sync.Pool{New: func() any {
	return &encoder{buf: make([]byte, 0, 2*flushBytes), digest: sha256.New()}
}}

// hash digests the canonical bytes of v.
func (v Value) hash() Hash {
	e := encoders.Get().(*encoder)
	e.doc, e.mask = v.doc, v.mask
	e.digest.Reset()
	e.buf = e.buf[:0]
	e.value(v.index)
	e.digest.Write(e.buf) // never fails, by the contract of hash.Hash
	sum := e.digest.Sum(e.buf[:0])
	h := formatHash(prefixes[v.doc.algorithm], sum)
	e.doc, e.mask = nil, nil
	encoders.Put(e)
	return h
}

// AppendCanonical appends the canonical form of v, valid JSON, to dst; nothing
// when v is absent.
func (v Value) AppendCanonical(dst []byte) []byte {
	if v.doc == nil {
		return dst
	}
	e := encoder{doc: v.doc, mask: v.mask, buf: dst}
	e.value(v.index)
	return e.buf
}

func (e *encoder) value(i uint32) {
	n := &e.doc.nodes[i]
	switch n.kind {
	case String:
		e.string(e.doc.textOf(n), n.flags&textEscapes != 0)
	case Map, List:
		switch {
		case n.flags&verbatim != 0 && e.mask.clean(i):
			e.write(e.doc.src[n.start:n.end])
		case n.kind == Map:
			e.mapping(n)
		default:
			e.list(n)
		}
	case Null, Bool, Number:
		e.buf = append(e.buf, e.doc.textOf(n)...)
	case Absent: // no node has this kind
	}
}

func (e *encoder) mapping(n *node) {
	e.buf = append(e.buf, '{')
	first := true
	for i := n.first; i < n.first+n.count; i++ {
		child := &e.doc.nodes[i]
		if child.flags&ignored != 0 || e.mask.removed(i) {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.string(e.doc.keyOf(child), child.flags&keyEscapes != 0)
		e.buf = append(e.buf, ':')
		e.value(i)
		e.flush()
	}
	e.buf = append(e.buf, '}')
}

func (e *encoder) list(n *node) {
	e.buf = append(e.buf, '[')
	first := true
	for i := range n.count {
		at := e.doc.canonicalChild(n, i)
		if e.doc.nodes[at].flags&ignored != 0 || e.mask.removed(at) {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.value(at)
		e.flush()
	}
	e.buf = append(e.buf, ']')
}

func (e *encoder) string(text []byte, escapes bool) {
	e.buf = append(e.buf, '"')
	if escapes {
		e.buf = appendEscaped(e.buf, text)
	} else {
		e.buf = append(e.buf, text...)
	}
	e.buf = append(e.buf, '"')
}

// write takes source bytes, past the buffer when they are many.
func (e *encoder) write(src []byte) {
	if e.digest == nil || len(src) < flushBytes {
		e.buf = append(e.buf, src...)
		return
	}
	e.digest.Write(e.buf)
	e.buf = e.buf[:0]
	e.digest.Write(src)
}

func (e *encoder) flush() {
	if e.digest != nil && len(e.buf) >= flushBytes {
		e.digest.Write(e.buf)
		e.buf = e.buf[:0]
	}
}

const hexLower = "0123456789abcdef"

// appendEscaped writes the shortest escapes: two characters where RFC 8259 has
// such, \u00xx for other control characters, none for anything else.
func appendEscaped(dst, text []byte) []byte {
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexLower[c>>4], hexLower[c&15])
		}
	}
	return dst
}

// AppendString appends text as a canonical JSON string. Invalid UTF-8 is the
// caller's to avoid: canonical documents hold none.
func AppendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, []byte(text))
	return append(dst, '"')
}
