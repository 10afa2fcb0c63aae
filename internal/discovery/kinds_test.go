// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// beginning is a cache that has not begun. As a real one it does not wait for an
// informer before it begins.
type beginning struct {
	cache.Cache
	informer *controllertest.FakeInformer
}

func (*beginning) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (b *beginning) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return b.informer, nil
}

// A discovery server that asked for the kinds before its cache had begun served no
// ABRelease for half a minute: the clock of this test never moves.
func TestAKindThatIsThereAndNotSyncedIsNotTakenForMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		installed := &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()}
		for _, kind := range []string{releaseKind, baselineKind} {
			installed.APIResources = append(installed.APIResources, metav1.APIResource{Kind: kind})
		}
		c := &beginning{informer: controllertest.NewFakeInformer()}
		s := &sources{
			cache: c, clock: clocktesting.NewFakeClock(begin), log: logr.Discard(),
			api:   &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{installed}}},
			kinds: map[string]bool{}, known: make(chan struct{}),
		}
		go s.watchKinds(t.Context(), func(Haste, dirty) {})
		synctest.Wait() // it has come as far as it can without the cache
		c.informer.Synced()
		poll.Receive(t, time.Second, "it is known which kinds there are", s.known)
		for _, kind := range []string{releaseKind, baselineKind} {
			if !s.has(kind) {
				t.Errorf("%s is there, and was taken for missing", kind)
			}
		}
	})
}
