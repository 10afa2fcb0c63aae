// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestDeletedOutOfBand(t *testing.T) {
	recreated := Deletion{Guarded: true, Management: v1alpha1.Managed, Resync: true, Origin: v1alpha1.OriginCreated, Attributed: true}
	tests := map[string]struct {
		change func(*Deletion)
		want   Consequence
		reason DeletionReason
	}{
		"everything it takes":               {func(*Deletion) {}, Recreate, ReasonDeletedOutOfBand},
		"removed by somebody who may":       {func(d *Deletion) { d.Retired = true }, Untouched, ReasonRetired},
		"its namespace is being deleted":    {func(d *Deletion) { d.NamespaceTerminating = true }, Untouched, ReasonNamespaceTerminating},
		"its guards are suspended":          {func(d *Deletion) { d.Guarded = false }, Untouched, ReasonNotGuarded},
		"unmanaged":                         {func(d *Deletion) { d.Management = v1alpha1.Unmanaged }, Untouched, ReasonUnmanaged},
		"no management policy":              {func(d *Deletion) { d.Management = "" }, Untouched, ReasonUnmanaged},
		"its body was too large":            {func(d *Deletion) { d.BodyTooLarge = true }, Terminal, ReasonBodyTooLarge},
		"nobody who may ever created it":    {func(d *Deletion) { d.Origin = "" }, Untouched, ReasonNeverAuthorized},
		"imported":                          {func(d *Deletion) { d.Origin = v1alpha1.OriginImported }, Terminal, ReasonImported},
		"an origin of tomorrow":             {func(d *Deletion) { d.Origin = "Restored" }, Terminal, ReasonImported},
		"scheduled checks are off":          {func(d *Deletion) { d.Resync = false }, Terminal, ReasonResyncOff},
		"nothing says who deleted it":       {func(d *Deletion) { d.Attributed = false }, Terminal, ReasonUnattributed},
		"imported, and off, and by nobody":  {func(d *Deletion) { d.Origin, d.Resync, d.Attributed = v1alpha1.OriginImported, false, false }, Terminal, ReasonImported},
		"unmanaged and its namespace is on": {func(d *Deletion) { d.Management, d.Resync = v1alpha1.Unmanaged, false }, Untouched, ReasonUnmanaged},
		"nothing is known":                  {func(d *Deletion) { *d = Deletion{} }, Untouched, ReasonNotGuarded},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := recreated
			tc.change(&d)
			if got, reason := Deleted(d); got != tc.want || reason != tc.reason {
				t.Errorf("%s (%s), want %s (%s)", got, reason, tc.want, tc.reason)
			}
		})
	}
}

// TestOnlyOneCombinationRecreates goes through all of them: one of 960 recreates,
// and what is unmanaged, gone with its namespace or not guarded is never touched.
func TestOnlyOneCombinationRecreates(t *testing.T) {
	var recreated []Deletion
	all := 0
	judge := func(d Deletion) {
		all++
		got, reason := Deleted(d)
		if got == Recreate {
			recreated = append(recreated, d)
		}
		hands := d.Retired || d.NamespaceTerminating || !d.Guarded || d.Management != v1alpha1.Managed || d.Origin == "" && !d.BodyTooLarge
		if hands != (got == Untouched) {
			t.Errorf("%+v: %s", d, got)
		}
		if reason == "" {
			t.Errorf("%+v: no reason", d)
		}
	}
	for _, m := range []v1alpha1.ManagementPolicy{"", v1alpha1.Managed, v1alpha1.Unmanaged} {
		for _, o := range []v1alpha1.Origin{"", v1alpha1.OriginCreated, v1alpha1.OriginImported, "Restored", "Found"} {
			for bits := range 1 << 6 {
				is := func(bit int) bool { return bits>>bit&1 == 1 }
				judge(Deletion{
					Retired: is(0), NamespaceTerminating: is(1), Guarded: is(2), Management: m, Resync: is(3), Origin: o,
					BodyTooLarge: is(4), Attributed: is(5),
				})
			}
		}
	}
	want := []Deletion{{Guarded: true, Management: v1alpha1.Managed, Resync: true, Origin: v1alpha1.OriginCreated, Attributed: true}}
	if diff := cmp.Diff(want, recreated); diff != "" || all != 960 {
		t.Errorf("recreated of %d (-want +got):\n%s", all, diff)
	}
}

func TestDeletionOfABaseline(t *testing.T) {
	missing := func(user string, class v1alpha1.ActorClass) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) {
			b.Spec.Authorized = &v1alpha1.AuthorizedState{Origin: v1alpha1.OriginCreated}
			b.Status.State = v1alpha1.StateMissing
			b.Status.Findings = []v1alpha1.Finding{{Class: v1alpha1.ClassObjectMissing, Actor: v1alpha1.Actor{User: user, Class: class}}}
		}
	}
	created := func(attributed bool) Deletion {
		return Deletion{Origin: v1alpha1.OriginCreated, Attributed: attributed}
	}
	tests := map[string]struct {
		change func(*v1alpha1.Baseline)
		want   Deletion
	}{
		"a stranger deleted it":            {missing("alice", v1alpha1.ActorUntrusted), created(true)},
		"an expected writer of fields did": {missing("hpa", v1alpha1.ActorExpected), created(true)},
		"nobody is known":                  {missing("", v1alpha1.ActorUnknown), created(false)},
		"a name without a class":           {missing("alice", ""), created(false)},
		"a stranger without a name":        {missing("", v1alpha1.ActorUntrusted), created(false)},
		"a user whom nothing vouches for":  {missing("alice", v1alpha1.ActorUnknown), created(false)},
		"Plumbline itself did":             {missing("system:serviceaccount:plumbline:executor", v1alpha1.ActorSystem), created(false)},
		"nothing was authorized":           {nil, Deletion{}},
		"a finding about a field names nobody": {func(b *v1alpha1.Baseline) {
			missing("alice", v1alpha1.ActorUntrusted)(b)
			b.Status.Findings[0].Class = v1alpha1.ClassScale
		}, created(false)},
		"its body was too large": {func(b *v1alpha1.Baseline) { b.Status.Oversized = &v1alpha1.OversizedBody{} }, Deletion{BodyTooLarge: true}},
		"retired":                {func(b *v1alpha1.Baseline) { b.Status.RetirementTime = &metav1.Time{Time: testNow} }, Deletion{Retired: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DeletionOf(baseline(tc.change))); diff != "" {
				t.Errorf("deletion (-want +got):\n%s", diff)
			}
		})
	}
}
