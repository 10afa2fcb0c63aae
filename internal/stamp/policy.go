// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// enforceTime is what API servers get to put a new policy in force; they need
	// about a second.
	enforceTime = 2 * time.Second
	// certainAge is the age at which a policy is in force without a wait, also
	// when the API server's clock differs from ours by almost as much.
	certainAge = 30 * time.Second
)

// floor is a version of a kind's objects at which an incarnation was in force.
type floor struct {
	id      string
	version string
}

// Kinds tells how far the watch of a kind is; *kube.Tracker does.
type Kinds interface {
	Health(schema.GroupVersionKind) kube.Health
}

// Policy knows whether the policy that stamps writers is in force, and from
// which version of each kind on. No clock decides that: a kind's floor is the
// version of a list that was answered when the policy was in force, and versions
// that were written later compare as greater (KEP-5504). Its methods may be
// called from any goroutine.
type Policy struct {
	// Live reads past the cache; a list without a resourceVersion is answered from
	// a quorum.
	Live    client.Reader
	Kinds   Kinds
	Clock   clock.WithTicker
	Metrics *Metrics
	Log     logr.Logger
	// LookAt asks to look at all objects of a kind.
	LookAt func(schema.GroupVersionKind)

	reads reads

	mu     sync.Mutex
	last   *Incarnation
	seenAt time.Time // when last was first read, by our clock
	kinds  map[schema.GroupVersionKind]*kind
}

// kind is what is known of one kind that is watched.
type kind struct {
	resource kube.Resource
	floor    floor
	// since is when the policy began to stamp the kind, where the incarnation of the
	// floor continues another one; otherwise zero.
	since time.Time
	// looked is the incarnation since which all objects were looked at.
	looked string
}

// Last is the incarnation as last read; it may be gone by now.
func (p *Policy) Last() Incarnation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return Incarnation{}
	}
	return *p.last
}

// Version is one version of an object, and how far the watch was when it was
// the newest one of that object; Progress is empty when it was not.
type Version struct {
	ResourceVersion, Progress string
}

// Stamps says what the stamp of a version proves while an incarnation is in force:
// nothing where the policy does not cover the kind.
func (p *Policy) Stamps(now Incarnation, gvk schema.GroupVersionKind, v Version) specguard.Stamps {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[gvk]
	if now.ID == "" || k == nil || !now.covers(k.resource) {
		return specguard.Stamps{}
	}
	s := specguard.Stamps{Policy: now.ID, Since: now.Made.Add(enforceTime)}
	if k.floor.id == now.ID {
		s.Written = kube.IsOlder(k.floor.version, v.ResourceVersion)
		s.Confirmed = reached(v.Progress, k.floor.version)
		if !k.since.IsZero() {
			s.Since = k.since
		}
	}
	return s
}

// Settled names the incarnation under which the watch has seen all objects of a
// kind; empty when there is none.
func (p *Policy) Settled(gvk schema.GroupVersionKind, progress string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[gvk]
	if k == nil || !reached(progress, k.floor.version) {
		return ""
	}
	return k.floor.id
}

func reached(version, other string) bool {
	return kube.IsOlder(other, version) || version != "" && version == other
}
