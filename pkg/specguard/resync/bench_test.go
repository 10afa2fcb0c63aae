// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func BenchmarkResolve(b *testing.B) {
	h := Hierarchy{
		GVK: deployment, Annotations: asks("6h"),
		Guards:      []Guard{guard("web", hours(3), v1alpha1.ObjectOverrideStop), guard("all", hours(4), v1alpha1.ObjectOverrideStop)},
		Environment: defaults("prod", hours(12), hours(1)), InstallWide: defaults("platform", hours(12), hours(1)),
	}
	b.ReportAllocs()
	for b.Loop() {
		Resolve(h)
	}
}

func BenchmarkNextCheck(b *testing.B) {
	timing := Timing{UID: "3f0c1d3e-5a55-4a4c-9b53-2f0b9a3a1f11", Period: 3 * time.Hour, LastCheck: testNow, Now: testNow}
	b.ReportAllocs()
	for b.Loop() {
		NextCheck(timing)
	}
}

func BenchmarkSelectOf10000(b *testing.B) {
	p := Pool{Now: testNow, Installation: Budget{Total: 10000, Threshold: 10}, MaxConcurrentChecks: 100}
	for i := range p.Installation.Total {
		p.Candidates = append(p.Candidates, due(fmt.Sprint("w", i), time.Duration(i*7919%10000)*time.Second))
	}
	b.ReportAllocs()
	for b.Loop() {
		Select(p)
	}
}
