// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"bytes"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// BenchmarkCompare parses and compares two bodies of 20 KiB that differ in one
// image, as a webhook does.
func BenchmarkCompare(b *testing.B) {
	before := canontest.Deployment(20 << 10)
	after := bytes.Replace(before, []byte("checkout-3:1.42.3"), []byte("checkout-3:1.42.4"), 1)
	b.SetBytes(int64(len(before) + len(after)))
	b.ReportAllocs()
	for b.Loop() {
		x, err := canon.Parse(before, deployment)
		if err != nil {
			b.Fatal(err)
		}
		y, err := canon.Parse(after, deployment)
		if err != nil {
			b.Fatal(err)
		}
		if changes := diff.Compare(x, y); len(changes) != 1 {
			b.Fatalf("%d changes, want 1", len(changes))
		}
		x.Release()
		y.Release()
	}
}
