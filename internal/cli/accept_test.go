// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestPlanAccept(t *testing.T) {
	alice := func(age time.Duration) v1alpha1.Finding { return found("/spec/replicas", "1", "5", "alice", age) }
	bob := found("/spec/paused", "false", "true", "bob", time.Minute)
	imported := func(b *v1alpha1.Baseline) { b.Spec.Authorized.Origin = v1alpha1.OriginImported }
	lost := func(b *v1alpha1.Baseline) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonBodyLost})
	}
	large := func(b *v1alpha1.Baseline) {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonBodyTooLarge})
	}
	cases := map[string]struct {
		baseline *v1alpha1.Baseline
		named    bool
		filter   acceptFilter
		accepted bool
		why      string
		quiet    bool
	}{
		"drifted":                                   {baseline: baselineOf("a", drifted(bob)), accepted: true},
		"missing, by the hash that says absent":     {baseline: fleet()[4].(*v1alpha1.Baseline), accepted: true},
		"never authorized and drifted":              {baseline: baselineOf("a", drifted(bob), func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }), accepted: true},
		"in sync":                                   {baseline: baselineOf("a"), why: "in sync", quiet: true},
		"in sync and named":                         {baseline: baselineOf("a"), named: true, why: "in sync", quiet: true},
		"imported, in sync and named":               {baseline: baselineOf("a", imported), named: true, accepted: true},
		"imported and in sync, in bulk":             {baseline: baselineOf("a", imported), why: "in sync", quiet: true},
		"unknown":                                   {baseline: baselineOf("a", state(v1alpha1.StateUnknown)), named: true, why: "state is unknown"},
		"unknown because the body is lost, named":   {baseline: baselineOf("a", state(v1alpha1.StateUnknown), lost), named: true, accepted: true},
		"unknown because the body is too large":     {baseline: baselineOf("a", state(v1alpha1.StateUnknown), large), named: true, accepted: true},
		"unknown because the body is lost, in bulk": {baseline: baselineOf("a", state(v1alpha1.StateUnknown), lost), why: "state is unknown"},
		"a state of a later version":                {baseline: baselineOf("a", state("Wobbly")), why: "state is unknown"},
		"no longer guarded":                         {baseline: baselineOf("a", state(v1alpha1.StateNotGuarded)), why: "no guard selects it any more", quiet: true},
		"retired":                                   {baseline: fleet()[7].(*v1alpha1.Baseline), why: "retired", quiet: true},
		"drifted without an observed hash":          {baseline: baselineOf("a", drifted(bob), func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "" }), why: "no observed state"},
		"by the user who did it all":                {baseline: baselineOf("a", drifted(bob)), filter: acceptFilter{by: "bob"}, accepted: true},
		"by another user":                           {baseline: baselineOf("a", drifted(bob)), filter: acceptFilter{by: "alice"}, why: unmatched},
		"by a user among others":                    {baseline: baselineOf("a", drifted(alice(0), bob)), filter: acceptFilter{by: "alice"}, why: "also has /spec/paused by bob"},
		"by nobody known":                           {baseline: baselineOf("a", drifted(found("/x", "1", "2", "", 0))), filter: acceptFilter{by: "alice"}, why: unmatched},
		"just within the time":                      {baseline: baselineOf("a", drifted(alice(time.Hour))), filter: acceptFilter{since: time.Hour}, accepted: true},
		"just outside it":                           {baseline: baselineOf("a", drifted(alice(time.Hour+time.Second))), filter: acceptFilter{since: time.Hour}, why: unmatched},
		"partly outside it":                         {baseline: baselineOf("a", drifted(alice(2*time.Hour), alice(0))), filter: acceptFilter{since: time.Hour}, why: "also has /spec/replicas by alice, first seen 2026-03-01T10:00:00Z"},
		"the right user at the wrong time":          {baseline: baselineOf("a", drifted(alice(2*time.Hour), bob)), filter: acceptFilter{since: time.Hour, by: "alice"}, why: unmatched},
		"more findings than are listed":             {baseline: baselineOf("a", drifted(bob), func(b *v1alpha1.Baseline) { b.Status.FindingsTotal = 65 }), filter: acceptFilter{by: "bob"}, why: "not listed"},
		"more findings than listed, without filter": {baseline: baselineOf("a", drifted(bob), func(b *v1alpha1.Baseline) { b.Status.FindingsTotal = 65 }), accepted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			accept, refused := planAccept(selected{baselines: []v1alpha1.Baseline{*tc.baseline}, named: tc.named}, tc.filter, testNow)
			if tc.accepted {
				if len(accept) != 1 || len(refused) != 0 || accept[0].hash != tc.baseline.Status.Observed.Hash {
					t.Errorf("accepted %+v, refused %+v", accept, refused)
				}
				return
			}
			if len(accept) != 0 || len(refused) != 1 || !strings.Contains(refused[0].why, tc.why) || refused[0].quiet != tc.quiet {
				t.Errorf("accepted %d, refused %+v, want %q, quiet %v", len(accept), refused, tc.why, tc.quiet)
			}
		})
	}
}

