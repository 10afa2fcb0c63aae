// SPDX-License-Identifier: Apache-2.0

package standby

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Release returns the ABRelease of a standby, which leaves all requests with the target. owner is the
// plan, so that the garbage collector removes the ABRelease with a plan that somebody deletes.
func Release(namespace, target string, of *v1alpha1.StepStandby, id string, owner metav1.OwnerReference) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: of.Name, Labels: map[string]string{v1alpha1.LabelStandby: id}, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: v1alpha1.ABReleaseSpec{
			ServiceName: of.ServiceName, Stable: v1alpha1.VariationTarget,
			Variations: []v1alpha1.Variation{
				{Name: v1alpha1.VariationTarget, Workload: deployment(target)},
				{Name: v1alpha1.VariationStandby, Workload: deployment(of.Name)},
			},
			TrafficSplit: v1alpha1.TrafficSplit{Type: v1alpha1.TrafficSplitPercentage},
		},
	}
	GiveAll(r, v1alpha1.VariationTarget)
	return r
}

func deployment(name string) *v1alpha1.VariationWorkload {
	return &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: name}
}

// GiveAll has an ABRelease of a standby give all requests to one variation.
func GiveAll(r *v1alpha1.ABRelease, to v1alpha1.VariationName) {
	r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{
		string(v1alpha1.VariationTarget): v1alpha1.Percent(0), string(v1alpha1.VariationStandby): v1alpha1.Percent(0),
	}
	r.Spec.TrafficSplit.Percentages[string(to)] = v1alpha1.Percent(100)
}

// Standing is what an ABRelease of a standby says about requests.
type Standing struct {
	// ToStandby says that the spec gives requests to the standby.
	ToStandby bool
	// InForce says that all proxies have acknowledged what the spec says, and Why what is missing.
	InForce bool
	Why     string
	// NoProxies says that no proxy is there that could acknowledge it.
	NoProxies bool
	// InFlight are requests that the standby has not answered, as far as proxies have told.
	InFlight int64
}

// StandingOf reads an ABRelease of a standby. Only what its status says of the present generation counts.
func StandingOf(r *v1alpha1.ABRelease) Standing {
	s := Standing{ToStandby: r.Spec.TrafficSplit.Percentages[string(v1alpha1.VariationTarget)] != v1alpha1.Percent(100)}
	for i := range r.Status.Observed {
		if o := &r.Status.Observed[i]; o.Variation == v1alpha1.VariationStandby && o.InFlight != nil {
			s.InFlight = *o.InFlight
		}
	}
	effective, seen := r.Status.Effective, r.Status.Acknowledged
	switch {
	case effective == nil || effective.Generation != r.Generation:
		s.Why = "the discovery server has not decided yet" + tellReady(r)
		return s
	case !givesAll(effective, s.ToStandby):
		s.Why = "the discovery server holds it back" + tellReady(r)
		return s
	case seen == nil:
		s.Why = "the discovery server has not told yet which proxies have it"
		return s
	}
	s.NoProxies = seen.Knowledge == v1alpha1.AcknowledgedByNoProxy
	known := seen.Knowledge == v1alpha1.AcknowledgedProven || seen.Knowledge == v1alpha1.AcknowledgedAccepted
	if s.InForce = known && seen.Sequence >= effective.Sequence; !s.InForce {
		s.Why = seen.Count + " proxies have acknowledged it" + tellReady(r)
	}
	return s
}

// givesAll says that the split in force gives all requests to one variation: no share is withheld.
func givesAll(f *v1alpha1.EffectiveSplit, toStandby bool) bool {
	want := v1alpha1.VariationTarget
	if toStandby {
		want = v1alpha1.VariationStandby
	}
	for i := range f.Variations {
		if v := &f.Variations[i]; v.Name == want {
			return v.Weight != nil && *v.Weight == int32(traffic.Total)
		}
	}
	return false
}

// tellReady returns the message of the condition Ready, as the end of a sentence.
func tellReady(r *v1alpha1.ABRelease) string {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == v1alpha1.ConditionReady && c.Message != "" {
			return ": " + c.Message
		}
	}
	return ""
}
