// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

func TestNext_CreatesAClone(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkCreateClone, 2)
	last, _ := w.carry(t)
	if last.Kind != work.End || w.work.Status.Phase != v1alpha1.WorkSucceeded || w.writes != 1 {
		t.Fatalf("got %+v after %d writes", w.work.Status, w.writes)
	}
	if imageOf(t, w.clone) != "shop:2" || clone.Replicas(w.clone) != 2 || w.clone.GetLabels()[v1alpha1.LabelReleaseWork] != "w-uid" {
		t.Errorf("the clone is not what the release gives: %v", w.clone)
	}
	if imageOf(t, w.baseline) != "shop:1" {
		t.Error("the baseline was changed")
	}
	want := v1alpha1.ReleaseWorkStatus{
		ObservedGeneration: 1, Phase: v1alpha1.WorkSucceeded, StartTime: new(metav1.NewTime(now)), EndTime: new(metav1.NewTime(now)),
		TargetRef:    &v1alpha1.ReleaseWorkTarget{Kind: v1alpha1.WorkTargetDeployment, Name: "web-canary", UID: string(w.clone.GetUID())},
		TemplateHash: hashOf(t, w.clone),
		Intent:       &v1alpha1.ReleaseWorkIntent{TemplateHash: hashOf(t, w.clone), StorageTime: metav1.NewTime(now)},
		Result:       &v1alpha1.ReleaseWorkResult{ResourceVersion: w.clone.GetResourceVersion(), Origin: v1alpha1.ResultResponse},
	}
	if diff := cmp.Diff(want, w.work.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestNext_UpdatesTheBaseline(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0).withClone(t, 6)
	w.baseline.SetLabels(map[string]string{"app": "web", evidence.LabelPlan: "p-1", evidence.LabelStep: "0", evidence.LabelFence: "p-0.1"})
	w.carry(t)
	if diff := cmp.Diff(map[string]string{"app": "web", v1alpha1.LabelReleaseWork: "w-uid"}, w.baseline.GetLabels()); diff != "" {
		t.Errorf("labels, without the marks of a plan's write (-want +got):\n%s", diff)
	}
	if w.work.Status.Phase != v1alpha1.WorkSucceeded || imageOf(t, w.baseline) != "shop:2" || clone.Replicas(w.baseline) != 6 || w.writes != 1 {
		t.Errorf("got %+v, %v", w.work.Status, w.baseline)
	}
}

