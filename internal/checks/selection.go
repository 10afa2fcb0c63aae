// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// unansweredAfter is how long the answer of a check may wait for its
// reconciliation; a kind that cannot be watched keeps it waiting.
const unansweredAfter = time.Minute

// limits are what bounds the checks that go on at once.
type limits struct {
	maxConcurrent int
	installation  resync.Percent
	// environments have a threshold of their own.
	environments map[string]resync.Percent
}

// claimed is an object that a plan claims.
type claimed struct {
	key  kube.Key
	plan string
}

// claims lists what plans claim; whether a plan still goes on must be asked.
func (a *Agenda) claims() []claimed {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []claimed
	for key, e := range a.entries {
		if e.Claim != "" {
			all = append(all, claimed{key, e.Claim})
		}
	}
	return all
}

// unanswered ends checks whose answer nobody took, and names them.
func (a *Agenda) unanswered(now time.Time) []kube.Key {
	var late []kube.Key
	a.mu.Lock()
	for key, e := range a.entries {
		if e.answer != nil && now.Sub(e.answer.At) > unansweredAfter {
			late = append(late, key)
		}
	}
	a.mu.Unlock()
	for _, key := range late {
		a.failed(key, now)
	}
	return late
}

// choose says which checks start now, as [resync.Select] picks them, and notes why
// the others wait. held are the objects that a plan holds.
func (a *Agenda) choose(now time.Time, held map[kube.Key]bool, l limits) []kube.Key {
	a.mu.Lock()
	defer a.mu.Unlock()
	selection := resync.Select(a.pool(now, held, l))
	for _, w := range selection.Wait {
		if e := a.entries[keyOf(w.Object)]; e != nil {
			e.obstacle, e.notBefore = w.Obstacle, w.Until
			if w.Until.IsZero() { // until something is told of it
				e.notBefore = now.Add(resync.DefaultRecheckInterval)
			}
		}
	}
	start := make([]kube.Key, len(selection.Start))
	for i, o := range selection.Start {
		start[i] = keyOf(o)
	}
	return start
}

// pool counts everything that is guarded, and offers what is due. What found no
// room is not offered again before its time.
func (a *Agenda) pool(now time.Time, held map[kube.Key]bool, l limits) resync.Pool {
	p := resync.Pool{
		Now: now, MaxConcurrentChecks: l.maxConcurrent,
		Installation: resync.Budget{Threshold: l.installation},
		Environments: make(map[string]resync.Budget, len(l.environments)),
	}
	for name, threshold := range l.environments {
		p.Environments[name] = resync.Budget{Threshold: threshold}
	}
	for key, e := range a.entries {
		busy := e.running || held[key]
		count(&p, e.Environment, busy)
		if e.running || !e.due.By(now) || e.notBefore.After(now) {
			continue
		}
		obstacle := e.Settled
		if obstacle == resync.ObstacleNone && held[key] {
			obstacle = resync.ObstacleClaimed
		}
		p.Candidates = append(p.Candidates, resync.Candidate{
			Object: objectOf(key), Environment: e.Environment, Due: e.due.At, Settled: obstacle,
			Requested: e.Request != "", RecheckInterval: e.Recheck,
		})
	}
	return p
}

func count(p *resync.Pool, environment string, busy bool) {
	p.Installation.Total++
	budget, bounded := p.Environments[environment]
	budget.Total++
	if busy {
		p.Installation.Running++
		budget.Running++
	}
	if bounded {
		p.Environments[environment] = budget
	}
}

// next is when the agenda is to be looked at again without having been told
// anything; zero is never.
func (a *Agenda) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var next time.Time
	for _, e := range a.entries {
		at := e.due.At
		switch {
		case e.answer != nil:
			at = e.answer.At.Add(unansweredAfter + time.Second)
		case e.running, at.IsZero():
			continue
		case e.notBefore.After(at):
			at = e.notBefore
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

func objectOf(key kube.Key) resync.Object {
	apiVersion, kind := key.ToAPIVersionAndKind()
	return resync.Object{Namespace: key.Namespace, Name: key.Name, Kind: kind, APIVersion: apiVersion}
}

func keyOf(o resync.Object) kube.Key {
	return kube.Key{
		GroupVersionKind: schema.GroupVersionKind(canon.ParseGVK(o.APIVersion, o.Kind)), Namespace: o.Namespace, Name: o.Name,
	}
}
