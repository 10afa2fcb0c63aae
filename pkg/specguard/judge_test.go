// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func warnGuard(s *v1alpha1.GuardSpec) {
	*s = testGuardSpec()
	s.Resources, s.Mode = deployments, v1alpha1.GuardModeWarn
	s.Ignore = []string{"/spec/strategy"}
}

func auditGuard(s *v1alpha1.GuardSpec) {
	warnGuard(s)
	s.Mode = v1alpha1.GuardModeAudit
}

func change(t testing.TB, path, before, after string) diff.Change {
	c := diff.Change{Path: mustPath(t, path), Op: diff.Changed, Before: []byte(before), After: []byte(after)}
	if before == "" {
		c.Op, c.Before = diff.Added, nil
	}
	return c
}

func TestJudge(t *testing.T) {
	const restartedAt = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt"
	replicas := change(t, "/spec/replicas", "1", "2")
	paused := change(t, "/spec/paused", "false", "true")
	tests := map[string]struct {
		rules Rules
		op    Operation
		user  string
		with  []diff.Change
		want  Verdict
	}{
		"without a guard": {op: OperationUpdate, user: "alice", with: []diff.Change{paused},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorUnknown, Mode: v1alpha1.GuardModeAudit}},
		"a trusted change": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "ci", with: []diff.Change{paused},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorTrusted, Mode: v1alpha1.GuardModeWarn, Fields: []string{"/spec/paused"}, FieldsTotal: 1}},
		"an expected change": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "hpa", with: []diff.Change{replicas},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorExpected, Mode: v1alpha1.GuardModeWarn, Fields: []string{"/spec/replicas"}, FieldsTotal: 1}},
		"an expected writer elsewhere too": {rules: rulesOf(t, auditGuard), op: OperationUpdate, user: "hpa", with: []diff.Change{replicas, paused},
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit, Fields: []string{"/spec/paused", "/spec/replicas"}, FieldsTotal: 2, Drift: 1}},
		"a foreign change, silently": {rules: rulesOf(t, auditGuard), op: OperationUpdate, user: "alice", with: []diff.Change{paused},
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit, Fields: []string{"/spec/paused"}, FieldsTotal: 1, Drift: 1}},
		"a rollout restart": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "alice", with: []diff.Change{change(t, restartedAt, "", `"now"`)},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeWarn, Benign: true}},
		"the first rollout restart, which makes the annotations": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "alice",
			with: []diff.Change{change(t, "/spec/template/metadata/annotations", "", `{"kubectl.kubernetes.io/restartedAt":"now"}`)},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeWarn, Benign: true}},
		"a restart that brings another annotation": {rules: rulesOf(t, auditGuard), op: OperationUpdate, user: "alice",
			with: []diff.Change{change(t, "/spec/template/metadata/annotations", "", `{"kubectl.kubernetes.io/restartedAt":"now","note":"x"}`)},
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit,
				Fields: []string{"/spec/template/metadata/annotations/note"}, FieldsTotal: 1, Drift: 1}},
		"an ignored field": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "alice", with: []diff.Change{change(t, "/spec/strategy/type", `"a"`, `"b"`)},
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeWarn, Benign: true}},
		"nothing at all": {rules: rulesOf(t, warnGuard), op: OperationUpdate, user: "alice",
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeWarn}},
		"a foreign creation, silently": {rules: rulesOf(t, auditGuard), op: OperationCreate, user: "alice",
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit, Drift: 1}},
		"the garbage collector": {rules: rulesOf(t, warnGuard), op: OperationDelete, user: "gc",
			want: Verdict{Outcome: OutcomeAllow, Class: v1alpha1.ActorSystem, Mode: v1alpha1.GuardModeWarn}},
		"an expected writer deletes": {rules: rulesOf(t, auditGuard), op: OperationDelete, user: "hpa",
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit, Drift: 1}},
		"an operation nobody registered": {rules: rulesOf(t, auditGuard), op: "CONNECT", user: "alice",
			want: Verdict{Outcome: OutcomeAudit, Class: v1alpha1.ActorUntrusted, Mode: v1alpha1.GuardModeAudit, Drift: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.rules, Review{Operation: tc.op, Kind: "Deployment", Namespace: "shop", Name: "web", Identity: Identity{User: user(tc.user)}, Changes: tc.with})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerdictsAreBounded(t *testing.T) {
	r := Review{Operation: OperationUpdate, Kind: strings.Repeat("K", 300), Name: strings.Repeat("n", 253), Identity: Identity{User: strings.Repeat("é", 500)}}
	for i := range 200 {
		r.Changes = append(r.Changes, change(t, fmt.Sprintf("/spec/%s/f%03d", strings.Repeat("x", 200), i), "1", "2"))
	}
	v := Judge(rulesOf(t, warnGuard), r)
	if len(v.Fields) != 64 || v.FieldsTotal != 200 || v.Drift != 200 {
		t.Errorf("%d fields of %d, %d drift", len(v.Fields), v.FieldsTotal, v.Drift)
	}
	for _, text := range v.Warnings {
		if len(text) > maxWarningBytes || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}
