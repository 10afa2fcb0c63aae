// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Name of the policy and of its binding, as the chart has them.
const Name = "plumbline-writer"

const (
	// readTime bounds one read of policy and binding.
	readTime = 10 * time.Second
	// refusalTime is how long reads must have been refused until they count as
	// refused for good. An API server that has just started refuses everything
	// until it has read the roles.
	refusalTime = time.Minute
)

// The two objects without which nothing is stamped.
var objects = [...]schema.GroupVersionKind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBinding"},
}

// reads shares reads between callers: one that began after a call did answers it.
type reads struct {
	calls atomic.Uint64
	mu    sync.Mutex
	// covered is the newest call that the last read began after.
	covered uint64
	result  Incarnation
	// refusedSince is zero unless the last read was refused.
	refusedSince time.Time
}

// Now reads which incarnation is in force, not before it is called. A policy that
// is missing, not served, or has been refused to us for a minute is not in force;
// the error is of a read that has to be repeated.
func (p *Policy) Now(ctx context.Context) (Incarnation, error) {
	call := p.reads.calls.Add(1)
	p.reads.mu.Lock()
	defer p.reads.mu.Unlock()
	if p.reads.covered >= call {
		return p.reads.result, nil
	}
	covered := p.reads.calls.Load()
	now, err := p.read(ctx)
	if err != nil {
		return Incarnation{}, err
	}
	p.reads.covered, p.reads.result = covered, now
	p.note(now)
	return now, nil
}

func (p *Policy) read(ctx context.Context) (Incarnation, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	var found [len(objects)]unstructured.Unstructured
	var failed [len(objects)]error
	var wg sync.WaitGroup
	for i, gvk := range objects {
		found[i].SetGroupVersionKind(gvk)
		wg.Go(func() { failed[i] = p.Live.Get(ctx, types.NamespacedName{Name: Name}, &found[i]) })
	}
	wg.Wait()
	lasting := p.refusalLasts(slices.ContainsFunc(failed[:], apierrors.IsForbidden))
	for i, err := range failed {
		switch {
		case err == nil:
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err), lasting && apierrors.IsForbidden(err):
			return Incarnation{}, nil
		default:
			return Incarnation{}, fmt.Errorf("asking whether %s %s is active: %w", objects[i].Kind, Name, err)
		}
	}
	var policy admissionv1.MutatingAdmissionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[0].Object, &policy); err != nil {
		return Incarnation{}, fmt.Errorf("reading %s %s: %w", objects[0].Kind, Name, err)
	}
	return incarnationOf(&policy, &found[1])
}

// refusalLasts says whether reads have been refused for long; reads come one at
// a time.
func (p *Policy) refusalLasts(refused bool) bool {
	now := p.Clock.Now()
	switch {
	case !refused:
		p.reads.refusedSince = time.Time{}
		return false
	case p.reads.refusedSince.IsZero():
		p.reads.refusedSince = now
	}
	return now.Sub(p.reads.refusedSince) >= refusalTime
}

// note remembers what was read, and tells when it is news. The floor of a kind that
// was stamped without a break goes over to the next incarnation.
func (p *Policy) note(now Incarnation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.last == nil
	if !first && p.last.ID == now.ID {
		return
	}
	if !first {
		for _, k := range p.kinds {
			if k.floor.id == p.last.ID && now.continues(*p.last, k.resource) {
				if k.since.IsZero() {
					k.since = p.last.Made.Add(enforceTime)
				}
				k.floor.id = now.ID
			}
		}
	}
	p.last, p.seenAt = &now, p.Clock.Now()
	p.Metrics.inForce(now.ID != "")
	switch {
	case now.ID == "":
		p.Log.Info("the policy that stamps writers is not active: no stamp authorizes a write", "policy", Name)
	case !first:
		p.Log.Info("the policy that stamps writers is new or changed: earlier stamps authorize no write, except for kinds that it went on stamping",
			"policy", Name, "made", now.Made)
	}
}
