// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"slices"
	"strconv"
)

// plainDigits is how many digits a number may have before its point and still
// be written without an exponent; that of ECMAScript's Number::toString, so
// that usual numbers look as people expect.
// Likewise plainZeros: from 1e-6 on there is no exponent either.
const (
	plainDigits = 21
	plainZeros  = 6
)

// number is a literal split by the grammar of RFC 8259.
type number struct {
	negative           bool
	integer, fraction  []byte
	exponent           []byte // digits only
	negativeExponent   bool
	hasPoint, hasPower bool
}

// scanNumber reads the number at p.pos.
func (p *parser) scanNumber() (number, error) {
	var n number
	i := p.pos
	if p.src[i] == '-' {
		n.negative = true
		i++
	}
	start := i
	i = digitsEnd(p.src, i)
	n.integer = p.src[start:i]
	if len(n.integer) == 0 {
		return n, p.unexpected(i)
	}
	if n.integer[0] == '0' && len(n.integer) > 1 {
		return n, p.unexpected(start + 1)
	}
	if i < len(p.src) && p.src[i] == '.' {
		n.hasPoint = true
		start = i + 1
		i = digitsEnd(p.src, start)
		if n.fraction = p.src[start:i]; len(n.fraction) == 0 {
			return n, p.unexpected(i)
		}
	}
	if i < len(p.src) && (p.src[i] == 'e' || p.src[i] == 'E') {
		n.hasPower = true
		i++
		if i < len(p.src) && (p.src[i] == '-' || p.src[i] == '+') {
			n.negativeExponent = p.src[i] == '-'
			i++
		}
		start = i
		i = digitsEnd(p.src, start)
		if n.exponent = p.src[start:i]; len(n.exponent) == 0 {
			return n, p.unexpected(i)
		}
	}
	p.pos = i
	return n, nil
}

func digitsEnd(src []byte, i int) int {
	for i < len(src) && src[i] >= '0' && src[i] <= '9' {
		i++
	}
	return i
}

// plainInteger is the end of the number at i when it is what nearly all numbers
// are, an integer of moderate size that is canonical as written; else 0.
func plainInteger(src []byte, i int) int {
	if src[i] == '-' {
		i++
	}
	end := digitsEnd(src, i)
	switch {
	case end == i || end > i+plainDigits || src[i] == '0':
		return 0
	case end < len(src) && (src[end] == '.' || src[end] == 'e' || src[end] == 'E'):
		return 0
	default:
		return end
	}
}

// canonical tells whether the literal is canonical as written: the usual case,
// a plain integer of moderate size.
func (n *number) canonical() bool {
	return !n.hasPoint && !n.hasPower && len(n.integer) <= plainDigits &&
		(!n.negative || n.integer[0] != '0')
}

// appendCanonical appends the canonical text; ok is false when the written
// exponent is out of range. Memory is bounded by the literal, never by the
// magnitude of the number.
func (n *number) appendCanonical(dst []byte) (out []byte, ok bool) {
	exponent, ok := n.power()
	if !ok {
		return dst, false
	}
	exponent -= len(n.fraction)
	mark := len(dst)
	dst = append(dst, n.integer...)
	dst = append(dst, n.fraction...)
	digits := bytes.TrimLeft(dst[mark:], "0")
	exponent += len(digits)
	digits = bytes.TrimRight(digits, "0")
	exponent -= len(digits)
	if len(digits) == 0 {
		return append(dst[:mark], '0'), true
	}
	text := layout(digits, exponent)
	dst = dst[:mark]
	if n.negative {
		dst = append(dst, '-')
	}
	return append(dst, text...), true
}

func (n *number) power() (int, bool) {
	digits := bytes.TrimLeft(n.exponent, "0")
	if len(digits) > len(strconv.Itoa(MaxExponent)) {
		return 0, false
	}
	e := 0
	for _, c := range digits {
		e = e*10 + int(c-'0')
	}
	if n.negativeExponent {
		e = -e
	}
	return e, true
}

// layout writes digits × 10^exponent, where digits neither begins nor ends with
// a zero.
func layout(digits []byte, exponent int) []byte {
	point := len(digits) + exponent // digits before the decimal point
	switch {
	case exponent >= 0 && point <= plainDigits:
		return slices.Concat(digits, zeros(exponent))
	case exponent < 0 && point > 0 && point <= plainDigits:
		return slices.Concat(digits[:point], []byte{'.'}, digits[point:])
	case exponent < 0 && point <= 0 && point > -plainZeros:
		return slices.Concat([]byte("0."), zeros(-point), digits)
	default:
		return strconv.AppendInt(append(bytes.Clone(digits), 'e'), int64(exponent), 10)
	}
}

func zeros(n int) []byte { return bytes.Repeat([]byte{'0'}, n) }