// TestNext_Ends tells how works end that write nothing, or less than they ask for.
func TestNext_Ends(t *testing.T) {
	const create, scale, update = v1alpha1.WorkCreateClone, v1alpha1.WorkScale, v1alpha1.WorkUpdateBaseline
	refused, pending, succeeded := v1alpha1.WorkRefused, v1alpha1.WorkPending, v1alpha1.WorkSucceeded
	cases := map[string]struct {
		verb     v1alpha1.ReleaseWorkVerb
		replicas int32
		change   func(*world)
		phase    v1alpha1.ReleaseWorkPhase
		reason   v1alpha1.ReleaseWorkReason
		message  string
		writes   int
	}{
		"a release that is gone":                      {create, 2, func(w *world) { w.release = nil }, refused, v1alpha1.WorkReleaseGone, "does not exist", 0},
		"a release of another uid":                    {create, 2, func(w *world) { w.work.Spec.ReleaseUID = "forged" }, refused, v1alpha1.WorkReleaseReplaced, "another uid", 0},
		"another run":                                 {create, 2, func(w *world) { w.work.Spec.Run = 4 }, refused, v1alpha1.WorkRunOver, "is at run 3", 0},
		"a release without a run":                     {create, 2, func(w *world) { w.release.Status.Rollout = nil }, refused, v1alpha1.WorkRunOver, "has no run", 0},
		"a run that is over":                          {create, 2, func(w *world) { w.release.Status.Rollout.Run.State = "RolledBack" }, refused, v1alpha1.WorkRunOver, "is RolledBack", 0},
		"a release that is being deleted":             {create, 2, func(w *world) { w.release.DeletionTimestamp = new(metav1.NewTime(now)) }, refused, v1alpha1.WorkReleaseDeleted, "being deleted", 0},
		"a release without a requester":               {create, 2, func(w *world) { w.release.Spec.Rollout.RequestedBy = "" }, refused, v1alpha1.WorkInvalidSpec, "requestedBy", 0},
		"another hash":                                {create, 2, func(w *world) { w.work.Spec.ExpectedHash = "pl1:sha256:00" }, refused, v1alpha1.WorkBaselineChanged, "not the one", 0},
		"a baseline that is gone":                     {create, 2, func(w *world) { w.baseline = nil }, refused, v1alpha1.WorkBaselineGone, "Deployment web", 0},
		"a baseline that is being deleted":            {create, 2, func(w *world) { w.baseline.SetDeletionTimestamp(new(metav1.NewTime(now))) }, refused, v1alpha1.WorkTerminating, "being deleted", 0},
		"a stable variation without a Deployment":     {create, 2, func(w *world) { w.release.Spec.Variations[0].Workload = nil }, refused, v1alpha1.WorkInvalidSpec, "does not name one", 0},
		"a Service that is gone":                      {create, 2, func(w *world) { w.facts.ServiceMissing = true }, refused, v1alpha1.WorkInvalidSpec, "the Service web does not exist", 0},
		"a variation that is no clone":                {create, 2, func(w *world) { w.work.Spec.Variation = "stable" }, refused, v1alpha1.WorkInvalidSpec, "is no clone", 0},
		"pods that the Service selects":               {create, 2, func(w *world) { w.facts.Service = map[string]string{}; w.facts.Service["app"] = "web-canary" }, refused, v1alpha1.WorkInvalidSpec, "selects the pods of the clone", 0},
		"a halt":                                      {create, 2, func(w *world) { w.facts.Halted = "bob has halted it" }, refused, v1alpha1.WorkHalted, "bob", 0},
		"a requester without the right":               {create, 2, func(w *world) { w.facts.Requester = denied("alice may not create it") }, refused, v1alpha1.WorkNotAllowed, "alice", 0},
		"an executor without the right waits":         {create, 2, func(w *world) { w.facts.Executor = denied("bind the ClusterRole") }, pending, v1alpha1.WorkNotAllowed, "bind", 0},
		"a right that is not known waits":             {create, 2, func(w *world) { w.facts.Requester = work.Permission{} }, pending, v1alpha1.WorkUnreadable, "not known", 0},
		"an API server that does not answer waits":    {create, 2, func(w *world) { w.facts.Unread = "the release cannot be read" }, pending, v1alpha1.WorkUnreadable, "cannot be read", 0},
		"a requester whom a guard distrusts waits":    {create, 2, func(w *world) { w.facts.Distrusting = "SpecGuard/workloads" }, pending, v1alpha1.WorkRequesterNotTrusted, "SpecGuard/workloads does not trust alice", 0},
		"an update that a guard distrusts waits":      {update, 0, func(w *world) { w.facts.Distrusting = "SpecGuard/workloads" }, pending, v1alpha1.WorkRequesterNotTrusted, "spec.trustedWriters", 0},
		"a scale to 0 asks no guard":                  {scale, 0, func(w *world) { w.withClone(t, 2).facts.Distrusting = "SpecGuard/workloads" }, succeeded, "", "", 1},
		"a plan that holds the target":                {create, 2, func(w *world) { w.facts.Plan = "auto-1" }, pending, v1alpha1.WorkTargetClaimed, "RemediationPlan auto-1 holds the Deployment web-canary", 0},
		"a plan that holds the baseline":              {update, 0, func(w *world) { w.facts.Plan = "auto-1" }, pending, v1alpha1.WorkTargetClaimed, "Deployment web", 0},
		"an earlier work waits":                       {create, 2, func(w *world) { w.facts.Earlier = "web-6" }, pending, v1alpha1.WorkQueued, "web-6", 0},
		"a Deployment of another owner":               {create, 2, func(w *world) { w.clone = newBaseline(); w.clone.SetName("web-canary") }, refused, v1alpha1.WorkNotOwned, "no clone of the ABRelease web", 0},
		"a clone that is there already":               {create, 2, func(w *world) { w.withClone(t, 2) }, succeeded, "", "no write was necessary", 0},
		"a clone of an earlier run is renewed":        {create, 2, func(w *world) { w.withClone(t, 0); setImage(w.clone, "shop:0") }, succeeded, "", "", 1},
		"a clone that is being deleted waits":         {create, 2, func(w *world) { w.withClone(t, 0).clone.SetDeletionTimestamp(new(metav1.NewTime(now))) }, pending, v1alpha1.WorkTerminating, "web-canary", 0},
		"a scale of no clone":                         {scale, 2, nil, refused, v1alpha1.WorkCloneGone, "web-canary", 0},
		"a scale":                                     {scale, 5, func(w *world) { w.withClone(t, 2) }, succeeded, "", "", 1},
		"a scale of a clone that another has changed": {scale, 5, func(w *world) { w.withClone(t, 2); setImage(w.clone, "evil:1") }, refused, v1alpha1.WorkTargetMoved, "another pod template", 0},
		"a scale to 0 of no clone":                    {scale, 0, nil, succeeded, "", "no write", 0},
		"a scale to 0 in a halt":                      {scale, 0, func(w *world) { w.withClone(t, 2).facts.Halted = "bob" }, succeeded, "", "", 1},
		"a scale to 0 of a run that is over":          {scale, 0, func(w *world) { w.withClone(t, 2).release.Status.Rollout.Run.State = "RolledBack" }, succeeded, "", "", 1},
		"a scale to 0 with another baseline":          {scale, 0, func(w *world) { w.withClone(t, 2); setImage(w.baseline, "shop:9") }, succeeded, "", "", 1},
		"a scale to 0 without a baseline":             {scale, 0, func(w *world) { w.withClone(t, 2).baseline = nil }, succeeded, "", "", 1},
		"a scale to 0 for a user who lost the right":  {scale, 0, func(w *world) { w.withClone(t, 2).facts.Requester = denied("alice") }, succeeded, "", "", 1},
		"a scale to 0 of an altered clone":            {scale, 0, func(w *world) { setImage(w.withClone(t, 2).clone, "evil:1") }, succeeded, "", "", 1},
		"a scale to 0 of another run":                 {scale, 0, func(w *world) { w.withClone(t, 2).work.Spec.Run = 2 }, refused, v1alpha1.WorkRunOver, "run 2", 0},
		"a scale to 0 of another owner's Deployment":  {scale, 0, func(w *world) { w.clone = newBaseline(); w.clone.SetName("web-canary") }, refused, v1alpha1.WorkNotOwned, "rename", 0},
		"a scale to 0 without the executor's right":   {scale, 0, func(w *world) { w.withClone(t, 2).facts.Executor = denied("bind") }, pending, v1alpha1.WorkNotAllowed, "bind", 0},
		"a baseline that Git owns":                    {update, 0, func(w *world) { w.facts.Tool = "Argo CD" }, refused, v1alpha1.WorkGitOpsOwned, "AwaitBaseline", 0},
		"an update that the release does not ask for": {update, 0, func(w *world) { w.release.Spec.Rollout.Promotion = v1alpha1.PromotionAwaitBaseline }, refused, v1alpha1.WorkInvalidSpec, "does not ask", 0},
		"a clone for a release that waits for Git":    {create, 2, func(w *world) { w.facts.Tool = "Argo CD" }, succeeded, "", "", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.verb, tc.replicas)
			if tc.change != nil {
				tc.change(w)
			}
			w.carry(t)
			got := &w.work.Status
			if got.Phase != tc.phase || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) || w.writes != tc.writes {
				t.Errorf("got %s, %s, %q, %d writes", got.Phase, got.Reason, got.Message, w.writes)
			}
			if tc.replicas == 0 && tc.writes == 1 && clone.Replicas(w.clone) != 0 {
				t.Error("the clone is not scaled to 0")
			}
		})
	}
}

