// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestNames(t *testing.T) {
	if got := BaselineName("deployments", "apps", "web"); got != "deployments.apps.web" {
		t.Error(got)
	}
	if got := BaselineName("pods", "", "web"); got != "pods.core.web" {
		t.Error(got)
	}
	if got := RevisionName("deployments.apps.web", 7); got != "deployments.apps.web-7" {
		t.Error(got)
	}
	long := BaselineName("deployments", "apps", strings.Repeat("a", 253))
	other := BaselineName("deployments", "apps", strings.Repeat("a", 252)+"b")
	if len(long) != 217 || long == other {
		t.Errorf("%d bytes: %s, %s", len(long), long, other)
	}
	for _, name := range []string{long, RevisionName(long, 1<<40), RevisionName(strings.Repeat("b", 253), 1)} {
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

func TestIsRoot(t *testing.T) {
	yes := true
	owner := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Controller: &yes}}
	}
	replicaSet := canon.GVK{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	deployment := canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	tests := map[string]struct {
		op       Operation
		object   canon.GVK
		old, now []metav1.OwnerReference
		want     bool
	}{
		"a Deployment":                         {op: OperationCreate, object: deployment, want: true},
		"a ReplicaSet of a Deployment":         {op: OperationCreate, object: replicaSet, now: owner("apps/v1", "Deployment")},
		"a ReplicaSet on its own":              {op: OperationCreate, object: replicaSet, want: true},
		"a ReplicaSet of a custom kind":        {op: OperationCreate, object: replicaSet, now: owner("argoproj.io/v1alpha1", "Rollout"), want: true},
		"a Deployment owned by a ConfigMap":    {op: OperationUpdate, object: deployment, old: owner("v1", "ConfigMap"), now: owner("v1", "ConfigMap"), want: true},
		"an owner added by the write itself":   {op: OperationUpdate, object: replicaSet, now: owner("apps/v1", "Deployment"), want: true},
		"an owner taken off by the write":      {op: OperationUpdate, object: replicaSet, old: owner("apps/v1", "Deployment")},
		"a deletion is judged by the old":      {op: OperationDelete, object: replicaSet, old: owner("apps/v1", "Deployment")},
		"a group that only sounds like it":     {op: OperationCreate, object: replicaSet, now: owner("apps.example/v1", "Deployment"), want: true},
		"an owner that is no controller":       {op: OperationCreate, object: replicaSet, now: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment"}}, want: true},
		"a Pod of a Job":                       {op: OperationCreate, object: canon.GVK{Version: "v1", Kind: "Pod"}, now: owner("batch/v1", "Job")},
		"a Job of a CronJob":                   {op: OperationCreate, object: canon.GVK{Group: "batch", Version: "v1", Kind: "Job"}, now: owner("batch/v1", "CronJob")},
		"a custom kind that calls itself Pod.": {op: OperationCreate, object: canon.GVK{Group: "x.example", Kind: "Pod"}, now: owner("batch/v1", "Job"), want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsRoot(tc.op, tc.object, tc.old, tc.now); got != tc.want {
				t.Errorf("root: %t", got)
			}
		})
	}
}

func TestBenignPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt":  true,
		"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration": true,
		"/metadata/annotations/deployment.kubernetes.io~1revision":                true,
		"/spec/template/metadata/annotations":                                     false,
		"/spec/template/metadata/annotations/restartedAt":                         false,
	} {
		if got := covered(benignPaths, mustPath(t, path)); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func TestManagedFieldsAreEvidence(t *testing.T) {
	early, late := metav1.NewTime(testNow), metav1.NewTime(testNow.Add(time.Minute))
	entry := func(manager, sub string, at *metav1.Time, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: sub, Time: at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	entries := []metav1.ManagedFieldsEntry{
		entry("apply", "", &early, `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{}}}}}}}}`),
		entry("set", "", &late, `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`),
		entry("set", "", &late, `not JSON`), {Manager: "no fields"},
	}
	tests := map[string]struct {
		entries      []metav1.ManagedFieldsEntry
		path         string
		manager, sub string
		main         bool
	}{
		"the latest owner":           {entries: entries, path: "/spec/template/spec/containers/[name=app]/image", manager: "set", main: true},
		"the only owner":             {entries: entries, path: "/spec/template/spec/containers/[name=app]/ports/[containerPort=80,protocol=TCP]", manager: "apply", main: true},
		"another element":            {entries: entries, path: "/spec/template/spec/containers/[name=log]/image"},
		"an element of a set":        {entries: []metav1.ManagedFieldsEntry{entry("a", "", nil, `{"f:list":{"v:\"x\"":{}}}`)}, path: "/list/[=x]", manager: "a", main: true},
		"/scale, which has no time":  {entries: append(entries[:1:1], entry("kubectl", "scale", nil, replicas)), path: "/spec/replicas", manager: "kubectl", sub: "scale"},
		"the main resource":          {entries: []metav1.ManagedFieldsEntry{entry("apply", "", &early, replicas)}, path: "/spec/replicas", manager: "apply", main: true},
		"a list that was cleared":    {path: "/spec/replicas"},
		"the whole object is nobody": {entries: entries},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := mustPath(t, tc.path)
			manager, sub, _ := managerOf(tc.entries, path)
			if manager != tc.manager || sub != tc.sub || mainOwns(tc.entries, path) != tc.main {
				t.Errorf("manager %q of %q, main %t", manager, sub, mainOwns(tc.entries, path))
			}
		})
	}
}

