// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyEntry is an entry of managedFields as an apply leaves it, at one time for all.
func applyEntry(manager, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// putEntries replaces managedFields, under a manager's name.
func putEntries(t *testing.T, d *appsv1.Deployment, user, manager string, entries ...metav1.ManagedFieldsEntry) error {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(deploymentKind)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), live); err != nil {
		t.Fatal(err)
	}
	live.SetManagedFields(entries)
	return mustBe(t, user, "tenants").Update(t.Context(), live, client.FieldOwner(manager))
}

func newApplied(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := deployment(name)
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func wantApplied(t *testing.T, d *appsv1.Deployment, when string, want appliedStamp) {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, appliedStampOf(d)); diff != "" {
		t.Errorf("stamp %s (-want +got):\n%s", when, diff)
	}
}

func TestBeyondTheBoundOfEntriesNoServerSideApplyIsStamped(t *testing.T) {
	needsStampingPolicy(t)
	d := newApplied(t, "entries")
	lastApplied("ci", `{"a":1}`).do(t, d)
	wantApplied(t, d, "after kubectl apply", appliedStamp{"ci", "", "last-applied"})
	var entries []metav1.ManagedFieldsEntry
	for i := range 65 {
		entries = append(entries, applyEntry(fmt.Sprintf("tenant-%d", i), fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:x%d":{}}}}`, i)))
	}
	if err := putEntries(t, d, "mallory", "mallory", entries...); err != nil {
		t.Fatal(err)
	}
	wantApplied(t, d, "after 65 entries were written", appliedStamp{})
	appliedBy("ci", "ci", "shop:1").do(t, d)
	wantApplied(t, d, "after an apply of the live value", appliedStamp{})
	patched(merge("alice", `{"metadata":{"managedFields":[{}]}}`)).do(t, d)
	appliedBy("ci", "ci", "shop:1").do(t, d)
	wantApplied(t, d, "after an apply without the entries", appliedStamp{"ci", "", "manager=ci"})
}

// wideFields are so many fields with as many fields each, and those have a part.
func wideFields(n int, part string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f:%d":{`, i)
		for j := range n {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"f:%d":%s`, j, part)
		}
		b.WriteByte('}')
	}
	return `{"f:spec":{` + b.String()[1:] + `}}`
}

// deepFields are so many levels of fields with long names.
func deepFields(levels int) string {
	return strings.Repeat(`{"f:`+strings.Repeat("a", 500)+`":`, levels) + "{}" + strings.Repeat("}", levels)
}

// Each writer of an object may fill the entry of another writer's apply. The text of an
// entry was compared by its length, and the API server made that text anew for each level
// of the entry.
func TestAFilledEntryOfAnApplyKeepsNobodyFromWriting(t *testing.T) {
	needsStampingPolicy(t)
	for name, fill := range map[string]struct{ fields, fewer string }{
		"many fields in many fields": {wideFields(240, "{}"), wideFields(239, "{}")},
		"two thousand levels":        {deepFields(2000), deepFields(1999)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newApplied(t, "filled-"+strings.ReplaceAll(name, " ", "-"))
			if err := putEntries(t, d, "mallory", "mallory", applyEntry("ci", fill.fields)); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d KiB of fields", len(fill.fields)>>10)
			if err := putEntries(t, d, "mallory", "ci", applyEntry("ci", fill.fewer)); err != nil {
				t.Fatal(err)
			}
			wantApplied(t, d, "after the entry lost fields", appliedStamp{})
			patchedUnder("ci", "ci", `{"metadata":{"labels":{"a":"b"}}}`).do(t, d)
			wantApplied(t, d, "after an update under the manager's name", appliedStamp{})
			appliedBy("ci", "ci", "shop:1").do(t, d)
			wantApplied(t, d, "after an apply of the live value", appliedStamp{"ci", "", "manager=ci"})
		})
	}
}

// More fields than the cost of an expression allows: the policy refuses the write whose
// stamp it cannot find out, and no other one.
func TestAWriteThatCostsTooMuchToLookAtIsRefused(t *testing.T) {
	needsStampingPolicy(t)
	d := newApplied(t, "costly")
	if err := putEntries(t, d, "mallory", "mallory", applyEntry("ci", wideFields(240, `{"f:a":{}}`))); err != nil {
		t.Fatal(err)
	}
	err := putEntries(t, d, "mallory", "ci", applyEntry("ci", wideFields(240, `{}`)))
	if err == nil || !strings.Contains(err.Error(), "plumbline-writer") || !strings.Contains(err.Error(), "cost") {
		t.Errorf("the answer is %v", err)
	}
	patchedUnder("ci", "ci", `{"metadata":{"labels":{"a":"b"}}}`).do(t, d)
	wantApplied(t, d, "after an update of another writer", appliedStamp{})
}
