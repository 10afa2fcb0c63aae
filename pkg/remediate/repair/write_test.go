// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

const (
	authorized = `{"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:1","name":"app"}]}}}}`
	live       = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u-1","resourceVersion":"41","generation":7,"annotations":{"note":"12345678901234567890"}},` +
		`"spec":{"replicas":7,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"evil:1","name":"app"},{"image":"miner:1","name":"extra"}]}}},` +
		`"status":{"observedGeneration":7,"huge":9007199254740993}}`
)

// rules of one guard of Deployments.
func rules(t *testing.T) specguard.Rules {
	t.Helper()
	spec := v1alpha1.GuardSpec{
		Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
		Ignore:    []string{"/spec/revisionHistoryLimit"},
	}
	guard, errs := specguard.Compile(specguard.GuardRef{Namespace: "shop", Name: "web"}, spec, nil, time.Time{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	set := specguard.NewGuardSet([]*specguard.Guard{guard}, nil, specguard.System{})
	return set.Rules(specguard.Query{Namespace: "shop", GVK: deployment, Labels: []map[string]string{{}}, Now: time.Unix(0, 0)})
}

func standard(t *testing.T, masks ...string) *repair.Standard {
	t.Helper()
	s := &repair.Standard{GVK: deployment, Rules: rules(t), Authorized: []byte(authorized), Desired: []byte(authorized)}
	if s.Rules.Empty() {
		t.Fatal("the guard selects nothing")
	}
	for _, path := range masks {
		s.Masks = append(s.Masks, v1alpha1.Mask{Path: path})
	}
	return s
}

func hash(t *testing.T, body string) string {
	t.Helper()
	h, err := specguard.GuardedHash([]byte(body), deployment, rules(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func target(t *testing.T, action v1alpha1.RemediationAction) *v1alpha1.PlanTarget {
	t.Helper()
	return &v1alpha1.PlanTarget{
		BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		UID:            "u-1", Action: action, DriftedHash: hash(t, live), DesiredHash: hash(t, authorized), RevisionHash: hash(t, authorized),
	}
}

var marks = repair.Marks{PlanUID: "p-1", Step: 2, Token: "p-1-2"}

func tree(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return out
}

func TestWritePutsTheDriftedPathsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		action v1alpha1.RemediationAction
		masks  []string
		want   string // the spec
		hashes bool   // as desired
	}{
		"all that differs is put back": {
			v1alpha1.ActionReconcile, nil,
			`{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:1","name":"app"}]}}}`, true,
		},
		"what an expected writer moved stays: seven replicas stay seven": {
			v1alpha1.ActionReconcile,
			[]string{"/spec/replicas"},
			`{"replicas":7,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:1","name":"app"}]}}}`, true,
		},
		"a rollback does the same to another body": {
			v1alpha1.ActionRollback, nil,
			`{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:1","name":"app"}]}}}`, true,
		},
		"scaling touches the replicas alone": {
			v1alpha1.ActionScale, nil,
			`{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"evil:1","name":"app"},{"image":"miner:1","name":"extra"}]}}}`, false,
		},
		"a restart sets its mark alone": {
			v1alpha1.ActionRestart, nil,
			`{"replicas":7,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"p-1-2"},"labels":{"app":"web"}},"spec":{"containers":[{"image":"evil:1","name":"app"},{"image":"miner:1","name":"extra"}]}}}`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := standard(t, tc.masks...)
			out, err := repair.Write([]byte(live), target(t, tc.action), s, marks)
			if err != nil {
				t.Fatal(err)
			}
			got := tree(t, out)
			if d := cmp.Diff(tree(t, []byte(tc.want)), got["spec"]); d != "" {
				t.Errorf("spec (-want +got):\n%s", d)
			}
			metadata := got["metadata"].(map[string]any)
			if metadata["uid"] != "u-1" || metadata["resourceVersion"] != "41" {
				t.Errorf("the write is not bound to what was read: %v", metadata)
			}
			if d := cmp.Diff(map[string]any{"plumbline.dev/plan": "p-1", "plumbline.dev/step": "2"}, metadata["labels"]); d != "" {
				t.Errorf("marks (-want +got):\n%s", d)
			}
			h, err := s.Hash(out, target(t, tc.action))
			if err != nil {
				t.Fatal(err)
			}
			if (h == hash(t, authorized)) != tc.hashes {
				t.Errorf("the hash is %s, that of the authorized body %s", h, hash(t, authorized))
			}
		})
	}
}

func TestWriteKeepsEveryDigit(t *testing.T) {
	out, err := repair.Write([]byte(live), target(t, v1alpha1.ActionReconcile), standard(t), marks)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Status struct{ Huge json.Number }
	}
	if err := json.Unmarshal(out, &object); err != nil || object.Status.Huge != "9007199254740993" {
		t.Errorf("a number changed: %v, %v", object.Status.Huge, err)
	}
}

func TestARestartLeavesTheGuardedHashAlone(t *testing.T) {
	s := standard(t)
	out, err := repair.Write([]byte(live), target(t, v1alpha1.ActionRestart), s, marks)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Hash(out, target(t, v1alpha1.ActionRestart))
	if err != nil || h != hash(t, live) {
		t.Errorf("the hash became %s, %v", h, err)
	}
	if got := repair.RestartedFor(out, deployment); got != marks.Token {
		t.Errorf("restarted for %q", got)
	}
	again, err := repair.Write(out, target(t, v1alpha1.ActionRestart), s, marks)
	if err != nil || string(again) != string(out) {
		t.Errorf("a second restart of the same step changes something (%v):\n%s\n%s", err, out, again)
	}
}

// An object need not have the maps that a mark stands in.
func TestAMarkMakesTheMapsAroundIt(t *testing.T) {
	const annotations = `"annotations":{"kubectl.kubernetes.io/restartedAt":"p-1-2"}`
	for name, tc := range map[string]struct{ spec, want string }{
		"beside other annotations":   {`{"template":{"metadata":{"annotations":{"note":"a"}}}}`, `{"template":{"metadata":{"annotations":{"note":"a","kubectl.kubernetes.io/restartedAt":"p-1-2"}}}}`},
		"without annotations":        {`{"template":{"metadata":{"labels":{"app":"web"}}}}`, `{"template":{"metadata":{"labels":{"app":"web"},` + annotations + `}}}`},
		"without metadata":           {`{"template":{"spec":{}}}`, `{"template":{"spec":{},"metadata":{` + annotations + `}}}`},
		"without a template":         {`{"replicas":3}`, `{"replicas":3,"template":{"metadata":{` + annotations + `}}}`},
		"with null instead of a map": {`{"template":{"metadata":null}}`, `{"template":{"metadata":{` + annotations + `}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := repair.Write([]byte(`{"spec":`+tc.spec+`}`), target(t, v1alpha1.ActionRestart), standard(t), marks)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"metadata":{"labels":{"plumbline.dev/plan":"p-1","plumbline.dev/step":"2"}},"spec":` + tc.want + `}`
			if d := cmp.Diff(tree(t, []byte(want)), tree(t, out)); d != "" {
				t.Errorf("the object (-want +got):\n%s", d)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	cronJob := standard(t)
	cronJob.GVK = canon.GVK{Group: "batch", Version: "v1", Kind: "CronJob"}
	for name, tc := range map[string]struct {
		action v1alpha1.RemediationAction
		s      *repair.Standard
		want   error
	}{
		"to restart what has no pods of its own": {v1alpha1.ActionRestart, cronJob, repair.ErrNotRestartable},
		"to write for who only notifies":         {v1alpha1.ActionNotifyOnly, standard(t), repair.ErrNoWrite},
		"an action that nobody knows":            {"Explode", standard(t), repair.ErrNoWrite},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := repair.Write([]byte(live), target(t, tc.action), tc.s, marks)
			if !errors.Is(err, tc.want) || out != nil {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
}

func TestOnlyTheBodyThatThePlanNamesIsIntact(t *testing.T) {
	plan := target(t, v1alpha1.ActionReconcile)
	for name, tc := range map[string]struct {
		body string
		want bool
	}{
		"the very body":                       {authorized, true},
		"one with another image":              {`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"image":"evil:1","name":"app"}]}}}}`, false},
		"no JSON":                             {`{`, false},
		"none":                                {``, false},
		"one that differs in what is ignored": {`{"spec":{"revisionHistoryLimit":5,` + authorized[len(`{"spec":{`):], true},
	} {
		t.Run(name, func(t *testing.T) {
			s := standard(t)
			s.Desired = []byte(tc.body)
			if tc.body == "" {
				s.Desired = nil
			}
			if got := s.Intact(plan); got != tc.want {
				t.Errorf("intact: %t", got)
			}
		})
	}
}

func TestAFenceAlwaysChangesSomething(t *testing.T) {
	first, err := repair.Fence([]byte(live), deployment, marks, "41")
	if err != nil {
		t.Fatal(err)
	}
	second, err := repair.Fence(first, deployment, marks, "42")
	if err != nil {
		t.Fatal(err)
	}
	if string(first) == string(second) {
		t.Error("the second fence of a step is a write that changes nothing, and fences nothing")
	}
	if d := cmp.Diff(tree(t, []byte(live))["spec"], tree(t, second)["spec"]); d != "" {
		t.Errorf("a fence changes the spec (-want +got):\n%s", d)
	}
}

func TestCreationMakesWhatWasAuthorized(t *testing.T) {
	plan := target(t, v1alpha1.ActionReconcile)
	plan.UID = ""
	s := standard(t)
	s.Metadata = &v1alpha1.ObservedMetadata{
		Labels:      map[string]string{"team": "web", "plumbline.dev/plan": "of-before", "plumbline.dev/fence": "p-0.1"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "shop"},
	}
	notAfter := time.Date(2026, 3, 2, 11, 0, 44, 500_000_000, time.FixedZone("CET", 3600))
	out, err := repair.Creation("shop", plan, s, marks, notAfter)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(out, &object); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"team": "web", "plumbline.dev/plan": "p-1", "plumbline.dev/step": "2"}
	if object.Kind != "Deployment" || object.Name != "web" || object.Namespace != "shop" || !cmp.Equal(want, object.Labels) {
		t.Errorf("made %s", out)
	}
	annotations := map[string]string{"meta.helm.sh/release-name": "shop", "plumbline.dev/not-after": "2026-03-02T10:00:44Z"}
	if diff := cmp.Diff(annotations, object.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(s.Metadata.Annotations) != 1 {
		t.Errorf("what the object was last seen with became %v", s.Metadata.Annotations)
	}
	if h := hash(t, string(out)); h != plan.DesiredHash {
		t.Errorf("its hash is %s", h)
	}
}

func TestUnderMasksARollbackIsMeasuredByItsOwnBody(t *testing.T) {
	const older = `{"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"shop:0","name":"app"}]}}}}`
	s := standard(t, "/spec/replicas")
	s.Desired = []byte(older)
	plan := target(t, v1alpha1.ActionRollback)
	plan.DesiredHash, plan.RevisionHash = hash(t, older), hash(t, older)
	out, err := repair.Write([]byte(live), plan, s, marks)
	if err != nil {
		t.Fatal(err)
	}
	if replicas := tree(t, out)["spec"].(map[string]any)["replicas"]; replicas != 7.0 {
		t.Errorf("the autoscaler's replicas became %v", replicas)
	}
	if h, err := s.Hash(out, plan); err != nil || h != plan.DesiredHash {
		t.Errorf("after the rollback the hash is %s, %v; desired is %s", h, err, plan.DesiredHash)
	}
}
