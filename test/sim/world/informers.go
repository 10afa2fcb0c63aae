// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// informers are what a process knows by its watches. Each kind comes by a stream of
// its own, behind by a while that nobody can tell: it begins with a list of some
// time ago, is mostly late by a moment, and stands still at times. What is seen of
// an object never goes back; what is seen of two kinds may be of two moments.
type informers struct {
	w    *World
	life *schedule.Life
	rng  *rand.Rand
	told chan struct{}

	mu      sync.Mutex
	streams map[string]*stream
	order   []string
	news    []change
}

// stream of one kind.
type stream struct {
	objects map[string]apiserver.Object
	coming  []coming
	// seen is the revision of the last write that was seen.
	seen int64
}

type coming struct {
	at     time.Time
	commit apiserver.Commit
}

// change of an object as a handler is told of it; without old it is new to it,
// without now it is gone.
type change struct {
	resource, namespace, name string
	old, now                  apiserver.Object
}

const (
	// behind is how far back the list may be with which a stream begins, in writes.
	behind = 40
	// moment is how late a stream mostly is, and standstill how long it may stand
	// still.
	moment     = 100 * time.Millisecond
	standstill = 30 * time.Second
)

// informers of a process begin with a list of all that it watches.
func (w *World) informers(l *schedule.Life, resources []string) *informers {
	in := &informers{
		w: w, life: l, told: make(chan struct{}, 1), streams: map[string]*stream{}, order: resources,
		rng: rand.New(rand.NewPCG(l.Rand().Uint64(), 1)), //nolint:gosec // to be had again
	}
	for _, r := range resources {
		in.streams[r] = &stream{objects: map[string]apiserver.Object{}}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	w.Server.Watch(in.stored)
	history := w.Server.History()
	since := map[string]int{}
	for _, r := range resources {
		since[r] = len(history) - in.rng.IntN(min(behind, len(history))+1)
	}
	for i, c := range history {
		switch s := in.streams[c.Resource.Resource]; {
		case s == nil:
		case i < since[c.Resource.Resource]:
			s.apply(c)
		default:
			in.late(s, c)
		}
	}
	for _, r := range resources {
		for _, key := range slices.Sorted(maps.Keys(in.streams[r].objects)) {
			o := in.streams[r].objects[key]
			in.news = append(in.news, changeOf(r, nil, o))
		}
	}
	return in
}

// stored is told of every write, at once.
func (in *informers) stored(c apiserver.Commit) {
	if in.life.Context().Err() != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.streams[c.Resource.Resource]
	if s == nil {
		return
	}
	in.late(s, c)
	in.tell()
}

// tell wakes the process.
func (in *informers) tell() {
	select {
	case in.told <- struct{}{}:
	default:
	}
}

// late lets a write be seen after a while, and after those before it.
func (in *informers) late(s *stream, c apiserver.Commit) {
	at := time.Now().Add(time.Duration(in.rng.Int64N(int64(moment))))
	if !in.w.calm.Load() && in.rng.IntN(in.w.still) == 0 {
		in.w.stalls.Add(1)
		at = time.Now().Add(time.Duration(in.rng.Int64N(int64(standstill))))
	}
	if n := len(s.coming); n > 0 && s.coming[n-1].at.After(at) {
		at = s.coming[n-1].at
	}
	s.coming = append(s.coming, coming{at, c})
}

func (s *stream) apply(c apiserver.Commit) {
	s.seen = c.Revision
	key := c.Namespace + "/" + c.Name
	if c.After == nil {
		delete(s.objects, key)
		return
	}
	s.objects[key] = c.After
}

// catchUp sees what has come by now; the informers are locked.
func (in *informers) catchUp() {
	now := time.Now()
	for _, r := range in.order {
		s := in.streams[r]
		for len(s.coming) > 0 && !s.coming[0].at.After(now) {
			c := s.coming[0].commit
			s.coming = s.coming[1:]
			old := s.objects[c.Namespace+"/"+c.Name]
			s.apply(c)
			if old != nil || c.After != nil {
				in.news = append(in.news, changeOf(r, old, c.After))
			}
		}
	}
}

func changeOf(resource string, old, now apiserver.Object) change {
	m := metadata(now)
	if now == nil {
		m = metadata(old)
	}
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	return change{resource, namespace, name, old, now}
}

// changes that were seen since they were asked for last.
func (in *informers) changes() []change {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.catchUp()
	all := in.news
	in.news = nil
	return all
}

// next is when something more is seen; zero when nothing is on its way.
func (in *informers) next() time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	var next time.Time
	for _, r := range in.order {
		if s := in.streams[r]; len(s.coming) > 0 && (next.IsZero() || s.coming[0].at.Before(next)) {
			next = s.coming[0].at
		}
	}
	return next
}

