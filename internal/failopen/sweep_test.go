// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func keyOf(name string) kube.Key {
	return kube.Key{GroupVersionKind: deploymentKind, Namespace: "n", Name: name}
}

// stored is an object as a list of metadata shows it.
func stored(name, version string, generation int64, written ...time.Time) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version, Generation: generation,
		CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	for _, at := range written {
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Time: new(metav1.NewTime(at))})
	}
	return o
}

// apiServer lists in pages of two.
type apiServer struct {
	client.Reader
	objects []metav1.PartialObjectMetadata
	err     error
}

func (a *apiServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	page := list.(*metav1.PartialObjectMetadataList)
	if page.GroupVersionKind() != deploymentKind.GroupVersion().WithKind("DeploymentList") || o.Limit == 0 {
		return errors.New("asked for something else")
	}
	begin := len(o.Continue)
	end := min(begin+2, len(a.objects))
	page.Items = a.objects[begin:end]
	page.ResourceVersion = "100"
	if end < len(a.objects) {
		page.Continue = strings.Repeat("x", end)
	}
	return a.err
}

type baselines struct {
	client.Reader
	items []v1alpha1.Baseline
}

func (b baselines) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.BaselineList).Items = b.items
	return nil
}

func baselineOf(name string, generation int64) v1alpha1.Baseline {
	return v1alpha1.Baseline{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n"},
		Spec:       v1alpha1.BaselineSpec{Target: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}},
		Status:     v1alpha1.BaselineStatus{Observed: v1alpha1.ObservedState{UID: "uid-" + name, Generation: generation}},
	}
}

func released(b v1alpha1.Baseline) v1alpha1.Baseline {
	b.Status.State = v1alpha1.StateNotGuarded
	return b
}

// known is what a watch has; later it may have caught up.
type known struct {
	versions map[string]string
	later    map[string]string
	watches  [][]string
	began    time.Time
}

func (k *known) View(key kube.Key) kube.View {
	version, ok := k.versions[key.Name]
	if newer, moved := k.later[key.Name]; moved && time.Since(k.began) > time.Second {
		version, ok = newer, newer != ""
	}
	if !ok {
		return kube.View{}
	}
	return kube.View{Current: &kube.Object{ObjectMeta: metav1.ObjectMeta{Name: key.Name, ResourceVersion: version}}}
}

func (k *known) Each(f func(kube.Key)) {
	for name := range k.versions {
		f(keyOf(name))
	}
}

func (k *known) Watch(_ context.Context, resources []kube.Resource) {
	kinds := []string{}
	for _, r := range resources {
		kinds = append(kinds, r.GVK.Kind)
	}
	k.watches = append(k.watches, kinds)
}

type guardsOf struct{ snapshot *guards.Snapshot }

func (g guardsOf) Snapshot() *guards.Snapshot { return g.snapshot }

