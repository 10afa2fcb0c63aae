// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// xds is the user name of the discovery server, which does not run here: no process of Plumbline does.
const xds = "system:serviceaccount:plumbline-system:plumbline-xds"

var (
	carrier = who{executor, []string{"roots"}} // the right to write is not what is tested
	finder  = who{xds, []string{"roots"}}
)

// rejectingRun is a release with a run under way, and its workloads.
type rejectingRun struct {
	release *v1alpha1.ABRelease
	// arms are the workloads by variation; that of a clone is green as well.
	arms map[string]client.Object
}

// situation is a release at run 2, which is Running and rejects other revisions unless the case says otherwise.
type situation struct {
	clone, statefulSet, groups, hybrid bool
	// annotations are as many as the pods of the canary have.
	annotations int
	change      func(*v1alpha1.ABRelease)
	// open says that the situation refuses no change.
	open bool
}

func withState(state v1alpha1.RunState) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.State = state }
}

func asksRollback(run int64) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Control = &v1alpha1.RolloutControl{Verb: "Rollback", Run: run, RequestedBy: alice.user}
	}
}

func awaits(state v1alpha1.RunState) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Promotion, r.Status.Rollout.Run.State = v1alpha1.PromotionAwaitBaseline, state
	}
}

// refusedRollback has a person ask for the rollback of run 2, and be refused.
func refusedRollback(r *v1alpha1.ABRelease) {
	asksRollback(2)(r)
	r.Status.Rollout.Handled = &v1alpha1.HandledControl{RolloutControl: *r.Spec.Rollout.Control, Refusal: "all requests return already"}
}

func imagePatch(image string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image)
}

const (
	envPatch     = `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"MODE","value":"new"}]}]}}}}`
	restartPatch = `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}}`
)