func TestSettlement(t *testing.T) {
	const hash = "pl1:sha256:drifted"
	asked := func(hash, by string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) { b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: hash, RequestedBy: by} }
	}
	now := func(hash string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) { b.Spec.Authorized.Hash = hash }
	}
	kept := func(oversized, observed string) func(*v1alpha1.Baseline) {
		return func(b *v1alpha1.Baseline) {
			b.Status.Oversized, b.Status.Observed.Hash = &v1alpha1.OversizedBody{Hash: oversized}, observed
		}
	}
	notLet := func(b *v1alpha1.Baseline) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionAcceptanceAllowed, Status: metav1.ConditionFalse, Message: "ClusterSpecGuard/platform lets only these accept: boss",
		})
	}
	cases := map[string]struct {
		baseline            *v1alpha1.Baseline
		wasMissing, deleted bool
		want                settled
		words               string
	}{
		"still asked for":                        {baseline: baselineOf("a", asked(hash, "alice")), want: settlePending},
		"asked for, although authorized already": {baseline: baselineOf("a", asked(hash, "alice"), now(hash)), want: settlePending},
		"taken":                                  {baseline: baselineOf("a", now(hash)), want: settleTaken, words: "accepted (revision 3)"},
		"cleared without being taken":            {baseline: baselineOf("a"), want: settleRefused, words: "changed before"},
		"cleared, and never authorized":          {baseline: baselineOf("a", func(b *v1alpha1.Baseline) { b.Spec.Authorized = nil }), want: settleRefused, words: "changed before"},
		"cleared, and the status is still to come": {
			baseline: baselineOf("a", now(hash), func(b *v1alpha1.Baseline) { b.Generation, b.Status.ObservedGeneration = 3, 2 }), want: settlePending,
		},
		"refused by a guard":                              {baseline: baselineOf("a", notLet), want: settleRefused, words: "lets only these accept: boss"},
		"refused by a guard, an object that is as it was": {baseline: baselineOf("a", now(hash), notLet), want: settleRefused, words: "lets only these accept: boss"},
		"refused by a guard, a missing object":            {baseline: baselineOf("a", state(v1alpha1.StateMissing), notLet), wasMissing: true, want: settleRefused, words: "boss"},
		"replaced by another's request":                   {baseline: baselineOf("a", asked("pl1:sha256:other", "bob")), want: settleRefused, words: "bob has asked"},
		"a missing object, retired":                       {baseline: fleet()[7].(*v1alpha1.Baseline), wasMissing: true, want: settleTaken, words: "retired"},
		"a missing object, its Baseline removed":          {baseline: baselineOf("a"), wasMissing: true, deleted: true, want: settleTaken, words: "retired"},
		"a missing object, not retired yet":               {baseline: baselineOf("a", state(v1alpha1.StateMissing)), wasMissing: true, want: settlePending},
		"a missing object that came back":                 {baseline: baselineOf("a", state(v1alpha1.StateDrifted)), wasMissing: true, want: settleRefused, words: "changed before"},
		"an existing object whose Baseline was removed":   {baseline: baselineOf("a"), deleted: true, want: settleRefused, words: "removed meanwhile"},
		"accepted, and too large to be kept":              {baseline: baselineOf("a", kept(hash, hash)), want: settleTaken, words: "too large to be kept"},
		"accepted, and not told to be too large yet":      {baseline: baselineOf("a", kept("pl1:sha256:before", hash)), want: settlePending},
		"too large, and changed meanwhile":                {baseline: baselineOf("a", kept("pl1:sha256:before", "pl1:sha256:after")), want: settleRefused, words: "changed before"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, words := settlement(tc.baseline, hash, tc.wasMissing, tc.deleted)
			if got != tc.want || !strings.Contains(words, tc.words) {
				t.Errorf("got %d, %q, want %d, %q", got, words, tc.want, tc.words)
			}
		})
	}
}

