// SPDX-License-Identifier: Apache-2.0

package canon

import "fmt"

// Reason says why a body was refused. The set is closed; the strings are part
// of the published test vectors.
type Reason string

// The reasons, each with the place its offset points to.
const (
	// ReasonEmpty is an input of no bytes or of white space only; offset is its
	// length.
	ReasonEmpty Reason = "Empty"
	// ReasonTooLarge is an input of more than [MaxBodyBytes]; offset is that
	// limit.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonNotObject is a body whose outermost value is no object; offset is
	// the first byte of that value.
	ReasonNotObject Reason = "NotObject"
	// ReasonTooDeep is an object or array nested deeper than [MaxDepth]; offset
	// is its opening bracket.
	ReasonTooDeep Reason = "TooDeep"
	// ReasonTooManyValues is a body of more than [MaxValues] values below the
	// outermost object; offset is the first byte of the first one too many.
	ReasonTooManyValues Reason = "TooManyValues"
	// ReasonDuplicateKey is a key that the same object has already; offset is
	// the opening quote of the second occurrence.
	ReasonDuplicateKey Reason = "DuplicateKey"
	// ReasonUnexpectedEnd is an input that ends inside a value; offset is its
	// length.
	ReasonUnexpectedEnd Reason = "UnexpectedEnd"
	// ReasonUnexpectedByte is a byte that cannot stand where it does, by RFC
	// 8259; offset is that byte.
	ReasonUnexpectedByte Reason = "UnexpectedByte"
	// ReasonTrailingData is anything but white space after the object; offset
	// is its first byte.
	ReasonTrailingData Reason = "TrailingData"
	// ReasonControlCharacter is an unescaped byte below 0x20 in a string.
	ReasonControlCharacter Reason = "ControlCharacter"
	// ReasonInvalidEscape is a backslash followed by what is no escape of RFC
	// 8259; offset is the backslash.
	ReasonInvalidEscape Reason = "InvalidEscape"
	// ReasonLoneSurrogate is a \u escape of half a surrogate pair; offset is
	// its backslash.
	ReasonLoneSurrogate Reason = "LoneSurrogate"
	// ReasonInvalidUTF8 is a string with bytes that are not UTF-8; offset is
	// the first byte of the first such sequence.
	ReasonInvalidUTF8 Reason = "InvalidUTF8"
	// ReasonNumberRange is a number whose written exponent lies outside
	// ±[MaxExponent]; offset is the first byte of the number.
	ReasonNumberRange Reason = "NumberRange"
)

// SyntaxError is the error of [Parse] and of everything that parses.
type SyntaxError struct {
	// Offset counts bytes from the start of the body, from 0.
	Offset int
	// Reason is one of the constants above.
	Reason Reason
	// Key is the repeated key of ReasonDuplicateKey, else empty.
	Key string
}

// Error gives the reason in words, and the offset.
func (e *SyntaxError) Error() string {
	if e.Reason == ReasonDuplicateKey {
		return fmt.Sprintf("duplicate key %q at offset %d", e.Key, e.Offset)
	}
	return fmt.Sprintf("%s at offset %d", e.Reason.words(), e.Offset)
}

func (r Reason) words() string {
	switch r {
	case ReasonEmpty:
		return "empty input"
	case ReasonTooLarge:
		return fmt.Sprintf("input of more than %d bytes", MaxBodyBytes)
	case ReasonNotObject:
		return "not a JSON object"
	case ReasonTooDeep:
		return fmt.Sprintf("nesting deeper than %d", MaxDepth)
	case ReasonTooManyValues:
		return fmt.Sprintf("more than %d values", MaxValues)
	case ReasonDuplicateKey:
		return "duplicate key"
	case ReasonUnexpectedEnd:
		return "unexpected end of input"
	case ReasonUnexpectedByte:
		return "unexpected byte"
	case ReasonTrailingData:
		return "data after the object"
	case ReasonControlCharacter:
		return "unescaped control character in string"
	case ReasonInvalidEscape:
		return "invalid escape in string"
	case ReasonLoneSurrogate:
		return "lone surrogate in string"
	case ReasonInvalidUTF8:
		return "invalid UTF-8 in string"
	case ReasonNumberRange:
		return fmt.Sprintf("exponent outside ±%d", MaxExponent)
	default:
		return "invalid input (" + string(r) + ")"
	}
}
