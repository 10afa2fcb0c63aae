// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// byteLanes has 1 in each byte of a word; times b it is b in each byte.
const (
	byteLanes = 0x0101010101010101
	highBits  = 0x80 * byteLanes
)

// specialBytes sets the high bit in the lanes of a word whose byte is a quote, a
// backslash, a control character, or not ASCII. The first term finds the quote
// with the control characters, since x^2 exchanges 0x22 and 0x20, and all bytes
// above 0xa3; the second the backslash, and all bytes from 0x80 on but 0xdc,
// which the first has. False ones come only by a borrow, above the first true
// one, so only the first counts.
func specialBytes(w uint64) uint64 {
	return (((w ^ 2*byteLanes) - 0x21*byteLanes) | ((w ^ '\\'*byteLanes) - byteLanes)) & highBits
}

// plainEnd is the index of the first byte at or after i that is not a plain
// one: a quote, a backslash, a control character, or not ASCII.
func plainEnd(src []byte, i int) int {
	rest := src[i:]
	for len(rest) >= 8 {
		if special := specialBytes(binary.LittleEndian.Uint64(rest)); special != 0 {
			return len(src) - len(rest) + bits.TrailingZeros64(special)/8
		}
		rest = rest[8:]
	}
	for len(rest) > 0 && isPlain(rest[0]) {
		rest = rest[1:]
	}
	return len(src) - len(rest)
}

func isPlain(c byte) bool { return c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' }

// scanned is a string: its decoded bytes, in the source or in Document.text.
type scanned struct {
	start, end       uint32
	decoded, escapes bool
}

// scanString reads a string whose opening quote is at p.pos.
func (p *parser) scanString() (scanned, error) {
	start := p.pos + 1
	i := start
	for {
		i = plainEnd(p.src, i)
		if i == len(p.src) {
			return scanned{}, p.fail(i, ReasonUnexpectedEnd)
		}
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			return scanned{start: uint32(start), end: uint32(i)}, nil
		case c == '\\':
			return p.scanEscaped(start, i)
		case c < 0x20:
			return scanned{}, p.fail(i, ReasonControlCharacter)
		default:
			r, size := utf8.DecodeRune(p.src[i:])
			if r == utf8.RuneError && size <= 1 {
				return scanned{}, p.fail(i, ReasonInvalidUTF8)
			}
			i += size
		}
	}
}

// scanEscaped goes on from the first backslash at i, decoding into
// Document.text.
func (p *parser) scanEscaped(start, i int) (scanned, error) {
	p.impure++ // the source is not canonical, or at least not known to be
	src, text := p.src, p.doc.text
	out := scanned{start: uint32(len(text)), decoded: true}
	text = append(text, src[start:i]...)
	for {
		text, i = appendPlain(text, src, i)
		if i == len(src) {
			return scanned{}, p.fail(i, ReasonUnexpectedEnd)
		}
		switch c := src[i]; {
		case c == '"':
			p.doc.text = text
			p.pos = i + 1
			out.end = uint32(len(text))
			return out, nil
		case c == '\\':
			r, next, reason := unescape(src, i)
			if reason != "" {
				return scanned{}, p.fail(next, reason)
			}
			out.escapes = out.escapes || r < 0x20 || r == '"' || r == '\\'
			text = utf8.AppendRune(text, r)
			i = next
		case c < 0x20:
			return scanned{}, p.fail(i, ReasonControlCharacter)
		default:
			r, size := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && size <= 1 {
				return scanned{}, p.fail(i, ReasonInvalidUTF8)
			}
			text = append(text, src[i:i+size]...)
			i += size
		}
	}
}

// appendPlain appends the plain bytes from i on, and gives where they end. Runs
// between escapes are short: words are copied whole, and what was too much of
// the last one is overwritten by what comes next.
func appendPlain(text, src []byte, i int) ([]byte, int) {
	for len(src)-i >= 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		special := specialBytes(w)
		run := bits.TrailingZeros64(special) / 8 // 8 for none
		text = binary.LittleEndian.AppendUint64(text, w)
		text = text[:len(text)-8+run]
		i += run
		if special != 0 {
			return text, i
		}
	}
	end := plainEnd(src, i)
	return append(text, src[i:end]...), end
}

// unescape decodes the escape that begins with the backslash at i. Next is the
// first byte after it; or, with a reason, the offset of what is wrong.
func unescape(src []byte, i int) (r rune, next int, reason Reason) {
	if i+1 == len(src) {
		return 0, len(src), ReasonUnexpectedEnd
	}
	switch c := src[i+1]; c {
	case '"', '\\', '/':
		return rune(c), i + 2, ""
	case 'b':
		return '\b', i + 2, ""
	case 'f':
		return '\f', i + 2, ""
	case 'n':
		return '\n', i + 2, ""
	case 'r':
		return '\r', i + 2, ""
	case 't':
		return '\t', i + 2, ""
	case 'u':
		return unescapeUnicode(src, i)
	default:
		return 0, i, ReasonInvalidEscape
	}
}

// unescapeUnicode decodes one \u escape, or two that are a surrogate pair.
func unescapeUnicode(src []byte, i int) (r rune, next int, reason Reason) {
	r, next, reason = hex4(src, i)
	if reason != "" || !utf16.IsSurrogate(r) {
		return r, next, reason
	}
	if next == len(src) {
		return 0, next, ReasonUnexpectedEnd
	}
	if !bytes.HasPrefix(src[next:], []byte(`\u`)) {
		return 0, i, ReasonLoneSurrogate
	}
	low, after, reason := hex4(src, next)
	if reason != "" {
		return 0, after, reason
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, i, ReasonLoneSurrogate
	}
	return r, after, ""
}

// hex4 reads the four digits after the \u at i.
func hex4(src []byte, i int) (r rune, next int, reason Reason) {
	for n := range 4 {
		if i+2+n >= len(src) {
			return 0, len(src), ReasonUnexpectedEnd
		}
		switch c := src[i+2+n]; {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, i, ReasonInvalidEscape
		}
	}
	return r, i + 6, ""
}
