// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// held is a publisher of one bundle, which whoever asks first waits for.
type held struct {
	bundle []byte
	asked  atomic.Bool
	first  func()
}

func (*held) Informers() []cache.SharedIndexInformer { return nil }

func (*held) Publish(context.Context, []byte) error { return nil }

func (h *held) Published() [][]byte {
	if h.asked.CompareAndSwap(false, true) {
		h.first()
	}
	return [][]byte{h.bundle}
}

// Each informer tells of changes by itself. One that had read the Secret before another
// took the former certificate back into service, until the next change.
func TestOfTwoWhoLoadAtOnceTheNewerCertificateStays(t *testing.T) {
	now := time.Now()
	before := newPair(t, now)
	after := before.reissued(t, now)
	k := NewKeeper(fake.NewClientset(), Config{Mode: ModeSelfManaged, Namespace: "n", SecretName: "tls", Names: names}, NewClock(quiet()), quiet())
	secrets := k.watch.secret.GetStore()
	store := func(p pair) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "tls"}, Data: p.data(t)}
		if err := secrets.Add(s); err != nil {
			t.Error(err)
		}
	}
	store(before)
	loaded := make(chan struct{})
	k.watch.publisher = &held{bundle: before.bundle(), first: func() {
		store(after)
		go func() { defer close(loaded); k.observe() }()
		if k.observing.TryLock() { // nobody waits for who loads
			k.observing.Unlock()
			<-loaded
		}
	}}
	k.observe()
	<-loaded
	if !isServing(k, after) {
		t.Error("the former certificate is served")
	}
}