// TestNext_ForgesNothing: no field of a work changes the body that is written.
func TestNext_ForgesNothing(t *testing.T) {
	honest, forged := newWorld(t, v1alpha1.WorkCreateClone, 2), newWorld(t, v1alpha1.WorkCreateClone, 2)
	forged.work.Name, forged.work.Annotations, forged.work.Labels = "evil", map[string]string{"image": "evil:1"}, map[string]string{"app": "web"}
	forged.work.Spec.Number = 1
	honest.carry(t)
	forged.carry(t)
	if diff := cmp.Diff(honest.clone.Object, forged.clone.Object); diff != "" {
		t.Errorf("what an honest and a forged work write (-honest +forged):\n%s", diff)
	}
}

func TestNext_Answers(t *testing.T) {
	cases := map[string]struct {
		verb         v1alpha1.ReleaseWorkVerb
		tried, wrote *work.Answer
		intended     bool
		kind         work.Kind
		phase        v1alpha1.ReleaseWorkPhase
		reason       v1alpha1.ReleaseWorkReason
	}{
		"nothing was tried":                       {kind: work.Try},
		"a dry run that conflicts is tried anew":  {tried: &work.Answer{Result: work.Conflicted}, kind: work.Look},
		"a dry run that is refused":               {tried: &work.Answer{Result: work.Refused}, kind: work.End, phase: v1alpha1.WorkRefused, reason: v1alpha1.WorkWriteRefused},
		"a dry run without an answer waits":       {tried: &work.Answer{Result: work.Lost}, kind: work.Wait, phase: v1alpha1.WorkPending, reason: v1alpha1.WorkUnreadable},
		"a webhook that changes the image":        {tried: &work.Answer{Result: work.Stored, Object: newBaseline()}, kind: work.End, phase: v1alpha1.WorkRefused, reason: v1alpha1.WorkWouldNotConverge},
		"a dry run of another version is no news": {tried: &work.Answer{Result: work.Refused, ResourceVersion: "9"}, kind: work.Try},
		"an intent is written":                    {intended: true, kind: work.Write},
		"a write that is refused":                 {intended: true, wrote: &work.Answer{Result: work.Refused}, kind: work.End, phase: v1alpha1.WorkRefused, reason: v1alpha1.WorkWriteRefused},
		"a write without an answer waits":         {intended: true, wrote: &work.Answer{Result: work.Lost}, kind: work.Wait, phase: v1alpha1.WorkRunning, reason: v1alpha1.WorkUnreadable},
		"a write that the read does not show yet": {intended: true, wrote: &work.Answer{Result: work.Stored}, kind: work.Wait, phase: v1alpha1.WorkRunning},
		"a write that conflicted, and no target":  {intended: true, wrote: &work.Answer{Result: work.Conflicted}, kind: work.Wait, phase: v1alpha1.WorkRunning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, v1alpha1.WorkCreateClone, 2)
			if tc.intended {
				w.cut = 1 // after the intent
				w.carry(t)
			}
			f := w.read()
			f.Tried, f.Wrote = tc.tried, tc.wrote
			got := work.Next(f)
			if got.Kind != tc.kind || got.Status.Phase != tc.phase || got.Status.Reason != tc.reason {
				t.Errorf("got %+v", got)
			}
			if tc.intended && w.work.Status.Phase != v1alpha1.WorkRunning {
				t.Fatalf("no intent: %+v", w.work.Status)
			}
		})
	}
}