func TestOfAUsersGroupsThoseThatAGuardMayNameGoAlong(t *testing.T) {
	groups := []string{"system:authenticated", "platform", "oncall", "platform", "", strings.Repeat("x", 257), "system:serviceaccounts:ci"}
	if diff := cmp.Diff([]string{"oncall", "platform"}, namedGroups(groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAcceptPatch_CarriesPreconditionsAndClearsTheReason(t *testing.T) {
	b := baselineOf("a")
	b.ResourceVersion = "7"
	for reason, want := range map[string]any{"": nil, "why": "why"} {
		patch, err := bound(b, acceptPatch(v1alpha1.AcceptRequest{Hash: "h", RequestedBy: "alice", Reason: reason}))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(patch, &got); err != nil {
			t.Fatal(err)
		}
		wanted := map[string]any{
			"metadata": map[string]any{"uid": "uid-b", "resourceVersion": "7"},
			"spec":     map[string]any{"accept": map[string]any{"hash": "h", "requestedBy": "alice", "reason": want, "requestedByGroups": nil}},
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// racing answers the first n patches with a conflict, after between has
// changed the Baseline.
func racing(n int, between func(*v1alpha1.Baseline)) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if n--; n < 0 {
				return api.Patch(ctx, object, patch, options...)
			}
			current := &v1alpha1.Baseline{}
			if err := api.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
				return err
			}
			between(current)
			if err := api.Status().Update(ctx, current); err != nil {
				return err
			}
			return apierrors.NewConflict(schema.GroupResource{Group: "plumbline.dev", Resource: "baselines"}, object.GetName(), nil)
		},
	}
}

func TestAccept_OnlyTheStateThatWasShown(t *testing.T) {
	web := func() client.Object {
		return baselineOf("web", drifted(found("/spec/replicas", "1", "5", "alice", time.Minute)))
	}
	touch := func(b *v1alpha1.Baseline) { at := before(0); b.Status.LastCheckTime = &at }
	move := func(b *v1alpha1.Baseline) { b.Status.Observed.Hash = "pl1:sha256:moved" }
	cases := map[string]struct {
		hooks interceptor.Funcs
		want  answer
	}{
		"status writes in between are retried": {racing(7, touch), answer{Stdout: "shop/deployment.apps/web acceptance requested\n"}},
		"a change in between is refused":       {racing(1, move), answer{Code: 1, Stderr: "error: shop/deployment.apps/web was not accepted: it changed since it was shown: now pl1:sha256:moved\n"}},
		"endless conflicts end":                {racing(1<<30, touch), answer{Code: 1, Stderr: "error: shop/deployment.apps/web was not accepted: its Baseline was written by others 100 times in a row; try again\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fakeCluster{objects: []client.Object{web()}, hooks: tc.hooks}.run(t, "", "accept", "deployment/web", "--wait", "0s")
			_, got.Stderr, _ = strings.Cut(got.Stderr, "by alice, 60s ago\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAccept_AsksBeforeBulk(t *testing.T) {
	cases := map[string]struct {
		stdin string
		args  []string
		code  int
		want  string // last line of standard error
		sent  bool
	}{
		"yes":                            {stdin: "y\n", sent: true, want: "Accept 3 object(s)? (y/N): "},
		"yes, in full":                   {stdin: "YES\n", sent: true, want: "Accept 3 object(s)? (y/N): "},
		"no":                             {stdin: "n\n", code: 1, want: "Accept 3 object(s)? (y/N): error: nothing was accepted\n"},
		"return alone is no":             {stdin: "\n", code: 1, want: "Accept 3 object(s)? (y/N): error: nothing was accepted\n"},
		"nobody there":                   {code: 1, want: "error: nothing was accepted: accepting in bulk needs a confirmation, and standard input is no terminal; use --yes\n"},
		"nobody there, but told":         {args: []string{"--yes"}, sent: true, want: "ago\n"},
		"a dry run asks nothing":         {args: []string{"--dry-run"}, want: "ago\n"},
		"a server dry run asks nothing":  {args: []string{"--dry-run=server"}, want: "ago\n"},
		"nothing to do needs no answer":  {args: []string{"--by", "zoe"}, want: ""},
		"a type that matches nothing":    {args: []string{"--since", "1s"}, want: ""},
		"a named object is not bulk":     {args: []string{"named"}, sent: true, want: "ago\n"},
		"several named ones are neither": {args: []string{"named", "named2"}, sent: true, want: "ago\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sent := 0
			f := fakeCluster{objects: fleet(), hooks: interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, options ...client.PatchOption) error {
					var o client.PatchOptions
					o.ApplyOptions(options)
					if len(o.DryRun) == 0 {
						sent++
					}
					return nil
				},
			}}
			args := append([]string{"accept", "--wait", "0s", "--all"}, tc.args...)
			if len(tc.args) > 0 && strings.HasPrefix(tc.args[0], "named") {
				args = []string{"accept", "--wait", "0s", "deployment/web", "deployment/fought"}[:3+len(tc.args)]
			}
			got := f.run(t, tc.stdin, args...)
			if got.Code != tc.code || !strings.HasSuffix(got.Stderr, tc.want) || (sent > 0) != tc.sent {
				t.Errorf("%q gave %+v and sent %d", args, got, sent)
			}
		})
	}
}

func TestAccept_BulkShowsWhatItIsAboutToAccept(t *testing.T) {
	got := fakeCluster{objects: fleet()}.run(t, "", "accept", "--all", "--dry-run")
	golden.Check(t, filepath.Join("testdata", "accept/bulk.txt"), got.Stderr+"--- stdout\n"+got.Stdout)
}
