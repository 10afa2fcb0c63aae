// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// unseenRules are the rules of guards, in order a, b, …, for a write that does not show
// the labels of the object.
func unseenRules(t *testing.T, edits ...func(*v1alpha1.GuardSpec)) Rules {
	var guards []*Guard
	for i, edit := range edits {
		guards = append(guards, mustGuard(t, GuardRef{Namespace: "shop", Name: string(rune('a' + i))}, edit))
	}
	return NewGuardSet(guards, nil, System{}).Rules(Query{Namespace: "shop", GVK: canon.ParseGVK("apps/v1", "Deployment"), LabelsUnknown: true, Now: testNow})
}

func TestAWarningSaysWhatAdmissionKnows(t *testing.T) {
	byLabel := func(s *v1alpha1.GuardSpec) {
		warnGuard(s)
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	trusting := func(guard func(*v1alpha1.GuardSpec)) func(*v1alpha1.GuardSpec) {
		return func(s *v1alpha1.GuardSpec) {
			guard(s)
			s.TrustedWriters.Users = append(s.TrustedWriters.Users, "alice")
		}
	}
	suspended := func(s *v1alpha1.GuardSpec) {
		warnGuard(s)
		s.Suspend = &v1alpha1.Suspension{Reason: "move", EndTime: metav1.NewTime(testNow.Add(time.Hour))}
	}
	paused := []diff.Change{change(t, "/spec/paused", "false", "true")}
	replicas := []diff.Change{change(t, "/spec/replicas", "1", "2")}
	four := append([]diff.Change{change(t, "/spec/minReadySeconds", "1", "2"), change(t, "/spec/revisionHistoryLimit", "1", "2")}, append(paused, replicas...)...)
	const accept = "a trusted writer has to make the change, or: kubectl plumbline accept -n shop deployment web"
	for name, tc := range map[string]struct {
		rules      Rules
		op         Operation
		changes    []diff.Change
		ofWorkload bool
		want       []string
	}{
		"a change": {rules: unseenRules(t, warnGuard), op: OperationUpdate, changes: paused, want: []string{
			"plumbline: this change is drift unless it restores the baseline: /spec/paused",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a change of many fields": {rules: unseenRules(t, warnGuard), op: OperationUpdate, changes: four, want: []string{
			"plumbline: this change is drift unless it restores the baseline: /spec/minReadySeconds, /spec/revisionHistoryLimit, /spec/paused and 1 more",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a creation": {rules: unseenRules(t, warnGuard), op: OperationCreate, want: []string{
			"plumbline: this creation is drift unless it restores the baseline",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a deletion": {rules: unseenRules(t, warnGuard), op: OperationDelete, want: []string{
			"plumbline: this deletion is drift unless it restores the baseline",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"an operation that is not registered": {rules: unseenRules(t, warnGuard), op: "CONNECT", want: []string{
			"plumbline: this write is drift unless it restores the baseline",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a scale under a guard that selects by label": {rules: unseenRules(t, byLabel), op: OperationUpdate, changes: replicas, want: []string{
			"plumbline: if a guard selects this object by label, this change is drift unless it restores the baseline: /spec/replicas",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a scale under such a guard and one that surely selects": {rules: unseenRules(t, byLabel, warnGuard), op: OperationUpdate, changes: replicas, want: []string{
			"plumbline: this change is drift unless it restores the baseline: /spec/replicas",
			`plumbline: "alice" is not trusted by SpecGuard/a, SpecGuard/b; ` + accept,
		}},
		"a scale by a writer whom the guard trusts that surely selects": {rules: unseenRules(t, byLabel, trusting(warnGuard)), op: OperationUpdate, changes: replicas, want: []string{
			"plumbline: if a guard selects this object by label, this change is drift unless it restores the baseline: /spec/replicas",
			`plumbline: "alice" is not trusted by SpecGuard/a; ` + accept,
		}},
		"a writer whom only a suspended guard does not trust": {rules: unseenRules(t, trusting(warnGuard), suspended), op: OperationUpdate, changes: paused, want: []string{
			"plumbline: this change is drift unless it restores the baseline: /spec/paused",
			`plumbline: "alice" is not trusted by SpecGuard/b; ` + accept,
		}},
		"a pod of a workload": {rules: unseenRules(t, warnGuard), op: OperationUpdate, changes: paused, ofWorkload: true, want: []string{
			"plumbline: this change makes the pod differ from its workload and is recorded: /spec/paused",
			`plumbline: "alice" is not trusted by SpecGuard/a; a trusted writer has to make the change`,
		}},
		"a pod of a workload that a guard may select": {rules: unseenRules(t, byLabel), op: OperationUpdate, changes: paused, ofWorkload: true, want: []string{
			"plumbline: if a guard selects the workload by label, this change makes the pod differ from its workload and is recorded: /spec/paused",
			`plumbline: "alice" is not trusted by SpecGuard/a; a trusted writer has to make the change`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.rules, Review{
				Operation: tc.op, Kind: "Deployment", Namespace: "shop", Name: "web",
				Identity: Identity{User: "alice"}, OfWorkload: tc.ofWorkload, Changes: tc.changes,
			})
			if diff := cmp.Diff(tc.want, got.Warnings); diff != "" || got.Outcome != OutcomeWarn {
				t.Errorf("%s, warnings (-want +got):\n%s", got.Outcome, diff)
			}
		})
	}
}
