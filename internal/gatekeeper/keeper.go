// SPDX-License-Identifier: Apache-2.0

// Package gatekeeper asks the gates of runs beside the decisions about releases.
//
//	questions of a run ──▶ [Keeper] ──▶ Prometheus, webhooks
//	                          │
//	facts of a decision ◀─────┘ the last answer of each gate
//
// A decision takes the answers that are there and never waits. At most one request of each gate is under
// way, in a goroutine of its own. A pool for all releases would be simpler to count, but receivers of one
// release that hang would fill the pool, and hold up all others.
package gatekeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

const (
	// webhookTimeout bounds a request to a webhook.
	webhookTimeout = 10 * time.Second
	// underWayAgain is how soon a release is looked at again whose gates are being asked.
	underWayAgain = time.Second
)

// Queries answers a query with one number; an error is no data.
type Queries interface {
	Query(ctx context.Context, promQL string) (float64, error)
}

// Posts makes signed requests.
type Posts interface {
	Ask(ctx context.Context, url, key notify.SecretRef, id string, body []byte, most int) (deliver.Reply, *deliver.Failure)
}

// Keeper asks gates. It is safe for concurrent use.
type Keeper struct {
	// ctx is the time of leading, whose end ends all requests.
	ctx     context.Context
	queries Queries
	posts   Posts
	clock   clock.PassiveClock
	log     logr.Logger

	mu       sync.Mutex
	releases map[types.NamespacedName]*release
}

// release is the memory of one release.
type release struct {
	uid     string
	asked   map[gates.Question]time.Time
	busy    map[gates.Key]bool
	answers map[gates.Key]gates.Answer
}

// New returns a keeper that asks until ctx ends. Queries and posts may be nil, where the installation has
// none.
func New(ctx context.Context, queries Queries, posts Posts, clock clock.PassiveClock, log logr.Logger) *Keeper {
	return &Keeper{ctx: ctx, queries: queries, posts: posts, clock: clock, log: log, releases: map[types.NamespacedName]*release{}}
}

// Visit has the questions of one look at a release.
type Visit struct {
	Subject gates.Subject
	Set     gates.Set
	// Questions are those of the points that the run is at.
	Questions []gates.Question
	// Interval is how often the same question is asked.
	Interval time.Duration
}

func (v *Visit) name() types.NamespacedName {
	return types.NamespacedName{Namespace: v.Subject.Namespace, Name: v.Subject.Release}
}

// Answers are the last ones of the gates of a release.
func (k *Keeper) Answers(name types.NamespacedName, uid string) []gates.Answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.releases[name]
	if r == nil || r.uid != uid {
		return nil
	}
	answers := make([]gates.Answer, 0, len(r.answers))
	for _, a := range r.answers {
		answers = append(answers, a)
	}
	return answers
}

// Forget drops the memory of a release.
func (k *Keeper) Forget(name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.releases, name)
}

// Ask has the questions asked that are due, and does not wait for answers. It returns how soon the release
// is to be looked at again; 0 if no question was given.
func (k *Keeper) Ask(v Visit) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, now := v.name(), k.clock.Now()
	r := k.releases[name]
	if r == nil || r.uid != v.Subject.UID {
		r = &release{uid: v.Subject.UID, asked: map[gates.Question]time.Time{}, busy: map[gates.Key]bool{}, answers: map[gates.Key]gates.Answer{}}
		k.releases[name] = r
	}
	r.drop(v.Questions)
	var again time.Duration
	for _, q := range v.Questions {
		asked, is := r.asked[q]
		wait := underWayAgain
		switch left := asked.Add(v.Interval).Sub(now); {
		case r.busy[q.Key]:
		case is && left > 0:
			wait = left
		default:
			r.asked[q], r.busy[q.Key] = now, true
			go k.answer(r, v, q)
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	return again
}

// drop forgets the questions that are over.
func (r *release) drop(questions []gates.Question) {
	current := map[gates.Question]bool{}
	for _, q := range questions {
		current[q] = true
	}
	for q := range r.asked {
		if !current[q] {
			delete(r.asked, q)
		}
	}
}

// answer asks one question, and keeps the answer.
func (k *Keeper) answer(r *release, v Visit, q gates.Question) {
	a := gates.Answer{Question: q}
	switch q.Kind {
	case gates.KindQuery:
		k.query(&v, &a)
	case gates.KindWebhook:
		k.post(&v, &a)
	}
	a.Time = k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(r.busy, q.Key)
	if k.ctx.Err() == nil { // a request that ended with the leading is no answer
		r.answers[q.Key] = a
	}
}

// query asks Prometheus.
func (k *Keeper) query(v *Visit, a *gates.Answer) {
	if k.queries == nil {
		a.Message = "the installation has no Prometheus"
		return
	}
	for i := range v.Set.Queries {
		q := &v.Set.Queries[i]
		if q.Key() != a.Key {
			continue
		}
		text, err := gates.Expand(q.PromQL, v.Subject.Names)
		if err != nil {
			a.Message = err.Error()
			return
		}
		value, err := k.queries.Query(k.ctx, text)
		switch {
		case errors.Is(err, prometheus.ErrUnreachable):
			k.log.Info("Prometheus does not answer", "release", v.name().String(), "query", q.Name, "error", err.Error())
			a.Message = prometheus.ErrUnreachable.Error()
		case err != nil:
			a.Message = err.Error()
		default:
			a.Value = &value
		}
		return
	}
	a.Message = "the query is gone"
}

// post asks a webhook.
func (k *Keeper) post(v *Visit, a *gates.Answer) {
	a.Result = gates.Wait
	if k.posts == nil {
		a.Message = "the installation has no webhooks of gates"
		return
	}
	for i := range v.Set.Webhooks {
		w := &v.Set.Webhooks[i]
		if w.Key() != a.Key {
			continue
		}
		body, err := gates.Request(v.Subject, a.Question, k.clock.Now())
		if err != nil {
			a.Message = err.Error()
			return
		}
		ctx, cancel := context.WithTimeout(k.ctx, webhookTimeout)
		defer cancel()
		reply, failure := k.posts.Ask(ctx, refOf(w.Destination), refOf(w.SigningKey), gates.ID(v.Subject.UID, a.Question), body, gates.MaxWebhookAnswer)
		switch {
		case failure != nil:
			a.Message = failure.String()
		case a.Event == gates.AfterRollback:
			a.Result, a.Message = gates.ParseTold(reply.Status)
		default:
			a.Result, a.Message = gates.ParseWebhook(reply.Status, reply.Body)
		}
		return
	}
	a.Message = "the webhook is gone"
}

// refOf is a key of a Secret that a rollout names.
func refOf(k gates.SecretKey) notify.SecretRef { return notify.SecretRef{Name: k.Name, Key: k.Key} }