// TestNext_WaitsForItsRecord: a work that makes the cluster do more is written after its intent is recorded.
func TestNext_WaitsForItsRecord(t *testing.T) {
	const create, scale, update, hold = v1alpha1.WorkCreateClone, v1alpha1.WorkScale, v1alpha1.WorkUpdateBaseline, v1alpha1.WorkHoldMinReplicas
	cases := map[string]struct {
		verb       v1alpha1.ReleaseWorkVerb
		replicas   int32
		change     func(*work.Facts)
		unrecorded string
		phase      v1alpha1.ReleaseWorkPhase
		reason     v1alpha1.ReleaseWorkReason
		writes     int
	}{
		"a clone":                              {verb: create, replicas: 2, phase: v1alpha1.WorkRunning},
		"a clone that is to have more pods":    {verb: scale, replicas: 4, phase: v1alpha1.WorkRunning},
		"the baseline":                         {verb: update, phase: v1alpha1.WorkRunning},
		"a minimum that is raised":             {verb: hold, replicas: 6, phase: v1alpha1.WorkRunning},
		"a clone, and the store is down":       {verb: create, replicas: 2, unrecorded: "no room", phase: v1alpha1.WorkPending, reason: v1alpha1.WorkEvidenceUnavailable},
		"a minimum, and the store is down":     {verb: hold, replicas: 6, unrecorded: "no room", phase: v1alpha1.WorkPending, reason: v1alpha1.WorkEvidenceUnavailable},
		"a scale to 0 waits for none":          {verb: scale, unrecorded: "no room", phase: v1alpha1.WorkSucceeded, writes: 1},
		"the put-back of a minimum neither":    {verb: hold, change: func(f *work.Facts) { f.Holding = holding(1, 2) }, unrecorded: "no room", phase: v1alpha1.WorkSucceeded, writes: 1},
		"a work with nothing to write neither": {verb: scale, replicas: 1, phase: v1alpha1.WorkSucceeded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.verb, tc.replicas)
			if tc.verb == scale {
				w.withClone(t, 1)
			}
			w.facts.Recorded, w.facts.Unrecorded = false, tc.unrecorded
			if tc.change != nil {
				tc.change(&w.facts)
			}
			w.carry(t)
			if got := w.work.Status; got.Phase != tc.phase || got.Reason != tc.reason || w.writes != tc.writes || got.Result != nil != (tc.writes > 0) {
				t.Fatalf("got %+v after %d writes", got, w.writes)
			}
			w.facts.Recorded, w.facts.Unrecorded = true, ""
			w.carry(t)
			if got := w.work.Status; got.Phase != v1alpha1.WorkSucceeded {
				t.Errorf("with its record the work is %+v", got)
			}
		})
	}
}

