// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// running is a release of two variations, whose split is at rest.
func running(t interface{ Fatal(...any) }) (*v1alpha1.ABRelease, release.Terms) {
	r := &v1alpha1.ABRelease{}
	r.Namespace, r.Name, r.UID, r.Generation = "shop", "web", "u1", 1
	r.Spec = v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "a", TrafficSplit: v1alpha1.TrafficSplit{
		Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{"a": v1alpha1.Percent(100), "b": v1alpha1.Percent(0)},
	}}
	for _, name := range []v1alpha1.VariationName{"a", "b"} {
		r.Spec.Variations = append(r.Spec.Variations, v1alpha1.Variation{Name: name, Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"v": v1alpha1.LabelValue(name)}}})
	}
	terms, err := release.TermsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, terms
}

func TestADecisionOfARunTakesTheSequenceOfItsRollback(t *testing.T) {
	type numbers struct{ Sequence, Prepared uint64 }
	ready := map[string]int{"a": 1, "b": 1}
	for name, tc := range map[string]struct {
		before   *numbers
		weights  [2]traffic.Weight // before, and now
		prepares bool
		ahead    uint64
		ready    map[string]int
		want     numbers
	}{
		"a first decision without requests to the canary prepares nothing": {nil, [2]traffic.Weight{0, 0}, true, 0, ready, numbers{1, 0}},
		"a stage prepares its rollback":                                    {&numbers{5, 0}, [2]traffic.Weight{0, 1000}, true, 0, ready, numbers{6, 7}},
		"the next stage leaves out the prepared sequence":                  {&numbers{6, 7}, [2]traffic.Weight{1000, 2500}, true, 0, ready, numbers{8, 9}},
		"the same again takes nothing":                                     {&numbers{6, 7}, [2]traffic.Weight{1000, 1000}, true, 0, ready, numbers{6, 7}},
		"the rollback takes what is prepared":                              {&numbers{6, 7}, [2]traffic.Weight{1000, 0}, false, 0, ready, numbers{7, 0}},
		"a rollback within a run takes what is prepared":                   {&numbers{6, 7}, [2]traffic.Weight{1000, 0}, true, 0, ready, numbers{7, 0}},
		"a canary that has lost its pods takes what is prepared":           {&numbers{6, 7}, [2]traffic.Weight{1000, 1000}, true, 0, map[string]int{"a": 1}, numbers{7, 0}},
		"a run of before this was known prepares at once":                  {&numbers{6, 0}, [2]traffic.Weight{1000, 1000}, true, 0, ready, numbers{7, 8}},
		"a promotion leaves out the prepared sequence":                     {&numbers{6, 7}, [2]traffic.Weight{10000, 10000}, false, 0, ready, numbers{8, 0}},
		"proxies that are ahead have it begin above them":                  {&numbers{6, 7}, [2]traffic.Weight{1000, 1000}, true, 9, ready, numbers{10, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			r, terms := running(t)
			f := release.Facts{Now: noon, Ready: tc.ready, Prepares: tc.prepares, Ahead: tc.ahead}
			if tc.before != nil {
				was := terms.Shift("a", tc.weights[0])
				before := release.Decide(release.Facts{Terms: &was, Ready: ready, Now: noon}).After
				before.Split.Sequence, before.Prepared = tc.before.Sequence, tc.before.Prepared
				before.Write(&r.Status)
				f.Before = release.StateOf(r)
			}
			now := terms.Shift("a", tc.weights[1])
			f.Terms = &now
			d := release.Decide(f)
			if diff := cmp.Diff(tc.want, numbers{d.After.Split.Sequence, d.After.Prepared}); diff != "" {
				t.Errorf("the sequences (-want +got):\n%s", diff)
			}
			d.After.Write(&r.Status)
			if diff := cmp.Diff(d.After, release.StateOf(r), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the status gives back another state (-want +got):\n%s", diff)
			}
			f.Before, f.Ahead = release.StateOf(r), 0
			if again := release.Decide(f); again.Grew {
				t.Errorf("the same facts take sequence %d", again.After.Split.Sequence)
			}
		})
	}
}

// replica publishes what it has seen of the status, and what it was ordered.
type replica struct {
	seen      int
	orders    []uint64
	published []traffic.Split
}

func (r *replica) publish(t *rapid.T, history []*v1alpha1.ABRelease) {
	split, _, is := release.Obey(history[r.seen], r.orders)
	if !is {
		t.Fatal("nothing is in force")
	}
	if n := len(r.published); n > 0 && split.Sequence < r.published[n-1].Sequence {
		t.Fatalf("a replica goes back from sequence %d to %d", r.published[n-1].Sequence, split.Sequence)
	}
	r.published = append(r.published, split)
}

// Replicas hear of decisions and of orders in any order. None goes back, and two that publish one
// sequence publish the same.
func TestReplicasAgreeOnASequenceWhateverTheyHearFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, terms := running(t)
		var history []*v1alpha1.ABRelease
		decide := func(weight traffic.Weight, prepares bool) {
			next := terms.Shift("a", weight)
			d := release.Decide(release.Facts{Terms: &next, Before: release.StateOf(r), Ready: map[string]int{"a": 1, "b": 1}, Prepares: prepares, Now: noon})
			d.After.Write(&r.Status)
			history = append(history, r.DeepCopy())
		}
		decide(0, false)
		replicas := []*replica{{}, {}}
		var orders []uint64
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			of := replicas[rapid.IntRange(0, 1).Draw(t, "replica")]
			switch rapid.SampledFrom([]string{"decide", "order", "watch", "obey"}).Draw(t, "step") {
			case "decide":
				decide(traffic.Weight(rapid.SampledFrom([]int{0, 1000, 2500, 10000}).Draw(t, "weight")), rapid.Bool().Draw(t, "run"))
			case "order": // a leader whose view may be old
				at := rapid.IntRange(0, len(history)-1).Draw(t, "view")
				if prepared := history[at].Status.Effective.PreparedSequence; prepared > 0 {
					orders = append(orders, uint64(prepared)) //nolint:gosec // positive
				}
			case "watch":
				of.seen = rapid.IntRange(of.seen, len(history)-1).Draw(t, "seen")
			case "obey":
				if len(orders) > 0 {
					of.orders = append(of.orders, rapid.SampledFrom(orders).Draw(t, "order"))
				}
			}
			of.publish(t, history)
		}
		said := map[uint64]traffic.Split{}
		for _, of := range replicas {
			for _, split := range of.published {
				if was, is := said[split.Sequence]; is && !cmp.Equal(was, split, cmpopts.EquateEmpty()) {
					t.Fatalf("sequence %d is two splits (-one +other):\n%s", split.Sequence, cmp.Diff(was, split))
				}
				said[split.Sequence] = split
			}
		}
	})
}