func TestARunThatRejectsKeepsTheTemplatesOfItsVariations(t *testing.T) {
	restartAnd := func(more string) string {
		return strings.Replace(restartPatch, `{"annotations":{`, `{"annotations":{`+more+`,`, 1)
	}
	many := make([]string, 64)
	for i := range many {
		many[i] = fmt.Sprintf(`"x-%d":"1"`, i)
	}
	tests := map[string]struct {
		situation
		who     who
		arm     string
		patch   string
		refused bool
	}{
		"a new image of the canary":                          {situation{}, alice, "green", imagePatch("shop:3"), true},
		"a new image of the active variation":                {situation{}, alice, "blue", imagePatch("shop:3"), true},
		"a new image by an administrator":                    {situation{}, root, "green", imagePatch("shop:3"), true},
		"a new image by the discovery server":                {situation{}, finder, "green", imagePatch("shop:3"), true},
		"a new image by the executor":                        {situation{}, carrier, "green", imagePatch("shop:3"), false},
		"a new image of a StatefulSet":                       {situation{statefulSet: true}, alice, "green", imagePatch("shop:3"), true},
		"a variable of the canary":                           {situation{}, alice, "green", envPatch, true},
		"a variable of the active variation":                 {situation{}, alice, "blue", envPatch, true},
		"the canary gets the images of the active variation": {situation{}, alice, "green", imagePatch("shop:1"), false},
		"the images of the active variation are not known":   {situation{change: func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.ActiveImages = nil }}, alice, "green", imagePatch("shop:1"), true},
		"the canary gets the images but for one container": {situation{change: func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.ActiveImages = []string{"app=shop:1", "side=side:1"}
		}}, alice, "green", imagePatch("shop:1"), true},
		"a restart without an annotation of before":             {situation{annotations: 1}, alice, "green", restartAnd(`"x-0":null`), true},
		"a restart beside as many annotations as are looked at": {situation{annotations: 63}, alice, "green", restartPatch, false},
		"a restart beside more annotations than are looked at":  {situation{annotations: 64}, alice, "green", restartPatch, true},
		"the canary gets one container more":                    {situation{}, alice, "green", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:1"},{"name":"side","image":"side:1"}]}}}}`, true},
		"the canary gets an init container":                     {situation{}, alice, "green", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:1"}],"initContainers":[{"name":"side","image":"side:1"}]}}}}`, true},
		"a restart":                                             {situation{}, alice, "green", restartPatch, false},
		"a restart with another annotation":                     {situation{}, alice, "green", restartAnd(`"x":"1"`), true},
		"a restart with more annotations than are looked at":    {situation{}, alice, "green", restartAnd(strings.Join(many, ",")), true},
		"a restart with a label":                                {situation{}, alice, "green", strings.Replace(restartPatch, `"metadata":{`, `"metadata":{"labels":{"x":"1"},`, 1), true},
		"another number of replicas":                            {situation{}, alice, "green", `{"spec":{"replicas":5}}`, false},
		"an annotation of the workload":                         {situation{}, alice, "green", `{"metadata":{"annotations":{"x":"1"}}}`, false},
		"a run that was created":                                {situation{change: withState("Created")}, alice, "green", imagePatch("shop:3"), true},
		"a run that deploys":                                    {situation{change: withState("Deploying")}, alice, "green", imagePatch("shop:3"), true},
		"a run that is promoted":                                {situation{change: withState("Promoting")}, alice, "green", imagePatch("shop:3"), true},
		"a run that has ended well":                             {situation{open: true, change: withState("Completed")}, alice, "green", imagePatch("shop:3"), false},
		"a run that was rolled back":                            {situation{open: true, change: withState("RolledBack")}, alice, "green", imagePatch("shop:3"), false},
		"no run yet":                                            {situation{open: true, change: func(r *v1alpha1.ABRelease) { r.Status.Rollout = nil }}, alice, "green", imagePatch("shop:3"), false},
		"a release that restarts":                               {situation{open: true, change: func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Supersede = v1alpha1.SupersedeRestart }}, alice, "green", imagePatch("shop:3"), false},
		"a rollback that was asked for":                         {situation{open: true, change: asksRollback(2)}, alice, "green", imagePatch("shop:3"), false},
		"a rollback of the run before":                          {situation{change: asksRollback(1)}, alice, "green", imagePatch("shop:3"), true},
		"a rollback that was refused":                           {situation{change: refusedRollback}, alice, "green", imagePatch("shop:3"), true},
		"the clone, by another writer":                          {situation{clone: true}, alice, "green", imagePatch("shop:3"), true},
		"the clone, by the executor":                            {situation{clone: true}, carrier, "green", imagePatch("shop:3"), false},
		"the baseline of a clone":                               {situation{clone: true}, alice, "blue", imagePatch("shop:3"), true},
		"the baseline that a promotion awaits":                  {situation{clone: true, change: awaits("Promoting")}, alice, "blue", imagePatch("shop:2"), false},
		"the clone, while a promotion awaits the baseline":      {situation{clone: true, change: awaits("Promoting")}, alice, "green", imagePatch("shop:3"), true},
		"the baseline, before a promotion awaits it":            {situation{clone: true, change: awaits("Running")}, alice, "blue", imagePatch("shop:2"), true},
		"the baseline, while the executor is going to write it": {situation{clone: true, change: withState("Promoting")}, alice, "blue", imagePatch("shop:2"), true},
		"a group":                               {situation{groups: true}, alice, "green", imagePatch("shop:3"), true},
		"the active group":                      {situation{groups: true}, alice, "blue", imagePatch("shop:3"), true},
		"a group beside a workload":             {situation{hybrid: true}, alice, "green", imagePatch("shop:3"), true},
		"another number of replicas of a group": {situation{groups: true}, alice, "green", `{"spec":{"replicas":5}}`, false},
		"a workload of no release":              {situation{}, alice, "beside", imagePatch("shop:3"), false},
	}
	number := 0
	for name, test := range tests {
		number++
		object := fmt.Sprintf("rejects-%d", number)
		t.Run(name, func(t *testing.T) {
			r := givenRun(t, object, test.situation)
			err := mustBe(t, test.who.user, test.who.groups...).Patch(t.Context(), r.arms[test.arm], client.RawPatch(types.StrategicMergePatchType, []byte(test.patch)))
			switch {
			case !test.refused && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is a variation of ABRelease "+object+", whose run 2 is ")):
				t.Errorf("error = %v, want Forbidden with the run", err)
			}
		})
	}
}

