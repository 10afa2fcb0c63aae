// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// busy is a ledger with so many entries of a day, of ten policies.
func busy(entries int) *ledger.Status {
	s := &ledger.Status{Sequence: 1}
	for n := range entries {
		r := request(n, fmt.Sprintf("%036d", n%10), fmt.Sprintf("%036d", n))
		r.Step.PlanUID = fmt.Sprintf("%036d", n)
		ended := metav1.NewTime(epoch.Add(-time.Duration(n+600) * time.Minute / 2))
		s.Entries = append(s.Entries, v1alpha1.LedgerEntry{
			StepReference: r.Step, PolicyUID: r.PolicyUID, TargetUID: r.TargetUID, ReservationTime: ended, CompletionTime: &ended,
		})
	}
	return s
}

// roomy rules let every gate be looked at.
func roomy() ledger.Rules {
	return ledger.Rules{
		Policy: ledger.Limits{Caps: caps(10, 1000, 2000), Cooldown: time.Minute, FailureThreshold: 3, OpenDuration: time.Hour},
		All:    caps(10, 1000, 2000),
	}
}

// BenchmarkAsk is a question to a real server on a socket, as the caller sees it
// (p50-µs, p99-µs) and inside the server (redis-µs/op).
func BenchmarkAsk(b *testing.B) {
	for _, entries := range []int{0, 100, 1000} {
		b.Run(strconv.Itoa(entries)+" entries", func(b *testing.B) {
			s, status := newStand(b), busy(entries)
			must(b, s.Put(b.Context(), name, uid, status))
			r := request(-1, fmt.Sprintf("%036d", 3), "none")
			s.measure(b, "evalsha_ro", func() {
				if a := s.Ask(b.Context(), name, uid, 1, r, roomy(), epoch); a.Verdict != "Allowed" {
					b.Fatalf("%+v", a)
				}
			})
		})
	}
}

// BenchmarkPut stores a whole ledger.
func BenchmarkPut(b *testing.B) {
	for _, entries := range []int{0, 100, 1000} {
		b.Run(strconv.Itoa(entries)+" entries", func(b *testing.B) {
			s, status := newStand(b), busy(entries)
			s.measure(b, "evalsha", func() {
				status.Sequence++
				must(b, s.Put(b.Context(), name, uid, status))
			})
			b.ReportMetric(float64(s.admin.MemoryUsage(b.Context(), copyKey, 0).Val()), "redis-bytes")
		})
	}
}

func (s *stand) measure(b *testing.B, command string, do func()) {
	do() // the server has the script from here on
	must(b, s.admin.ConfigResetStat(context.Background()).Err())
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		do()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	at := func(percent int) float64 { return float64(took[len(took)*percent/100].Nanoseconds()) / 1e3 }
	b.ReportMetric(at(50), "p50-µs")
	b.ReportMetric(at(99), "p99-µs")
	stats, err := s.admin.Info(context.Background(), "commandstats").Result()
	must(b, err)
	found := regexp.MustCompile(`cmdstat_` + command + `:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(stats)
	if found == nil {
		b.Fatalf("the server tells nothing of %s:\n%s", command, stats)
	}
	inside, err := strconv.ParseFloat(found[1], 64)
	must(b, err)
	b.ReportMetric(inside, "redis-µs/op")
}
