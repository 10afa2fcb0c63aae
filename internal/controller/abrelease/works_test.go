// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/revisions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// executor stands in for the Deployments of a release with a clone, and for the process that writes them. It
// writes past the crashes of the leader.
type executor struct {
	*world
	client client.Client
	// image of the baseline, and size and image of the clone.
	image, cloneImage string
	// keeps says that the executor goes on with the image of the clone, whatever the spec asks for by then.
	keeps bool
	size  int
	// control is the size of the fresh control, and dead says that its pods are not ready.
	control int
	dead    bool
	// did are the works that were carried out, in their order.
	did []string
	// answers has what it says of a verb in place of carrying the work out.
	answers map[v1alpha1.ReleaseWorkVerb]v1alpha1.ReleaseWorkStatus
	err     error
	forgot  bool
}

// cloning is a world whose canary is a clone, with stages of 10 and 100 percent.
func cloning(t *testing.T) (*world, *executor) {
	t.Helper()
	w, _ := rolling(t)
	e := &executor{world: w, client: w.Client, image: "shop:1", answers: map[v1alpha1.ReleaseWorkVerb]v1alpha1.ReleaseWorkStatus{}}
	w.Clones = e
	w.ready = map[string]int{"stable": 4, "canary": 0}
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Variations[1] = v1alpha1.Variation{Name: "canary", Clone: &v1alpha1.VariationClone{Image: "shop:2"}}
		r.Spec.Rollout.Promotion, r.Spec.Rollout.RequestedBy = v1alpha1.PromotionUpdateBaseline, "ada"
	})
	return w, e
}

// ReadClone implements Clones.
func (e *executor) ReadClone(_ context.Context, v *revisions.Visit) (revisions.Pair, error) {
	if v.Baseline != (traffic.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}) {
		return revisions.Pair{}, fmt.Errorf("the baseline is %+v", v.Baseline)
	}
	pair := e.pairOf(string(v.Variation.Clone.Image))
	if v.Keeps && e.cloneImage != "" {
		pair.Kept = new(e.pairOf(e.cloneImage))
	}
	return pair, e.err
}

// pairOf is what a clone with an image would be.
func (e *executor) pairOf(wants string) revisions.Pair {
	pair := revisions.Pair{
		Baseline: rollout.Arm{Revision: rollout.Revision{Hash: "web with " + e.image, Image: e.image}, Targets: 4, Updated: 4, Replicas: 4},
		Canary:   rollout.Arm{Revision: rollout.Revision{Hash: "clone with " + wants, Image: wants}, Targets: e.size},
		Clone:    rollout.Clone{Variation: "canary", Deployment: "web-canary", Baseline: "web", MinReplicas: 1, Hash: wants, Changed: e.image == wants, Change: "image " + wants},
		Follows:  e.cloneImage == wants,
	}
	if pair.Follows {
		pair.Canary.Updated = e.size
	}
	return pair
}

// Forget implements Clones.
func (e *executor) Forget(types.NamespacedName) { e.forgot = true }

// work carries out what the leader has asked for.
func (e *executor) work(t *testing.T) {
	t.Helper()
	for _, work := range e.works(t) {
		if work.Status.Phase != "" {
			continue
		}
		if answer, is := e.answers[work.Spec.Verb]; is {
			work.Status = answer
		} else {
			e.carryOut(t, &work)
			work.Status.Phase = v1alpha1.WorkSucceeded
		}
		if err := e.client.Update(t.Context(), &work); err != nil {
			t.Fatal(err)
		}
	}
	e.ready["canary"], e.ready["fresh-control"] = e.size, e.control
	if e.dead {
		e.ready["fresh-control"] = 0
	}
}

func (e *executor) works(t *testing.T) []v1alpha1.ReleaseWork {
	t.Helper()
	var all v1alpha1.ReleaseWorkList
	if err := e.client.List(t.Context(), &all, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b v1alpha1.ReleaseWork) int {
		return int(1000*(a.Spec.Run-b.Spec.Run) + a.Spec.Number - b.Spec.Number)
	})
	return all.Items
}

func (e *executor) carryOut(t *testing.T, work *v1alpha1.ReleaseWork) {
	t.Helper()
	r := &v1alpha1.ABRelease{}
	if err := e.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: work.Spec.ReleaseName}, r); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Status.Rollout.Works, func(w v1alpha1.RolloutWork) bool {
		return w.Run == work.Spec.Run && w.Number == work.Spec.Number && w.Verb == work.Spec.Verb
	}) {
		t.Errorf("work %s was asked for before the status has it", work.Name)
	}
	line := string(work.Spec.Verb)
	if work.Spec.Variation == v1alpha1.FreshControl {
		e.control = int(*work.Spec.Replicas)
		e.did = append(e.did, fmt.Sprintf("%s of fresh-control %d", line, e.control))
		return
	}
	switch work.Spec.Verb {
	case v1alpha1.WorkCreateClone:
		e.size, e.cloneImage = int(*work.Spec.Replicas), string(r.Spec.Variations[1].Clone.Image)
		line = fmt.Sprintf("%s %d", line, e.size)
	case v1alpha1.WorkScale:
		e.size = int(*work.Spec.Replicas)
		line = fmt.Sprintf("%s %d", line, e.size)
	case v1alpha1.WorkUpdateBaseline:
		if work.Spec.ExpectedHash != "web with "+e.image {
			t.Errorf("the baseline is expected to be %q, and has %s", work.Spec.ExpectedHash, e.image)
		}
		if e.image = string(r.Spec.Variations[1].Clone.Image); e.keeps {
			e.image = e.cloneImage
		}
	case v1alpha1.WorkHoldMinReplicas:
		t.Errorf("work %s holds a minimum, which no release here asks for", work.Name)
	}
	e.did = append(e.did, line)
}

