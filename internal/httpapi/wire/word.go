// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
)

// Word is a value of the enum T of a kind, as the API spells it. The empty word stands for an absent
// value.
type Word[T ~string] string

// Spell returns the word for a value of a kind. A value that the vocabulary of T lacks, such as one of
// a newer version, is spelled by the rule, so that it is shown and not lost.
func Spell[T ~string](value T) Word[T] {
	return Word[T](vocabularyOf(reflect.TypeFor[T]()).spell(string(value)))
}

// Value returns the value of the kind; empty for the empty word.
func (w Word[T]) Value() (T, error) {
	value, err := vocabularyOf(reflect.TypeFor[T]()).parse(string(w))
	return T(value), err
}

// Words returns the words of the enum T, in the order of the kind.
func Words[T ~string]() []string {
	var words []string
	for _, t := range vocabularyOf(reflect.TypeFor[T]()) {
		words = append(words, t.word)
	}
	return words
}

// UnmarshalText reads a word, and refuses all that the vocabulary of T lacks.
func (w *Word[T]) UnmarshalText(text []byte) error {
	if _, err := vocabularyOf(reflect.TypeFor[T]()).parse(string(text)); err != nil {
		return err
	}
	*w = Word[T](text)
	return nil
}

// Schema lists the words for OpenAPI.
func (Word[T]) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, t := range vocabularyOf(reflect.TypeFor[T]()) {
		s.Enum = append(s.Enum, t.word)
	}
	return s
}

func (w *Word[T]) spell(value string) { *w = Spell(T(value)) }

func (w *Word[T]) parse() (string, error) {
	value, err := w.Value()
	return string(value), err
}

// spelled is a [Word] of any enum.
type spelled interface {
	spell(value string)
	parse() (string, error)
}

// term is a value of a kind, and the word for it.
type term struct{ value, word string }

// vocabulary has the terms of one enum, in the order of the kind.
type vocabulary []term

// vocabularyOf panics for an enum without a vocabulary: each test that encodes the object finds that.
func vocabularyOf(t reflect.Type) vocabulary {
	v, ok := vocabularies[t]
	if !ok {
		panic("no vocabulary for " + t.String())
	}
	return v
}

// terms makes the vocabulary whose words follow the rule.
func terms(values ...string) (v vocabulary) {
	for _, value := range values {
		v = append(v, term{value, underscored(value)})
	}
	return v
}

// saying replaces the word of a value by that of a published design.
func (v vocabulary) saying(value, word string) vocabulary {
	for i := range v {
		if v[i].value == value {
			v[i].word = word
			return v
		}
	}
	panic("no value " + value)
}

func (v vocabulary) spell(value string) string {
	for _, t := range v {
		if t.value == value {
			return t.word
		}
	}
	return underscored(value)
}

func (v vocabulary) parse(word string) (string, error) {
	if word == "" {
		return "", nil
	}
	words := make([]string, len(v))
	for i, t := range v {
		if t.word == word {
			return t.value, nil
		}
		words[i] = t.word
	}
	return "", fmt.Errorf("%q is not one of %s", word, strings.Join(words, ", "))
}

// underscored spells AgeThreshold as age_threshold.
func underscored(value string) string {
	var b strings.Builder
	for i, r := range value {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
