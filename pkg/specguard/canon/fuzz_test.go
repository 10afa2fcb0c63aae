// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

// FuzzParse checks what is accepted against encoding/json, and that every
// refusal has an offset inside the input.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sampleBody))
	f.Add(canontest.Deployment(2 << 10))
	for _, tc := range invalidBodies {
		f.Add([]byte(tc.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := canon.Parse(body, service)
		if err != nil {
			syntax, ok := errors.AsType[*canon.SyntaxError](err)
			if !ok || syntax.Offset < 0 || syntax.Offset > len(body) {
				t.Fatalf("error is %v", err)
			}
			if stricter(syntax.Reason) {
				return
			}
			if json.Valid(body) {
				t.Fatalf("refused valid JSON: %v", err)
			}
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Fatal("accepted invalid JSON")
		}
		canonical := d.AppendCanonical(nil)
		again, err := canon.Parse(canonical, service)
		if err != nil {
			t.Fatalf("canonical form %s: %v", canonical, err)
		}
		if twice := again.AppendCanonical(nil); !bytes.Equal(canonical, twice) {
			t.Fatalf("canonical form is no fixed point:\n%s\n%s", canonical, twice)
		}
	})
}

// stricter are the reasons by which pl1 refuses what encoding/json accepts.
func stricter(r canon.Reason) bool {
	switch r {
	case canon.ReasonDuplicateKey, canon.ReasonTooDeep, canon.ReasonTooLarge, canon.ReasonTooManyValues,
		canon.ReasonNotObject, canon.ReasonInvalidUTF8, canon.ReasonLoneSurrogate, canon.ReasonNumberRange:
		return true
	case canon.ReasonEmpty, canon.ReasonUnexpectedEnd, canon.ReasonUnexpectedByte, canon.ReasonTrailingData,
		canon.ReasonControlCharacter, canon.ReasonInvalidEscape:
		return false
	default:
		return false
	}
}

// FuzzHash checks that a hash is that of the canonical bytes, with and without
// an excluded path, and that excluding a path is idempotent.
func FuzzHash(f *testing.F) {
	f.Add([]byte(sampleBody), "/spec/ports/[port=80]/port")
	f.Add([]byte(podSpec(`"containers":[{"name":"a","env":[{"name":"B","value":"$(A)"},{"name":"A"}]}]`)), "/spec/*")
	f.Add(canontest.Deployment(2<<10), "/spec/template/spec/containers/*/env")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		exclude, err := canon.ParsePath(text)
		if err != nil {
			return
		}
		for _, gvk := range []canon.GVK{deployment, service, custom} {
			d, err := canon.Parse(body, gvk)
			if err != nil {
				return
			}
			if got, want := string(d.Hash()), naiveHash(string(d.AppendCanonical(nil)), gvk); got != want {
				t.Fatalf("hash is %s, that of the canonical bytes %s", got, want)
			}
			guarded := d.AppendCanonical(nil, exclude)
			if got, want := string(d.Hash(exclude)), naiveHash(string(guarded), gvk); got != want {
				t.Fatalf("guarded hash is %s, that of the canonical bytes %s", got, want)
			}
			if twice := d.AppendCanonical(nil, exclude, exclude); !bytes.Equal(guarded, twice) {
				t.Fatalf("excluding twice differs:\n%s\n%s", guarded, twice)
			}
		}
	})
}

// FuzzPath checks that what is read is written back to the same path.
func FuzzPath(f *testing.F) {
	f.Add("/spec/ports/[port=80,protocol=]/x~1y/*/0")
	f.Add("/~3x/~2/[=a~5b]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := canon.ParsePath(text)
		if err != nil {
			return
		}
		again, err := canon.ParsePath(p.String())
		if len(p.String()) > canon.MaxPathBytes {
			return // the canonical escapes may be longer than what was read
		}
		if err != nil || !again.Equal(p) {
			t.Fatalf("%q was read as %q, and that as %q: %v", text, p, again, err)
		}
	})
}