// seen is the revision of the last write of a kind that was seen.
func (in *informers) seen(resource string) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.streams[resource].seen
}

// List implements client.Reader.
func (in *informers) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.catchUp()
	switch list := list.(type) {
	case *v1alpha1.RemediationPlanList:
		list.Items = listOf[v1alpha1.RemediationPlan](in, "remediationplans")
	case *v1alpha1.SpecGuardList:
		list.Items = listOf[v1alpha1.SpecGuard](in, "specguards")
	case *v1alpha1.ClusterSpecGuardList:
		list.Items = listOf[v1alpha1.ClusterSpecGuard](in, "clusterspecguards")
	case *v1alpha1.GuardDefaultsList:
		list.Items = listOf[v1alpha1.GuardDefaults](in, "guarddefaults")
	case *v1alpha1.EnvironmentList:
		list.Items = listOf[v1alpha1.Environment](in, "environments")
	case *v1alpha1.BaselineList:
		list.Items = listOf[v1alpha1.Baseline](in, "baselines")
	case *v1alpha1.RemediationPolicyList:
		list.Items = listOf[v1alpha1.RemediationPolicy](in, "remediationpolicies")
	case *v1alpha1.SpecGuardExceptionList: // no world makes one
		list.Items = nil
	case *v1alpha1.RemediationRequestList: // nobody asks for anything here
		list.Items = nil
	case *metav1.PartialObjectMetadataList:
		list.Items = listOf[metav1.PartialObjectMetadata](in, "namespaces")
	default:
		return fmt.Errorf("listing %T from a cache: nobody watches it", list)
	}
	return nil
}

func listOf[T any](in *informers, resource string) []T {
	var items []T
	objects := in.streams[resource].objects
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		items = append(items, *typedOf[T](in.w, objects[key]))
	}
	return items
}

// Get implements client.Reader.
func (in *informers) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.catchUp()
	resource := resourceOf(o)
	found := in.streams[resource].objects[key.Namespace+"/"+key.Name]
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, key.Name)
	}
	switch o := o.(type) {
	case *v1alpha1.RemediationPolicy:
		typedOf[v1alpha1.RemediationPolicy](in.w, found).DeepCopyInto(o)
	case *v1alpha1.RemediationLedger:
		typedOf[v1alpha1.RemediationLedger](in.w, found).DeepCopyInto(o)
	case *v1alpha1.RemediationPlan:
		typedOf[v1alpha1.RemediationPlan](in.w, found).DeepCopyInto(o)
	case *v1alpha1.EffectivenessAssessment:
		typedOf[v1alpha1.EffectivenessAssessment](in.w, found).DeepCopyInto(o)
	default:
		return fmt.Errorf("reading %T from a cache: nobody does", o)
	}
	return nil
}

// cachedTargets reads targets from informers, as every controller does that was
// made by the book. The real executor does not.
type cachedTargets struct {
	exec.Targets
	in *informers
}

// Get implements exec.Targets.
func (c cachedTargets) Get(_ context.Context, ref exec.Reference) ([]byte, error) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.catchUp()
	for _, k := range []*kind{&deployments, &services} {
		if k.gvk != ref.GVK {
			continue
		}
		if o := c.in.streams[k.resource].objects[ref.Namespace+"/"+ref.Name]; o != nil {
			return json.Marshal(o)
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: cmp.Or(ref.Kind, "objects")}, ref.Name)
}