func TestThroughSubresource(t *testing.T) {
	kinds := map[string]canon.GVK{
		"Deployment": {Group: "apps", Kind: "Deployment"}, "DaemonSet": {Group: "apps", Kind: "DaemonSet"},
		"Pod": {Kind: "Pod"}, "Custom": {Group: "x.example", Kind: "Custom"}, "HPA": {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		"Approved": {Group: "agents.k8s.io", Kind: "Sandbox"}, "Beside": {Group: "networking.k8s.io", Kind: "Custom"},
	}
	for name, tc := range map[string]struct {
		kind, path, before, after string
		want                      bool
		scale                     ScaleSubresource
	}{
		"replicas of a Deployment":        {"Deployment", "/spec/replicas", "1", "2", true, ScaleUnknown},
		"replicas, as discovery tells":    {"Deployment", "/spec/replicas", "1", "2", true, ScaleServed},
		"its image":                       {"Deployment", "/spec/template/spec/containers/[name=a]/image", `"a"`, `"b"`, false, ScaleServed},
		"another number of a Deployment":  {"Deployment", "/spec/minReadySeconds", "1", "2", false, ScaleServed},
		"a DaemonSet has no scale":        {"DaemonSet", "/spec/replicas", "1", "2", false, ScaleUnknown},
		"an autoscaler has none either":   {"HPA", "/spec/minReplicas", "1", "2", false, ScaleUnknown},
		"a built-in kind that gains one":  {"HPA", "/spec/minReplicas", "1", "2", true, ScaleServed},
		"any number of a custom kind":     {"Custom", "/spec/size", "1", "2", true, ScaleUnknown},
		"a custom kind with scale":        {"Custom", "/spec/size", "1", "2", true, ScaleServed},
		"a custom kind without scale":     {"Custom", "/spec/size", "1", "2", false, ScaleNotServed},
		"but no text":                     {"Custom", "/spec/size", `"1"`, `"2"`, false, ScaleServed},
		"a custom kind of k8s.io":         {"Approved", "/spec/size", "1", "2", true, ScaleUnknown},
		"a custom kind of a known group":  {"Beside", "/spec/size", "1", "2", true, ScaleUnknown},
		"an ephemeral container of a Pod": {"Pod", "/spec/ephemeralContainers/[name=x]", "", `{}`, true, ScaleNotServed},
		"a Pod resized":                   {"Pod", "/spec/containers/[name=a]/resources/limits/cpu", `"1"`, `"2"`, true, ScaleNotServed},
		"a Pod's image":                   {"Pod", "/spec/containers/[name=a]/image", `"a"`, `"b"`, false, ScaleNotServed},
	} {
		s := &step{gvk: kinds[tc.kind], in: Input{Scale: tc.scale}}
		if got := s.throughSubresource(change(t, tc.path, tc.before, tc.after)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestStatusIsBounded(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	var edits strings.Builder
	for i := range 700 {
		n := string(rune('A'+i/26%26)) + string(rune('A'+i%26)) + strings.Repeat("x", i/676)
		edits.WriteString("/spec/template/spec/containers/[name=app]/env/[name=" + n + `] = {"name":"` + n + `","value":"` + strings.Repeat("é", 800) + "\"}\n")
	}
	w.update(write{user: "alice", changes: parseChanges(t, w.live.Body, w.gvk, edits.String())})
	w.observe(false, false)
	var status v1alpha1.BaselineStatus
	w.state.WriteStatus(&status)
	if len(status.Findings) != maxFindings || status.FindingsTotal != 700 || len(w.state.Findings) != maxTracked {
		t.Errorf("%d findings shown of %d, %d tracked", len(status.Findings), status.FindingsTotal, len(w.state.Findings))
	}
	for _, f := range status.Findings {
		if len(f.After) > maxValue || len(f.Path) > maxValue || len(f.Digest) > 64 {
			t.Fatalf("a finding of %d, %d, %d bytes", len(f.Path), len(f.After), len(f.Digest))
		}
	}
	for _, e := range w.effects {
		if event, ok := e.(Event); ok && len(event.Message) > maxMessageBytes {
			t.Errorf("an event of %d bytes", len(event.Message))
		}
	}
	// What was cut off is not known after a restart, so a trusted write in the gap
	// authorizes nothing.
	w.update(write{user: user("ci"), record: "no", changes: parseChanges(t, w.live.Body, w.gvk, "/spec/paused = true")})
	number := w.state.Authorized.Number
	w.restart()
	w.observe(true, false)
	if w.state.Authorized.Number != number {
		t.Error("a gap of which too little is known authorized something")
	}
}

func TestStepAsksForTheBody(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	present := func() Present {
		return Present{Version: w.live, UID: w.uidText(), CreatedAt: w.createdAt, SeenAt: w.now}
	}
	st := w.state
	st.Body = nil
	if NeedsBody(st, present(), w.rules, nil) {
		t.Error("an object in sync needs its body")
	}
	r, err := Step(Input{State: st, Observation: present(), Rules: w.rules, Now: w.now.Add(time.Hour), Config: w.config})
	if err != nil || r.State.Drift != v1alpha1.StateInSync || !r.State.CheckedAt.Equal(w.now.Add(time.Hour)) {
		t.Errorf("a check without the body: %v, %s at %s", err, r.State.Drift, r.State.CheckedAt)
	}
	if NeedsBody(State{}, present(), w.rules, nil) {
		t.Error("an object of which no body is authorized needs one")
	}
	if !NeedsBody(st, present(), w.rules, &v1alpha1.AcceptRequest{Hash: "x"}) {
		t.Error("an accept does not need the body")
	}
	unreadable := present()
	unreadable.Body = []byte("{")
	if !NeedsBody(st, unreadable, w.rules, nil) {
		t.Error("an object that cannot be read does not need the body")
	}
	w.update(write{user: "alice", changes: []diff.Change{change(t, "/spec/paused", "false", "true")}})
	if !NeedsBody(st, present(), w.rules, nil) {
		t.Error("a changed object does not need the body")
	}
	in := Input{State: st, Observation: present(), Rules: w.rules, Now: w.now, Config: w.config}
	r, err = Step(in)
	if !errors.Is(err, ErrBodyNeeded) {
		t.Errorf("error %v", err)
	}
	if d := cmp.Diff(st, r.State, cmp.AllowUnexported(State{}, pendingWrite{}, trailEntry{})); d != "" {
		t.Errorf("the state changed with an error:\n%s", d)
	}
	in.State.Body = []byte("{")
	if r, err = Step(in); err != nil || r.State.Drift != v1alpha1.StateUnknown || !r.State.BodyLost {
		t.Errorf("a body that cannot be read: %v, %s", err, r.State.Drift)
	}
}

func TestBadObservationsAreUnknown(t *testing.T) {
	for name, o := range map[string]Observation{
		"a body with duplicate keys": Present{Version: Version{Body: []byte(`{"spec":{"a":1,"a":2}}`)}, UID: "u"},
		"nothing":                    nil,
		"a failed read":              Unknown{Why: "timeout"},
	} {
		w := newWorld(t)
		w.guard("shop", testGuardSpec(), w.now)
		w.create(write{user: user("ci")}, testDeployment)
		w.observe(false, false)
		before := w.state
		w.step(o, &v1alpha1.AcceptRequest{Hash: HashAbsent, RequestedBy: "mallory"})
		if w.state.Drift != v1alpha1.StateUnknown {
			t.Errorf("%s: %s", name, w.state.Drift)
		}
		before.Drift = v1alpha1.StateUnknown
		if d := cmp.Diff(before, w.state, cmp.AllowUnexported(State{}, pendingWrite{}, trailEntry{})); d != "" {
			t.Errorf("%s changed more than the state:\n%s", name, d)
		}
	}
}

func TestASuspendedGuardJudgesNothing(t *testing.T) {
	w := newWorld(t)
	w.guard("shop", testGuardSpec(), w.now)
	w.create(write{user: user("ci")}, testDeployment)
	w.observe(false, false)
	rules, before := w.rules, w.state
	w.rules = Rules{}
	w.update(write{user: "alice", changes: []diff.Change{change(t, "/spec/paused", "false", "true")}})
	w.observe(false, false)
	if d := cmp.Diff(before, w.state, cmp.AllowUnexported(State{}, pendingWrite{}, trailEntry{})); d != "" {
		t.Errorf("the state changed under no guard:\n%s", d)
	}
	w.rules = rules
	w.observe(false, false)
	if w.state.Drift != v1alpha1.StateDrifted || w.state.Findings[0].Actor.User != "alice" {
		t.Errorf("after the suspension: %s %v", w.state.Drift, w.state.Findings)
	}
}

func TestRetention(t *testing.T) {
	st := State{RetiredAt: testNow, Observed: v1alpha1.ObservedState{Hash: HashAbsent}}
	if RetentionOver(st, time.Hour, testNow.Add(time.Hour-1)) || !RetentionOver(st, time.Hour, testNow.Add(time.Hour)) {
		t.Error("retention ends at another time")
	}
	st.Observed.Hash = "pl1:sha256:00"
	if RetentionOver(st, time.Hour, testNow.Add(time.Hour)) || RetentionOver(State{}, 0, testNow) {
		t.Error("a Baseline whose object is there is removed")
	}
}

func TestDigestsTellKeysApart(t *testing.T) {
	a, b := &step{in: Input{Config: Config{Key: []byte("a")}}}, &step{in: Input{Config: Config{Key: []byte("b")}}}
	value := []byte(`"hunter2"`)
	if a.digest(value) == b.digest(value) || b.comparable(a.digest(value)) || !a.comparable(a.digest(value)) {
		t.Error("digests of two keys compare")
	}
	if a.digest(nil) == a.digest([]byte{}) || a.digest(value) != a.digest([]byte(`"hunter2"`)) {
		t.Error("absent and empty are the same")
	}
	if none := (&step{}); none.digest(value) != "" || none.comparable("") {
		t.Error("without a key something compares")
	}
}

func TestOnlyARecordOfAScaleTellsReplicas(t *testing.T) {
	three := int32(3)
	for name, tc := range map[string]struct {
		record   WriteRecord
		replicas string
		want     bool
	}{
		"a scale to that number":           {WriteRecord{Subresource: "scale", Replicas: &three}, "3", true},
		"a scale to another one":           {WriteRecord{Subresource: "scale", Replicas: &three}, "4", false},
		"a write of another subresource":   {WriteRecord{Subresource: "status", Replicas: &three}, "3", false},
		"a write of the object itself":     {WriteRecord{Replicas: &three}, "3", false},
		"a scale that says no number":      {WriteRecord{Subresource: "scale"}, "3", false},
		"a scale, of a write that is none": {WriteRecord{Subresource: "scale", Replicas: &three}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.record.scaledTo(tc.replicas); got != tc.want {
				t.Errorf("it is %t", got)
			}
		})
	}
}