func TestSweep(t *testing.T) {
	before, within := noon.Add(-time.Minute), noon.Add(30*time.Second)
	window := Window{Evidence: EvidenceEndpoints, From: noon, To: noon.Add(time.Minute)}
	tests := map[string]struct {
		objects   []metav1.PartialObjectMetadata
		known     known
		baselines []v1alpha1.Baseline
		looked    []string
		watch     float64
		status    float64
		relisted  bool
	}{
		"only what was written in the window is looked at": {
			objects:   []metav1.PartialObjectMetadata{stored("old", "5", 1, before), stored("new", "9", 2, before, within), stored("bare", "6", 1)},
			known:     known{versions: map[string]string{"old": "5", "new": "9", "bare": "6"}},
			baselines: []v1alpha1.Baseline{baselineOf("new", 2), baselineOf("bare", 1)},
			looked:    []string{"bare", "new"},
		},
		"what was on its way has arrived": {
			objects: []metav1.PartialObjectMetadata{stored("a", "9", 2, within)},
			known:   known{versions: map[string]string{"a": "5"}, later: map[string]string{"a": "9"}},
			looked:  []string{"a"},
		},
		"a version that the watch missed": {
			objects: []metav1.PartialObjectMetadata{stored("a", "9", 2, within)}, known: known{versions: map[string]string{"a": "5"}},
			looked: []string{"a"}, watch: 1, relisted: true,
		},
		"a deletion that the watch missed": {
			known: known{versions: map[string]string{"gone": "5"}}, watch: 1, relisted: true,
		},
		"a deletion that was on its way": {
			known: known{versions: map[string]string{"gone": "5"}, later: map[string]string{"gone": ""}},
		},
		"an object that is newer than the list is not gone": {
			known: known{versions: map[string]string{"made": "101"}},
		},
		"an object of a namespace that does not count": {
			objects: []metav1.PartialObjectMetadata{stored("other", "9", 2, within)}, looked: []string{"other"},
		},
		"a baseline that lags is looked at twice": {
			objects: []metav1.PartialObjectMetadata{stored("a", "9", 2, within)}, known: known{versions: map[string]string{"a": "9"}},
			baselines: []v1alpha1.Baseline{baselineOf("a", 1)}, looked: []string{"a", "a"}, status: 1,
		},
		"a baseline whose guard is gone lags behind nothing": {
			objects: []metav1.PartialObjectMetadata{stored("a", "9", 2, within)}, known: known{versions: map[string]string{"a": "9"}},
			baselines: []v1alpha1.Baseline{released(baselineOf("a", 1))}, looked: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				metrics, err := NewMetrics(prometheus.NewRegistry())
				if err != nil {
					t.Fatal(err)
				}
				tc.known.began = time.Now()
				var looked []string
				s := &Sweep{
					Live: &apiServer{objects: tc.objects}, Baselines: baselines{items: tc.baselines}, Objects: &tc.known,
					Guards:   guardsOf{&guards.Snapshot{Resources: map[schema.GroupVersionKind]kube.Resource{deploymentKind: {GVK: deploymentKind, Plural: "deployments"}}}},
					Look:     func(key kube.Key) { looked = append(looked, key.Name) },
					Lifetime: t.Context(), Metrics: metrics, Clock: clock.RealClock{}, Log: logr.Discard(),
				}
				if err := s.Sweep(t.Context(), window); err != nil {
					t.Fatal(err)
				}
				slices.Sort(looked)
				if diff := cmp.Diff(tc.looked, looked); diff != "" {
					t.Errorf("looked at (-want +got):\n%s", diff)
				}
				got := [2]float64{testutil.ToFloat64(metrics.behind.WithLabelValues(behindWatch)), testutil.ToFloat64(metrics.behind.WithLabelValues(behindStatus))}
				if want := [2]float64{tc.watch, tc.status}; got != want {
					t.Errorf("behind: %v, want %v (watch, status)", got, want)
				}
				want := [][]string(nil)
				if tc.relisted {
					want = [][]string{{}, {"Deployment"}}
				}
				if diff := cmp.Diff(want, tc.known.watches); diff != "" {
					t.Errorf("watches (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSweepFailsRatherThanToSayThatAllIsWell(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	snapshot := &guards.Snapshot{Resources: map[schema.GroupVersionKind]kube.Resource{deploymentKind: {GVK: deploymentKind}}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx   context.Context
		sweep Sweep
	}{
		"the guards are not read": {t.Context(), Sweep{Guards: guardsOf{}}},
		"a list fails":            {t.Context(), Sweep{Guards: guardsOf{snapshot}, Live: &apiServer{err: errors.New("no")}}},
		"told to stop":            {ended, Sweep{Guards: guardsOf{snapshot}, Live: &apiServer{}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.sweep.Objects, tc.sweep.Metrics, tc.sweep.Clock = &known{}, metrics, clock.RealClock{}
			if err := tc.sweep.Sweep(tc.ctx, Window{}); err == nil {
				t.Error("no error")
			}
		})
	}
}
