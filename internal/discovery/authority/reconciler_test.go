// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

const ours = "plumbline-system"

// world is a namespace "shop" that wants the authorities, and what is in it.
type world struct {
	*testing.T
	client   client.Client
	recorder *events.FakeRecorder
	r        *Reconciler
}

func newWorld(t *testing.T, original string, more ...client.Object) *world {
	t.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{inject.LabelInject: inject.Enabled}}}
	objects := append([]client.Object{shop, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ours}}, configMap(ours, original, nil)}, more...)
	w := &world{T: t, client: fake.NewClientBuilder().WithObjects(objects...).Build(), recorder: events.NewFakeRecorder(10)}
	w.r = &Reconciler{Reader: w.client, Writer: w.client, Namespace: ours, Recorder: w.recorder, Metrics: metrics, Log: logr.Discard()}
	return w
}

func configMap(namespace, bundle string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: inject.CAConfigMap, Labels: labels},
		Data:       map[string]string{inject.CAKey: bundle},
	}
}

func (w *world) reconcile(namespace string) {
	w.Helper()
	if _, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) data() map[string]string {
	w.Helper()
	m, err := w.r.read(w.Context(), "shop")
	if err != nil {
		w.Fatal(err)
	}
	if m == nil {
		return nil
	}
	return m.Data
}

func (w *world) copies(state string) float64 {
	return testutil.ToFloat64(w.r.Metrics.copies.WithLabelValues(state))
}

func TestACopyFollowsTheOriginalAsLongAsThatIsABundle(t *testing.T) {
	_, authority := envoy.NewServing(t)
	bundle, label := string(authority), map[string]string{LabelManagedBy: ManagedBy}
	tests := map[string]struct {
		original string
		present  []client.Object
		want     map[string]string
	}{
		"there is none yet":       {bundle, nil, map[string]string{inject.CAKey: bundle}},
		"there is an older one":   {bundle, []client.Object{configMap("shop", "old", label)}, map[string]string{inject.CAKey: bundle}},
		"somebody emptied it":     {"", []client.Object{configMap("shop", "old", label)}, map[string]string{inject.CAKey: "old"}},
		"somebody spoilt it":      {"none", []client.Object{configMap("shop", "old", label)}, map[string]string{inject.CAKey: "old"}},
		"it was never filled":     {"", nil, nil},
		"the copy is not our own": {bundle, []client.Object{configMap("shop", "theirs", nil)}, map[string]string{inject.CAKey: "theirs"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.original, tc.present...)
			w.reconcile("shop")
			w.reconcile(ours)
			if diff := cmp.Diff(tc.want, w.data()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotOursIsToldOnce(t *testing.T) {
	_, authority := envoy.NewServing(t)
	w := newWorld(t, string(authority), configMap("shop", "theirs", nil))
	w.reconcile("shop")
	w.reconcile("shop")
	if n := len(w.recorder.Events); n != 1 {
		t.Fatalf("%d events", n)
	}
	if event := <-w.recorder.Events; !strings.Contains(event, "ConfigMapNotOurs") || !strings.Contains(event, "Remove or rename it") {
		t.Errorf("the event is %q", event)
	}
	if w.copies(stateForeign) != 1 || w.copies(stateCurrent) != 0 {
		t.Errorf("%v foreign and %v current copies are counted", w.copies(stateForeign), w.copies(stateCurrent))
	}
	theirs, err := w.r.read(t.Context(), "shop")
	if err == nil {
		err = w.client.Delete(t.Context(), theirs)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.reconcile("shop") // makes it
	w.reconcile("shop") // finds it right
	if w.copies(stateForeign) != 0 || w.copies(stateCurrent) != 1 {
		t.Errorf("%v foreign and %v current copies are counted", w.copies(stateForeign), w.copies(stateCurrent))
	}
}

func TestANamespaceThatIsGoneCountsNoMore(t *testing.T) {
	w := newWorld(t, "")
	w.reconcile("shop")
	if w.copies(stateStale) != 1 {
		t.Fatalf("%v stale copies are counted", w.copies(stateStale))
	}
	if err := w.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	w.reconcile("shop")
	if w.copies(stateStale) != 0 {
		t.Errorf("%v stale copies are counted", w.copies(stateStale))
	}
}