func TestARunThatRejectsKeepsTheCloneOfTheSpec(t *testing.T) {
	clonePatch := func(clone string) string {
		return fmt.Sprintf(`[{"op":"test","path":"/spec/variations/1/name","value":"green"},{"op":"add","path":"/spec/variations/1/clone/%s}]`, clone)
	}
	const rollback = `,{"op":"add","path":"/spec/rollout/control","value":{"verb":"Rollback","run":2,"requestedBy":"alice"}}]`
	newImage := clonePatch(`image","value":"shop:3"`)
	tests := map[string]struct {
		situation
		patch   string
		refused bool
	}{
		"another image":                      {situation{clone: true}, newImage, true},
		"a variable":                         {situation{clone: true}, clonePatch(`env","value":[{"name":"MODE","value":"new"}]`), true},
		"other labels of the pods":           {situation{clone: true}, clonePatch(`podLabels/tier","value":"x"`), true},
		"more pods":                          {situation{clone: true}, clonePatch(`minReplicas","value":3`), false},
		"another workload":                   {situation{}, `[{"op":"replace","path":"/spec/variations/1/workload/name","value":"other"}]`, true},
		"a pause":                            {situation{clone: true}, `[{"op":"add","path":"/spec/rollout/pause","value":"Enabled"}]`, false},
		"another image and a rollback":       {situation{clone: true}, strings.TrimSuffix(newImage, "]") + rollback, false},
		"another image after a rollback":     {situation{clone: true, open: true, change: asksRollback(2)}, newImage, false},
		"another image, a rollback refused":  {situation{clone: true, change: refusedRollback}, newImage, true},
		"another image after the run":        {situation{clone: true, open: true, change: withState("Completed")}, newImage, false},
		"another image, Reject lifted first": {situation{clone: true, open: true, change: func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Supersede = v1alpha1.SupersedeRestart }}, newImage, false},
		"Reject is lifted":                   {situation{clone: true}, `[{"op":"replace","path":"/spec/rollout/supersede","value":"Restart"}]`, false},
		"Reject is lifted with the image":    {situation{clone: true}, strings.TrimSuffix(newImage, "]") + `,{"op":"replace","path":"/spec/rollout/supersede","value":"Restart"}]`, true},
		"the variations change their order":  {situation{}, `[{"op":"move","from":"/spec/variations/1","path":"/spec/variations/0"}]`, false},
	}
	number := 0
	for name, test := range tests {
		number++
		object := fmt.Sprintf("keeps-%d", number)
		t.Run(name, func(t *testing.T) {
			r := givenRun(t, object, test.situation)
			err := mustBe(t, alice.user, alice.groups...).Patch(t.Context(), r.release, client.RawPatch(types.JSONPatchType, []byte(test.patch)))
			switch {
			case !test.refused && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "run 2 of ABRelease "+object+" is Running")):
				t.Errorf("error = %v, want Forbidden with the run", err)
			}
		})
	}
}

func TestOnlyTheChangeOfACloneCanWait(t *testing.T) {
	for name, c := range map[string]struct {
		clone   bool
		refused string
	}{
		"a clone":    {true, ""},
		"a workload": {false, "only the change of a clone can wait: a workload has its new revision at once. Use Restart or Reject"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rejectingRelease("queues", situation{clone: c.clone})
			r.Spec.Rollout.Supersede = v1alpha1.SupersedeQueue
			err := mustBe(t, alice.user, alice.groups...).Create(t.Context(), r, client.DryRunAll)
			if c.refused == "" && err != nil || c.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error = %v, want %q", err, c.refused)
			}
		})
	}
}

// givenRun makes a release with its workloads, has run 1 be under way until the API server refuses, and then
// run 2 in the situation of the case. So the policy is known to look at the status of the case.
func givenRun(t *testing.T, name string, s situation) *rejectingRun {
	t.Helper()
	r := &rejectingRun{release: rejectingRelease(name, s), arms: map[string]client.Object{
		"blue": deployment(name + "-blue"), "green": guarded.Workload(tenant, name+"-green", "shop:2", 1), "beside": deployment(name + "-beside"),
	}}
	if s.annotations > 0 {
		green := guarded.Workload(tenant, name+"-green", "shop:2", 1)
		green.Spec.Template.Annotations = map[string]string{}
		for i := range s.annotations {
			green.Spec.Template.Annotations[fmt.Sprintf("x-%d", i)] = "1"
		}
		r.arms["green"] = green
	}
	if s.statefulSet {
		r.arms["green"] = statefulSet(name + "-green")
	}
	person := mustBe(t, alice.user, alice.groups...)
	for _, object := range []client.Object{r.arms["blue"], r.arms["green"], r.arms["beside"], r.release} {
		must(t, person.Create(t.Context(), object))
	}
	t.Cleanup(func() { must(t, admin.Delete(context.WithoutCancel(t.Context()), r.release)) })
	r.begin(t, 1, nil)
	r.awaitAnswer(t, "run 1 is Running")
	r.begin(t, 2, s.change)
	if s.open {
		r.awaitAnswer(t, "")
		return r
	}
	r.awaitAnswer(t, "run 2 is ")
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func statefulSet(name string) *appsv1.StatefulSet {
	d := guarded.Workload(tenant, name, "shop:2", 1)
	return &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.StatefulSetSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}}
}

