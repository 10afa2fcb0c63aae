// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// naivePlainEnd looks at one byte after the other.
func naivePlainEnd(src []byte, i int) int {
	for i < len(src) && src[i] >= 0x20 && src[i] < 0x80 && src[i] != '"' && src[i] != '\\' {
		i++
	}
	return i
}

func TestEveryByteInEveryLaneIsPlainOrNot(t *testing.T) {
	for _, around := range []byte{'a', ' ', '!', '#', '[', ']', '~', 0x7f} {
		for lane := range 8 {
			for c := range 256 {
				word := bytes.Repeat([]byte{around}, 8)
				word[lane] = byte(c)
				got := specialBytes(binary.LittleEndian.Uint64(word)) == 0
				if want := naivePlainEnd(word, 0) == 8; got != want {
					t.Fatalf("%q: all plain is %v, want %v", word, got, want)
				}
			}
		}
	}
}

// drawStretch draws bytes that matter to the scanner, in stretches around the
// length of a word.
func drawStretch(t *rapid.T) []byte {
	piece := rapid.SampledFrom([]string{"a", "abcdefg", "abcdefgh", "0123456789abcdefg", `"`, `\`, `\"`, `\\`, "\x1f", "\x00", " ", "!", "#", "\x7f", "\x80", "\xa2", "\xdc", "\xff", "é", "😀"})
	return []byte(strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), ""))
}

func TestPlainEndEqualsTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawStretch(t)
		i := rapid.IntRange(0, len(src)).Draw(t, "from")
		want := naivePlainEnd(src, i)
		if got := plainEnd(src, i); got != want {
			t.Errorf("end is %d, want %d, in %q from %d", got, want, src, i)
		}
		before := []byte("before")
		text, end := appendPlain(slices.Clip(slices.Clone(before)), src, i)
		if end != want || string(text) != string(before)+string(src[i:want]) {
			t.Errorf("appended %q up to %d, want %q up to %d", text, end, src[i:want], want)
		}
	})
}

// FuzzString holds what a string is read as against encoding/json.
func FuzzString(f *testing.F) {
	for _, text := range []string{"", "plain", "a longer one of plain text", `\"quoted\" and \\`, `k:{\"name\":\"SETTING_0001\"}`, `\u00e9\ud83d\ude00é😀`, `\ud800`, "\x1f", "\xff", `\x`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		body := slices.Concat([]byte(`"`), content, []byte(`"`))
		d := &Document{src: body}
		p := parser{doc: d, src: body}
		s, err := p.scanString()
		var want string
		valid := json.Unmarshal(body, &want) == nil && utf8.Valid(content)
		if err != nil || p.pos != len(body) {
			if valid && !bytes.Contains(content, []byte(`\u`)) { // half a surrogate pair is valid there
				t.Fatalf("refused %q: %v", body, err)
			}
			return
		}
		if !valid {
			t.Fatalf("accepted %q", body)
		}
		text := body
		if s.decoded {
			text = d.text
		}
		if got := string(text[s.start:s.end]); got != want {
			t.Fatalf("%q was read as %q, want %q", body, got, want)
		}
		if escapes := strings.ContainsFunc(want, func(r rune) bool { return r < 0x20 || r == '"' || r == '\\' }); escapes != s.escapes {
			t.Fatalf("%q: escapes needed is %v, want %v", body, s.escapes, escapes)
		}
	})
}

func TestPrefixesOrderAsTheirKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"", "\x00", "a", "b", "abcdefg", "é", "\xff"})
		text := func(name string) string { return strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, name), "") }
		a, b, tail := text("a"), text("b"), text("tail")
		prefix := func(s string) uint64 { return keyPrefixIn([]byte("x"+s+tail), 1, uint32(1+len(s))) }
		if x, y := prefix(a), prefix(b); x != y && cmp.Compare(x, y) != cmp.Compare(a, b) {
			t.Errorf("prefixes %x and %x do not order as %q and %q", x, y, a, b)
		}
		if bare := keyPrefixIn([]byte(a), 0, uint32(len(a))); bare != prefix(a) {
			t.Errorf("the prefix of %q depends on what is around it: %x and %x", a, bare, prefix(a))
		}
	})
}

func TestPlainIntegersAreTheCanonicalOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringMatching(`-?(0|00|[1-9][0-9]{0,30})?(\.[0-9]{0,3})?([eE][-+]?[0-9]{0,2})?`).Draw(t, "number")
		src := []byte(literal + rapid.SampledFrom([]string{"", ",", "}", " ", "x"}).Draw(t, "after"))
		if len(src) == 0 {
			return
		}
		p := parser{src: src, doc: &Document{src: src}}
		num, err := p.scanNumber()
		end := plainInteger(src, 0)
		if end == 0 {
			return // the long way
		}
		if err != nil || end != p.pos || !num.canonical() {
			t.Errorf("%q counts as plain up to %d; scanned up to %d with %v", src, end, p.pos, err)
		}
	})
}