// live has the release looked at for a while with the executor at work.
func (e *executor) live(t *testing.T, looks int) {
	t.Helper()
	for range looks {
		e.world.live(t, 1)
		e.work(t)
	}
}

// run has a run go on for a while.
func (e *executor) run(t *testing.T, failed uint64) *v1alpha1.ABRelease {
	t.Helper()
	e.live(t, 8)
	for n := range uint64(9) {
		e.tells(n+1, failed)
		e.live(t, 3)
	}
	e.live(t, 8)
	r := &v1alpha1.ABRelease{}
	if err := e.client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestACloneChangesTheBaselineOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		failed uint64
		given  func(*world, *executor)
		did    []string
		state  v1alpha1.RunState
		image  string
	}{
		"a good run":           {did: []string{"CreateClone 1", "Scale 5", "UpdateBaseline", "Scale 0"}, state: "Completed", image: "shop:2"},
		"a bad run":            {failed: 50, did: []string{"CreateClone 1", "Scale 0"}, state: "RolledBack", image: "shop:1"},
		"without an executor":  {given: func(_ *world, e *executor) { e.refuses(v1alpha1.WorkCreateClone, "") }, state: "Deploying", image: "shop:1"},
		"an executor refuses":  {given: func(_ *world, e *executor) { e.refuses(v1alpha1.WorkUpdateBaseline, v1alpha1.WorkRefused) }, did: []string{"CreateClone 1", "Scale 5"}, state: "Promoting", image: "shop:1"},
		"workloads not read":   {given: func(_ *world, e *executor) { e.err = errors.New("forbidden") }, image: "shop:1"},
		"a baseline as it was": {given: func(_ *world, e *executor) { e.image = "shop:2" }, image: "shop:2"},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := cloning(t)
			if c.given != nil {
				c.given(w, e)
			}
			r := e.run(t, c.failed)
			if strings.Join(e.did, ", ") != strings.Join(c.did, ", ") || e.image != c.image {
				t.Errorf("the executor did %q, and the baseline has %s", e.did, e.image)
			}
			state := v1alpha1.RunState("")
			if run := r.Status.Rollout.Run; run != nil {
				state = run.State
			}
			if state != c.state || r.Status.ActiveVariation != "stable" {
				t.Errorf("the run is %q of %q: %+v", state, r.Status.ActiveVariation, r.Status.Rollout)
			}
			if over := c.state == "Completed" || c.state == "RolledBack"; over && (r.Status.Split != "stable 100 / canary 0" || e.size != 0) {
				t.Errorf("in force is %q, and the clone has %d pods", r.Status.Split, e.size)
			}
		})
	}
}

// The author asks for another image while the first one is measured.
func TestAQueuedChangeWaitsForTheEndOfTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		supersede v1alpha1.SupersedePolicy
		failed    uint64
		before    []string
		image     string
	}{
		"a good run":             {v1alpha1.SupersedeQueue, 0, []string{"CreateClone 1", "Scale 5", "UpdateBaseline", "CreateClone 1"}, "shop:2"},
		"a bad run":              {v1alpha1.SupersedeQueue, 50, []string{"CreateClone 1", "CreateClone 1"}, "shop:1"},
		"a policy that restarts": {v1alpha1.SupersedeRestart, 0, []string{"CreateClone 1", "CreateClone 1"}, "shop:1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := cloning(t)
			e.keeps = c.supersede == v1alpha1.SupersedeQueue
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Supersede = c.supersede })
			e.live(t, 8)
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Variations[1].Clone.Image = "shop:3" })
			e.live(t, 1)
			if r := w.looks(); e.keeps && (r.Status.Rollout.Run.Number != 1 || r.Status.Rollout.Run.Clone.QueuedTime == nil) {
				t.Errorf("the run is %+v", r.Status.Rollout.Run)
			}
			for n := uint64(1); len(e.did) < len(c.before) && n < 40; n++ {
				e.tells(n, c.failed)
				e.live(t, 3)
			}
			r := w.looks()
			if strings.Join(e.did, ", ") != strings.Join(c.before, ", ") || e.image != c.image || e.cloneImage != "shop:3" {
				t.Errorf("the executor did %q, the baseline has %s, and the clone %s", e.did, e.image, e.cloneImage)
			}
			if run := r.Status.Rollout.Run; run.Number != 2 || run.To.Image != "shop:3" || run.Clone.QueuedTime != nil {
				t.Errorf("the next run is %+v", run)
			}
		})
	}
}

// refuses has the executor answer a verb so.
func (e *executor) refuses(verb v1alpha1.ReleaseWorkVerb, phase v1alpha1.ReleaseWorkPhase) {
	e.answers[verb] = v1alpha1.ReleaseWorkStatus{Phase: phase, Reason: v1alpha1.WorkNotAllowed, Message: "ada may not update deployments"}
}

// A release that is gone leaves no memory, and the run of the next one begins with work 1.
func TestWorksOfAnotherReleaseSayNothing(t *testing.T) {
	w, e := cloning(t)
	e.live(t, 6)
	work := e.works(t)[0]
	work.Spec.ReleaseUID = "another"
	if err := e.client.Update(t.Context(), &work); err != nil {
		t.Fatal(err)
	}
	r := w.looks()
	if got := rollout.AnswersOf(r, []v1alpha1.ReleaseWork{work}); len(got) > 0 {
		t.Errorf("it says %+v", got)
	}
}