func rejectingRelease(name string, s situation) *v1alpha1.ABRelease {
	kind := v1alpha1.VariationDeployment
	if s.statefulSet {
		kind = v1alpha1.VariationStatefulSet
	}
	r := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: "web", Stable: "blue",
			Variations: []v1alpha1.Variation{
				{Name: "blue", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: name + "-blue"}},
				{Name: "green", Workload: &v1alpha1.VariationWorkload{Kind: kind, Name: name + "-green"}},
			},
			TrafficSplit: v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"blue": v1alpha1.Percent(100), "green": v1alpha1.Percent(0)}},
			Rollout:      &v1alpha1.Rollout{StrategyName: "any", Supersede: v1alpha1.SupersedeReject, RequestedBy: alice.user},
		},
	}
	if s.clone {
		r.Spec.Variations[1].Workload = nil
		r.Spec.Variations[1].Clone = &v1alpha1.VariationClone{Image: "shop:2", PodLabels: map[string]v1alpha1.LabelValue{"app": "green"}}
		r.Spec.Rollout.Promotion = v1alpha1.PromotionUpdateBaseline
	}
	if s.groups {
		r.Spec.ServiceName, r.Spec.Rollout.Model = "", v1alpha1.RolloutModelTargetGroup
		for i := range r.Spec.Variations {
			v := &r.Spec.Variations[i]
			v.Group, v.Workload = &v1alpha1.VariationGroup{Kind: "Deployment", Name: v.Workload.Name}, nil
		}
	}
	if s.hybrid {
		r.Spec.Rollout.Model = v1alpha1.RolloutModelHybrid
		for i := range r.Spec.Variations {
			v := &r.Spec.Variations[i]
			v.Group = &v1alpha1.VariationGroup{Kind: "Deployment", Name: v.Workload.Name}
			v.Workload = &v1alpha1.VariationWorkload{Kind: kind, Name: v.Workload.Name + "-web"}
		}
	}
	return r
}

// begin writes spec and status as a person and the discovery server would.
func (r *rejectingRun) begin(t *testing.T, run int64, change func(*v1alpha1.ABRelease)) {
	t.Helper()
	r.release.Status.Rollout = runningStatus(run)
	if change != nil {
		change(r.release)
	}
	wanted := r.release.DeepCopy()
	if change != nil {
		must(t, mustBe(t, alice.user, alice.groups...).Update(t.Context(), r.release))
	}
	r.release.Status = wanted.Status
	must(t, mustBe(t, finder.user, finder.groups...).Status().Update(t.Context(), r.release))
}

// runningStatus is that of a run under way from blue to green.
func runningStatus(run int64) *v1alpha1.RolloutStatus {
	percent := v1alpha1.Percent(10)
	return &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{
		Number: run, State: "Running", From: v1alpha1.VariationRevision{Variation: "blue", Hash: "a"}, To: v1alpha1.VariationRevision{Variation: "green", Hash: "b"},
		ActiveImages: []string{"app=shop:1"}, AutoAdvance: v1alpha1.Enabled, RollbackOnFailure: v1alpha1.Enabled, HealthCheckIntervalSeconds: 30, StartTime: metav1.Now(),
		Stages: []v1alpha1.RolloutStageStatus{{
			Number: 1, State: "Running", TrafficPercentage: &percent, DurationSeconds: new(int64(0)), HealthThreshold: &percent, RequireApproval: v1alpha1.Disabled,
		}},
	}}
}

// awaitAnswer waits until the API server answers a change of the canary so; an empty text is no refusal.
func (r *rejectingRun) awaitAnswer(t testing.TB, want string) {
	t.Helper()
	person := mustBe(t, alice.user, alice.groups...)
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(envPatch))
	poll.Until(t, patience, fmt.Sprintf("a change of %s is answered with %q", r.release.Name, want), func() error {
		canary := r.arms["green"].DeepCopyObject().(client.Object)
		err := person.Patch(t.Context(), canary, patch, client.DryRunAll)
		switch {
		case want == "":
			return err
		case err == nil:
			return errors.New("it is accepted")
		case !strings.Contains(err.Error(), want):
			return err
		}
		return nil
	})
}
