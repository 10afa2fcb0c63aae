// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// drawSpec of two or three variations.
func drawSpec(t *rapid.T, r *v1alpha1.ABRelease) {
	n := rapid.IntRange(2, 3).Draw(t, "variations")
	r.Generation++
	r.Spec = v1alpha1.ABReleaseSpec{ServiceName: "web", Stable: "v0", TrafficSplit: v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage, Percentages: map[string]v1alpha1.Percentage{}}}
	left := 100
	for i := range n {
		name := fmt.Sprint("v", i)
		percent := left
		if i < n-1 {
			percent = rapid.IntRange(0, left).Draw(t, "percent")
		}
		left -= percent
		r.Spec.Variations = append(r.Spec.Variations, v1alpha1.Variation{Name: v1alpha1.VariationName(name), Selector: &v1alpha1.PodSelector{MatchLabels: map[string]v1alpha1.LabelValue{"v": v1alpha1.LabelValue(name)}}})
		r.Spec.TrafficSplit.Percentages[name] = v1alpha1.Percent(int32(percent))
	}
	if rapid.IntRange(0, 5).Draw(t, "invalid") == 0 {
		r.Spec.TrafficSplit.Percentages["v0"] = v1alpha1.Percent(r.Spec.TrafficSplit.Percentages["v0"].IntVal + 1)
	}
}

// Whatever happens: the sequence grows exactly when what is in force changes, all of
// the traffic goes somewhere, and what a variation without endpoints loses has the
// stable one.
func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r v1alpha1.ABRelease
		r.Namespace, r.Name, r.UID = "shop", "web", "u1"
		drawSpec(t, &r)
		now := noon
		ready := map[string]int{"v0": 1, "v1": 1, "v2": 1}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"spec", "ready", "wait"}).Draw(t, "what") {
			case "spec":
				drawSpec(t, &r)
			case "ready":
				ready[rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "of")] = rapid.IntRange(0, 2).Draw(t, "ready")
			case "wait":
				now = now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds")) * time.Second)
			}
			before := release.StateOf(&r)
			facts := release.Facts{Before: before, Ready: ready, Now: now}
			if terms, err := release.TermsOf(&r); err == nil {
				facts.Terms = &terms
			}
			d := release.Decide(facts)
			check(t, before, d, ready)
			d.After.Write(&r.Status)
			if d.After == nil {
				continue
			}
			facts.Before = release.StateOf(&r)
			if diff := cmp.Diff(d.After, facts.Before, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("what comes back from the status differs:\n%s", diff)
			}
			if again := release.Decide(facts); again.Grew || len(again.Events) > 0 {
				t.Fatalf("the same facts again: %+v", again)
			}
		}
	})
}

func check(t *rapid.T, before *release.State, d release.Decision, ready map[string]int) {
	if d.After == nil {
		if before != nil {
			t.Fatal("nothing is in force any more")
		}
		return
	}
	if err := d.After.Split.Shares.Validate(); err != nil {
		t.Fatal(err)
	}
	if before != nil {
		was, is := before.Split, d.After.Split
		same := cmp.Equal(was.Shares, is.Shares) && cmp.Equal(was.Variations, is.Variations)
		if d.Grew == same || d.Grew && is.Sequence != was.Sequence+1 || !d.Grew && is.Sequence != was.Sequence {
			t.Fatalf("the sequence goes from %d to %d, grew is %v, the same is %v", was.Sequence, is.Sequence, d.Grew, same)
		}
	}
	if ready["v0"] == 0 {
		return
	}
	var lost traffic.Weight
	for i, share := range d.After.Split.Shares[1:] {
		wanted := d.After.Wanted[i+1].Weight
		if ready[share.Variation] == 0 && share.Weight != 0 {
			t.Fatalf("%s has no endpoints and %d", share.Variation, share.Weight)
		}
		if share.Weight != 0 && share.Weight != wanted {
			t.Fatalf("%s has %d, wanted %d", share.Variation, share.Weight, wanted)
		}
		lost += wanted - share.Weight
	}
	if stable := d.After.Split.Shares[0].Weight; stable != d.After.Wanted[0].Weight+lost {
		t.Fatalf("the stable one has %d, wanted %d and %d that others lost", stable, d.After.Wanted[0].Weight, lost)
	}
}
