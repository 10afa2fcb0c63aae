// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

var deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// referenceHash is the DD-EM-002 algorithm as published: the yardstick of the
// benchmarks, and the oracle of the ddem002 tests.
func referenceHash(spec []byte) (string, error) {
	var m map[string]any
	if err := json.Unmarshal(spec, &m); err != nil {
		return "", err
	}
	canonical, err := json.Marshal(referenceNormalize(m))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func referenceNormalize(value any) any {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		normalized := make(map[string]any, len(v))
		for _, key := range keys {
			normalized[key] = referenceNormalize(v[key])
		}
		return normalized
	case []any:
		normalized := make([]any, len(v))
		for i := range v {
			normalized[i] = referenceNormalize(v[i])
		}
		sort.Slice(normalized, func(i, j int) bool {
			ji, _ := json.Marshal(normalized[i])
			jj, _ := json.Marshal(normalized[j])
			return string(ji) < string(jj)
		})
		return normalized
	default:
		return v
	}
}

var benchSizes = []int{2 << 10, 20 << 10, 100 << 10}

func benchBodies(b *testing.B, run func(b *testing.B, body []byte)) {
	for _, size := range benchSizes {
		body := canontest.Deployment(size)
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			run(b, body)
		})
	}
}

// BenchmarkPL1 hashes a whole body, parse included.
func BenchmarkPL1(b *testing.B) {
	benchBodies(b, func(b *testing.B, body []byte) {
		for b.Loop() {
			if _, err := canon.HashBody(body, deployment); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkParse parses alone; "managed" is an object of 20 KiB as the API
// server has it, where a third is managedFields, full of escaped quotes.
func BenchmarkParse(b *testing.B) {
	benchBodies(b, parseAgain)
	body := managed(canontest.Deployment(14 << 10))
	b.Run("managed", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		parseAgain(b, body)
	})
}

func parseAgain(b *testing.B, body []byte) {
	for b.Loop() {
		d, err := canon.Parse(body, deployment)
		if err != nil {
			b.Fatal(err)
		}
		d.Release()
	}
}

// managed adds managedFields of seven KiB.
func managed(body []byte) []byte {
	var fields []string
	for i := range 110 {
		fields = append(fields, fmt.Sprintf(`"k:{\"name\":\"SETTING_%03d\"}":{".":{},"f:name":{},"f:value":{}}`, i))
	}
	return bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"managedFields":[{"manager":"kubectl",`+
		`"operation":"Apply","fieldsV1":{"f:spec":{`+strings.Join(fields, ",")+`}}}],`), 1)
}

// BenchmarkPL1Guarded hashes with twenty excluded paths.
func BenchmarkPL1Guarded(b *testing.B) {
	var exclude []canon.Path
	for i := range 20 {
		exclude = append(exclude, path(b, fmt.Sprintf("/spec/template/spec/containers/*/env/[name=SETTING_%03d]/value", i)))
	}
	benchBodies(b, func(b *testing.B, body []byte) {
		for b.Loop() {
			if _, err := canon.HashBody(body, deployment, exclude...); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReference is the published DD-EM-002 algorithm over the same object's
// spec; it is given the spec's bytes alone, so the comparison favors it.
func BenchmarkReference(b *testing.B) {
	benchBodies(b, func(b *testing.B, body []byte) {
		spec := specOf(b, body)
		for b.Loop() {
			if _, err := referenceHash(spec); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDDEM002 is our implementation of the same.
func BenchmarkDDEM002(b *testing.B) {
	benchBodies(b, func(b *testing.B, body []byte) {
		spec := specOf(b, body)
		for b.Loop() {
			if _, err := canon.HashSpec(spec); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func specOf(tb testing.TB, body []byte) []byte {
	tb.Helper()
	d := parse(tb, body, canon.GVK{})
	return d.Root().Get("spec").Raw()
}

func parse(tb testing.TB, body []byte, gvk canon.GVK) *canon.Document {
	tb.Helper()
	d, err := canon.Parse(body, gvk)
	if err != nil {
		tb.Fatalf("parsing %.200s: %v", body, err)
	}
	return d
}

func path(tb testing.TB, text string) canon.Path {
	tb.Helper()
	p, err := canon.ParsePath(text)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
