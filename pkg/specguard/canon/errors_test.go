// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// invalid bodies are also published as test vectors.
var invalidBodies = map[string]struct {
	body   string
	reason canon.Reason
	offset int
}{
	"no bytes":                        {"", canon.ReasonEmpty, 0},
	"white space only":                {" \n\t", canon.ReasonEmpty, 3},
	"a byte order mark":               {"\ufeff{}", canon.ReasonNotObject, 0},
	"a list":                          {" []", canon.ReasonNotObject, 1},
	"a number":                        {"1", canon.ReasonNotObject, 0},
	"null":                            {"null", canon.ReasonNotObject, 0},
	"a second object":                 {"{} {}", canon.ReasonTrailingData, 3},
	"a closing bracket too many":      {"{}}", canon.ReasonTrailingData, 2},
	"an unfinished object":            {`{"a":1`, canon.ReasonUnexpectedEnd, 6},
	"an unfinished key":               {`{"a`, canon.ReasonUnexpectedEnd, 3},
	"an unfinished literal":           {`{"a":tru`, canon.ReasonUnexpectedEnd, 8},
	"an unfinished escape":            {`{"a":"\`, canon.ReasonUnexpectedEnd, 7},
	"an unfinished unicode escape":    {`{"a":"\u00`, canon.ReasonUnexpectedEnd, 10},
	"an unfinished surrogate pair":    {`{"a":"\ud83d`, canon.ReasonUnexpectedEnd, 12},
	"a key without quotes":            {`{a:1}`, canon.ReasonUnexpectedByte, 1},
	"a key without colon":             {`{"a" 1}`, canon.ReasonUnexpectedByte, 5},
	"a trailing comma in a map":       {`{"a":1,}`, canon.ReasonUnexpectedByte, 7},
	"a trailing comma in a list":      {`{"a":[1,]}`, canon.ReasonUnexpectedByte, 8},
	"a missing comma":                 {`{"a":1 "b":2}`, canon.ReasonUnexpectedByte, 7},
	"a misspelt literal":              {`{"a":trUe}`, canon.ReasonUnexpectedByte, 7},
	"a comment":                       {`{/**/}`, canon.ReasonUnexpectedByte, 1},
	"a NUL between tokens":            {"{\"a\":\x001}", canon.ReasonUnexpectedByte, 5},
	"a leading zero":                  {`{"a":01}`, canon.ReasonUnexpectedByte, 6},
	"a number that begins with a dot": {`{"a":.5}`, canon.ReasonUnexpectedByte, 5},
	"a number that ends with a dot":   {`{"a":1.}`, canon.ReasonUnexpectedByte, 7},
	"a plus sign":                     {`{"a":+1}`, canon.ReasonUnexpectedByte, 5},
	"a lone minus":                    {`{"a":-}`, canon.ReasonUnexpectedByte, 6},
	"an empty exponent":               {`{"a":1e}`, canon.ReasonUnexpectedByte, 7},
	"not a number":                    {`{"a":NaN}`, canon.ReasonUnexpectedByte, 5},
	"an exponent too large":           {`{"a":1e1000000000}`, canon.ReasonNumberRange, 5},
	"an exponent too small":           {`{"a":-1e-1000000000}`, canon.ReasonNumberRange, 5},
	"an exponent of many digits":      {`{"a":1e99999999999999999999999999}`, canon.ReasonNumberRange, 5},
	"a duplicate key":                 {`{"a":1,"b":2,"a":3}`, canon.ReasonDuplicateKey, 13},
	"a duplicate key below":           {`{"x":[{"k":{},"k":[]}]}`, canon.ReasonDuplicateKey, 14},
	"a duplicate key by escape":       {`{"z":0,"a":1,"\u0061":3}`, canon.ReasonDuplicateKey, 13},
	"a duplicate key in metadata":     {`{"metadata":{"a":1,"a":1}}`, canon.ReasonDuplicateKey, 19},
	"a duplicate key, once null":      {`{"a":null,"a":1}`, canon.ReasonDuplicateKey, 10},
	"a line feed in a string":         {"{\"a\":\"x\ny\"}", canon.ReasonControlCharacter, 7},
	"a NUL in a string after escapes": {"{\"a\":\"\\n\x00\"}", canon.ReasonControlCharacter, 8},
	"an unknown escape":               {`{"a":"\x"}`, canon.ReasonInvalidEscape, 6},
	"a bad unicode escape":            {`{"a":"\u12g4"}`, canon.ReasonInvalidEscape, 6},
	"a bad second half":               {`{"a":"\ud83d\uzzzz"}`, canon.ReasonInvalidEscape, 12},
	"a high surrogate alone":          {`{"a":"x\ud83dx"}`, canon.ReasonLoneSurrogate, 7},
	"a low surrogate alone":           {`{"a":"\ude00"}`, canon.ReasonLoneSurrogate, 6},
	"two high surrogates":             {`{"a":"\ud83d\ud83d"}`, canon.ReasonLoneSurrogate, 6},
	"a byte that is never UTF-8":      {"{\"a\":\"x\xff\"}", canon.ReasonInvalidUTF8, 7},
	"a truncated sequence":            {"{\"a\":\"\xe4\xb8\"}", canon.ReasonInvalidUTF8, 6},
	"an encoded surrogate":            {"{\"a\":\"\xed\xa0\x80\"}", canon.ReasonInvalidUTF8, 6},
	"an overlong sequence":            {"{\"a\":\"\xc0\x80\"}", canon.ReasonInvalidUTF8, 6},
	"bad UTF-8 in a key":              {"{\"\xff\":1}", canon.ReasonInvalidUTF8, 2},
	"bad UTF-8 after an escape":       {"{\"a\":\"\\n\xff\"}", canon.ReasonInvalidUTF8, 8},
	"lists too deep":                  {`{"a":` + strings.Repeat("[", 256) + strings.Repeat("]", 256) + "}", canon.ReasonTooDeep, 5 + 255},
	"maps too deep":                   {strings.Repeat(`{"a":`, 256) + "{}" + strings.Repeat("}", 256), canon.ReasonTooDeep, 5 * 256},
}

func TestParseRefusesInvalidBodies(t *testing.T) {
	for name, tc := range invalidBodies {
		t.Run(name, func(t *testing.T) {
			_, err := canon.Parse([]byte(tc.body), custom)
			got, ok := errors.AsType[*canon.SyntaxError](err)
			if !ok {
				t.Fatalf("error is %v, want a *SyntaxError", err)
			}
			want := &canon.SyntaxError{Offset: tc.offset, Reason: tc.reason, Key: got.Key}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("error of %.100q (-want +got):\n%s", tc.body, diff)
			}
			if (got.Key != "") != (tc.reason == canon.ReasonDuplicateKey) {
				t.Errorf("key is %q with reason %s", got.Key, got.Reason)
			}
			if text := got.Error(); !strings.Contains(text, "offset") {
				t.Errorf("message %q does not tell the offset", text)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", canon.MaxDepth-1) + strings.Repeat("]", canon.MaxDepth-1) + "}"
	if _, err := canon.Parse([]byte(deep), custom); err != nil {
		t.Errorf("depth %d: %v", canon.MaxDepth, err)
	}
	for name, tc := range map[string]struct {
		body []byte
		want *canon.SyntaxError
	}{
		"a body of one byte too many": {
			make([]byte, canon.MaxBodyBytes+1), &canon.SyntaxError{Offset: canon.MaxBodyBytes, Reason: canon.ReasonTooLarge},
		},
		"a value too many": {
			[]byte(`{"a":[` + strings.Repeat("1,", canon.MaxValues) + "1]}"),
			&canon.SyntaxError{Offset: 6 + 2*(canon.MaxValues-1), Reason: canon.ReasonTooManyValues},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := canon.Parse(tc.body, custom)
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABodyAtTheSizeLimitIsHashed(t *testing.T) {
	body := slices.Concat([]byte(`{"a":"`), make([]byte, canon.MaxBodyBytes-8), []byte(`"}`))
	for i := 6; i < len(body)-2; i++ {
		body[i] = 'x'
	}
	if _, err := canon.HashBody(body, custom); err != nil {
		t.Errorf("hashing %d bytes: %v", len(body), err)
	}
}

func TestParseNeverChangesTheBody(t *testing.T) {
	body := []byte(` {"b":[1.0,"\u0041"],"a":{"z":1,"y":null}} `)
	before := slices.Clone(body)
	d := parse(t, body, custom)
	d.Hash(path(t, "/a/z"))
	if diff := cmp.Diff(before, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}