// TestNext_SaysWhatItKnowsOfItsWrite: an executor that has died has left no answer.
func TestNext_SaysWhatItKnowsOfItsWrite(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkCreateClone, 2)
	w.cut = 2 // after the write
	w.carry(t)
	w.touch()
	w.carry(t)
	want := &v1alpha1.ReleaseWorkResult{ResourceVersion: w.clone.GetResourceVersion(), Origin: v1alpha1.ResultRecovered}
	if diff := cmp.Diff(want, w.work.Status.Result); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
}

// TestNext_SaysWhatAnotherWriterDid: a work that has written does not write again.
func TestNext_SaysWhatAnotherWriterDid(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkCreateClone, 2)
	w.cut = 2 // after the write
	w.carry(t)
	setImage(w.clone, "evil:1")
	w.carry(t)
	if got := w.work.Status; got.Phase != v1alpha1.WorkFailed || got.Reason != v1alpha1.WorkTargetMoved || w.writes != 1 {
		t.Errorf("got %+v after %d writes", got, w.writes)
	}
	if last, _ := w.carry(t); last.Kind != work.Done {
		t.Errorf("a work that has ended goes on: %+v", last)
	}
}

// TestNext_RefusesAHaltBetweenIntentAndWrite: the write of the executor before comes too late.
func TestNext_RefusesAHaltBetweenIntentAndWrite(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkUpdateBaseline, 0)
	w.cut = 1
	w.carry(t)
	late := work.Next(w.read())
	if late.Kind != work.Write {
		t.Fatalf("got %+v, so this proves nothing", late)
	}
	w.facts.Halted = "bob has halted it"
	w.carry(t)
	if got := w.work.Status; got.Phase != v1alpha1.WorkRefused || got.Reason != v1alpha1.WorkHalted || imageOf(t, w.baseline) != "shop:1" {
		t.Errorf("got %+v, and the baseline has %s", got, imageOf(t, w.baseline))
	}
	if got := w.send(late, false); got.Result != work.Conflicted || w.baseline.GetLabels()[v1alpha1.LabelReleaseWorkFence] != "w-uid" {
		t.Errorf("a late write is %s", got.Result)
	}
}

// TestNext_WaitsForACreationThatMayBeUnderWay: the executor before may have sent a creation, which
// the API server admits for less than a minute.
func TestNext_WaitsForACreationThatMayBeUnderWay(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkCreateClone, 2)
	w.cut = 1
	w.carry(t)
	w.facts.Halted, w.facts.Now = "bob has halted it", now.Add(59*time.Second)
	if last, _ := w.carry(t); last.Kind != work.Wait || w.work.Status.Phase != v1alpha1.WorkRunning || w.work.Status.Reason != v1alpha1.WorkHalted {
		t.Fatalf("got %+v", last)
	}
	w.facts.Now = now.Add(time.Minute)
	if last, _ := w.carry(t); last.Kind != work.End || w.work.Status.Phase != v1alpha1.WorkRefused {
		t.Fatalf("got %+v", last)
	}
}

// TestNext_IntendsALateCreationAnew: the API server would not admit a creation by an old intent.
func TestNext_IntendsALateCreationAnew(t *testing.T) {
	w := newWorld(t, v1alpha1.WorkCreateClone, 2)
	w.cut = 1
	w.carry(t)
	w.facts.Now = now.Add(work.CreationWindow)
	if got := work.Next(w.read()); got.Kind != work.Try || !got.Intended.Equal(w.facts.Now) {
		t.Fatalf("got %+v", got)
	}
	w.carry(t)
	if got := w.work.Status; got.Phase != v1alpha1.WorkSucceeded || !got.Intent.StorageTime.Time.Equal(w.facts.Now) || w.writes != 1 {
		t.Errorf("got %+v after %d writes", got, w.writes)
	}
}

func TestFinal_UnknownPhasesWriteNothing(t *testing.T) {
	if !work.Final("Later") || work.Final("") || work.Final(v1alpha1.WorkRunning) {
		t.Error("a phase is judged wrongly")
	}
}

func denied(message string) work.Permission {
	return work.Permission{Right: work.RightMissing, Denied: message}
}

func setImage(object *unstructured.Unstructured, image string) {
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["image"] = image
	if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		panic(err)
	}
}
