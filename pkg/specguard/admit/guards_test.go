// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// widgetKinds is a Mapper that knows the kind Widget after a listing; each listing lasts
// until goOn is closed.
type widgetKinds struct {
	meta.RESTMapper
	asked, listed atomic.Bool
	goOn          chan struct{}
}

func (k *widgetKinds) FindListed(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Kind != "Widget" || !k.listed.Load() {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: kind.Group, Version: versions[0], Resource: "widgets"}}, nil
}

func (k *widgetKinds) Refresh() bool {
	k.asked.Store(true)
	<-k.goOn
	return !k.listed.Swap(true)
}

// guardsWorld is a Guards that reads a fake API server.
type guardsWorld struct {
	*Guards
	t     *testing.T
	kinds *widgetKinds
	kube  client.Client
}

// keepGuards keeps the snapshot until the end of the test.
func keepGuards(t *testing.T) *guardsWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds, kube := &widgetKinds{goOn: make(chan struct{})}, fakeclient.NewBuilder(scheme).Build()
	w := &guardsWorld{t: t, kinds: kinds, kube: kube, Guards: &Guards{
		cfg:    GuardsConfig{Mapper: kinds, Log: quiet()},
		cached: kube, direct: kube,
		changed: make(chan struct{}, 1), lacking: make(chan struct{}, 1),
		compiled: map[guardKey]compiledGuard{},
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.keep(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("keeping the guards: %v", err)
		}
	})
	return w
}

// create makes a guard of a kind in a namespace, as its watch would tell.
func (w *guardsWorld) create(namespace, apiVersion, kind string) {
	w.t.Helper()
	g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guard", UID: types.UID(namespace)}, Spec: guardSpec(nil)}
	g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: apiVersion, Kind: kind}}
	if err := w.kube.Create(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
	wake(w.changed)
}

func (w *guardsWorld) untilGuarded(namespace string, gvk canon.GVK) {
	w.t.Helper()
	poll.True(w.t, 20*time.Second, "the guard of namespace "+namespace+" is in force", func() bool {
		s := w.Snapshot()
		return s != nil && !s.rulesUnseen(namespace, "", gvk, time.Now()).Empty()
	})
}

// H2 of the guard's review: everybody's guards waited for the answer about kinds that one
// tenant had named.
func TestAListingOfKindsThatHangsDelaysNoGuard(t *testing.T) {
	w := keepGuards(t)
	t.Cleanup(func() { close(w.kinds.goOn) }) // before the end of keep, which waits for it
	w.create("mallory", "example.org/v1", "Widget")
	poll.True(t, 20*time.Second, "the kinds are listed", w.kinds.asked.Load)
	w.create("shop", "apps/v1", "Deployment")
	w.untilGuarded("shop", deploymentGVK)
	w.untilGuarded("mallory", canon.GVK{Group: "example.org", Version: "v1", Kind: "Widget"})
}

func TestAKindThatAppearsLaterIsKnownToTheReviewsOfItsScale(t *testing.T) {
	w := keepGuards(t)
	close(w.kinds.goOn)
	w.create("shop", "example.org/v1", "Widget")
	want := canon.GVK{Group: "example.org", Version: "v1", Kind: "Widget"}
	poll.True(t, 20*time.Second, "widgets are known", func() bool {
		s := w.Snapshot()
		return s != nil && s.Parents[GroupResource{"example.org", "widgets"}] == want
	})
	if n := w.unknown.Load(); n != 0 {
		t.Errorf("%d kinds are unknown", n)
	}
}
