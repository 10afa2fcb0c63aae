// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// remembered is what is kept of one object between two reconciliations.
type remembered struct {
	state specguard.State
	// context is what the state was judged under.
	context surrounding
	// due is when something changes by time alone; zero when nothing does.
	due time.Time
	// written is the Baseline as last written, kept until the cache has it.
	written *v1alpha1.Baseline
	// asked are the annotations of the object when it was last there.
	asked map[string]string
}

// memory remembers objects; its methods may be called from any goroutine.
type memory struct {
	mu    sync.Mutex
	byKey map[kube.Key]*remembered
	byUID map[string]kube.Key
}

func newMemory() *memory {
	return &memory{byKey: map[kube.Key]*remembered{}, byUID: map[string]kube.Key{}}
}

func (m *memory) get(key kube.Key) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.byKey[key]; r != nil {
		return *r, true
	}
	return remembered{}, false
}

// put remembers an object; the body is dropped, it is loaded again when needed.
func (m *memory) put(key kube.Key, r remembered) {
	r.state.Body = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.byKey[key]; old != nil && old.state.Observed.UID != r.state.Observed.UID {
		m.dropUID(old.state.Observed.UID, key)
	}
	m.byKey[key] = &r
	if uid := r.state.Observed.UID; uid != "" {
		m.byUID[uid] = key
	}
}

// wrote keeps a Baseline that was written until the cache has it.
func (m *memory) wrote(key kube.Key, b *v1alpha1.Baseline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.byKey[key]; r != nil {
		r.written = b
	}
}

// distrust forgets the state after a failed write, and keeps the Baseline as
// read live, since the cache may be older.
func (m *memory) distrust(key kube.Key, live *v1alpha1.Baseline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.byKey[key]; r != nil {
		m.dropUID(r.state.Observed.UID, key)
	}
	if live == nil {
		delete(m.byKey, key)
		return
	}
	m.byKey[key] = &remembered{written: live}
}

func (m *memory) forget(key kube.Key) { m.distrust(key, nil) }

func (m *memory) dropUID(uid string, key kube.Key) {
	if m.byUID[uid] == key {
		delete(m.byUID, uid)
	}
}

// keyOf finds the object of a uid that was observed.
func (m *memory) keyOf(uid string) (kube.Key, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, ok := m.byUID[uid]
	return key, ok
}

// caughtUp drops the written Baseline once the cache has it or a newer one. What the state and the
// cached Baseline both say is then in memory once.
func (m *memory) caughtUp(key kube.Key, cached *v1alpha1.Baseline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.byKey[key]
	if r == nil || r.written != nil && newer(r.written, cached) {
		return
	}
	r.written, r.state = nil, r.state.Share(cached)
}

// agrees says whether a remembered state tells the same as a Baseline, so that
// it may stand for it.
func agrees(s *specguard.State, b *v1alpha1.Baseline) bool {
	return b.Status.State == s.Drift && s.Drift != "" &&
		b.Status.Observed.UID == s.Observed.UID &&
		b.Status.Observed.FullHash == s.Observed.FullHash &&
		equality.Semantic.DeepEqual(b.Spec.Authorized, s.Authorized)
}

// newer says whether a was written after b. Versions of one resource are
// comparable as integers (KEP-5504); what cannot be parsed counts as newer,
// since the cost is one conflict.
func newer(a, b *v1alpha1.Baseline) bool {
	if b == nil || a.UID != b.UID {
		return true
	}
	return a.ResourceVersion != b.ResourceVersion && !kube.IsOlder(a.ResourceVersion, b.ResourceVersion)
}
