// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

func at(d time.Duration) *metav1.Time { return new(metav1.NewTime(epoch.Add(d))) }

func entry(n int, policy, target string, settled *metav1.Time) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{
		StepReference: ledger.Step{Namespace: "shop", PlanName: fmt.Sprint("plan-", n), PlanUID: fmt.Sprint("uid-", n), Step: 1},
		PolicyUID:     policy, TargetUID: target, ReservationTime: metav1.NewTime(epoch), CompletionTime: settled,
	}
}

// copied are fields as a hash holds them.
func copied(t *testing.T, s *ledger.Status) map[string]string {
	t.Helper()
	list := fields(s)
	if len(list)%2 != 0 || list[len(list)-2] != "sequence" {
		t.Fatalf("the sequence is not what comes last of %d words", len(list))
	}
	copied := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		copied[list[i].(string)] = list[i+1].(string)
	}
	return copied
}

func TestFieldsOfACopy(t *testing.T) {
	probe, gone := ledger.Step{PlanUID: "uid-3", Step: 1}, ledger.Step{PlanUID: "uid-9"}
	got := copied(t, &ledger.Status{
		Sequence: 42, GrantStartTime: at(time.Hour),
		Entries: []v1alpha1.LedgerEntry{
			entry(1, "p", "a", at(-time.Minute)),
			entry(2, "q", "a", at(-time.Hour)),
			entry(3, "p", "b", nil),
			entry(4, "p", "b", at(-2*time.Minute)),
			entry(5, "q", "c", at(-100*365*24*time.Hour)),
		},
		Breakers: []v1alpha1.LedgerBreaker{
			{PolicyUID: "p", State: v1alpha1.BreakerOpen, LastOpenTime: at(0)},
			{PolicyUID: "q", State: v1alpha1.BreakerHalfOpen, Probe: &probe},
			{PolicyUID: "u", State: v1alpha1.BreakerHalfOpen, LastOpenTime: at(0), Probe: &gone},
			{PolicyUID: "v", State: v1alpha1.BreakerHalfOpen, LastOpenTime: at(0), Probe: &gone, VerdictDeadlineTime: at(time.Hour)},
			{PolicyUID: "r", State: v1alpha1.BreakerClosed},
			{PolicyUID: "s", State: v1alpha1.BreakerOpen},
			{PolicyUID: "t", State: "Ajar"},
			{PolicyUID: "t", State: v1alpha1.BreakerClosed},
		},
	})
	want := map[string]string{
		"sequence": "42", "grants-from": "1772449200", "breakers": "8",
		"open": "1", "ended": "000000000000" + "001772442000" + "001772445480" + "001772445540",
		"open/p": "1", "ended/p": "001772445480" + "001772445540",
		"open/q": "0", "ended/q": "000000000000" + "001772442000",
		"target/a": "001772445540", "target/b": "written", "target/c": "000000000000",
		"breaker/p": "1772445600", "breaker/q": "probing", "breaker/r": "closed", "breaker/s": "stuck", "breaker/t": "stuck", "breaker/u": "1772445600", "breaker/v": "1772449200",
		"step/uid-1/1": "1", "step/uid-2/1": "1", "step/uid-3/1": "1", "step/uid-4/1": "1", "step/uid-5/1": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestACopyOfALedgerThatHasJustBegun(t *testing.T) {
	first := ledger.Begin(epoch, true)
	want := map[string]string{"sequence": "1", "breakers": "0", "open": "0", "ended": ""}
	if diff := cmp.Diff(want, copied(t, &first)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestACopyHoldsNoNames(t *testing.T) {
	s := ledger.Status{Sequence: 1, Entries: []v1alpha1.LedgerEntry{entry(1, "p", "a", nil)}}
	for name, value := range copied(t, &s) {
		for _, secret := range []string{"shop", "plan-1"} {
			if strings.Contains(name, secret) || strings.Contains(value, secret) {
				t.Errorf("%q = %q names %q", name, value, secret)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	if got, want := key("plumbline", "production", "uid"), "plumbline:mirror:{production/uid}"; got != want {
		t.Errorf("key is %q, want %q", got, want)
	}
}
