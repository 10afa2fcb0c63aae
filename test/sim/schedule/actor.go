// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"runtime"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// restart is how long a process that died is away at most.
const restart = 30 * time.Second

// Actor is a process. When it dies it is restarted.
type Actor struct {
	name     string
	index    int
	s        *Scheduler
	body     func(*Life)
	life     *Life
	lives    int
	alive    bool
	restarts bool // it died, and is about to come back
	retired  bool
}

// Life of an actor, from one start to its end.
type Life struct {
	// Name is the actor's, with the number of this life.
	Name   string
	actor  *Actor
	ctx    context.Context //nolint:containedctx // it is the process that the context stands for
	cancel context.CancelFunc
	rng    *rand.Rand
	dead   bool
	// strands are its workers, if it has any.
	strands []*Strand
}

// Spawn starts an actor. Its body is run once for each of its lives; when it
// returns, the actor has ended for good.
func (s *Scheduler) Spawn(name string, body func(*Life)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Actor{name: name, index: len(s.actors), s: s, body: body}
	s.actors = append(s.actors, a)
	a.begin()
}

// begin starts a life; the scheduler is locked.
func (a *Actor) begin() {
	a.lives++
	a.alive, a.restarts = true, false
	name := fmt.Sprintf("%s-%d", a.name, a.lives)
	l := &Life{Name: name, actor: a, rng: rand.New(rand.NewPCG(a.s.seed, digest(name)))} //nolint:gosec // to be had again
	l.ctx, l.cancel = context.WithCancel(context.Background())
	a.life = l
	go func() {
		defer a.ended(l) // it may have died in the middle
		a.body(l)
	}()
}

func digest(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum64()
}

func (a *Actor) ended(l *Life) {
	l.cancel()
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.alive = false
	if !l.dead || a.s.stopped || a.retired {
		return
	}
	a.restarts = true
	time.AfterFunc(time.Duration(l.rng.Int64N(int64(restart))), func() {
		a.s.mu.Lock()
		defer a.s.mu.Unlock()
		a.restarts = false
		if a.s.stopped || a.retired {
			return
		}
		a.s.note("%s begins again", a.name)
		a.begin()
	})
}

// kill makes a life end at its next message, or where it waits; the scheduler is
// locked.
func (l *Life) kill() {
	l.dead = true
	l.cancel()
}

// stop ends an actor for good.
func (a *Actor) stop() {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.life.kill()
}

// Retire ends an actor for good, as a lease does that another one has.
func (s *Scheduler) Retire(name string) {
	for _, a := range s.actors {
		if a.name == name {
			s.mu.Lock()
			a.retired = true
			a.life.kill()
			s.mu.Unlock()
		}
	}
}

// Context ends with the life.
func (l *Life) Context() context.Context { return l.ctx }

// Rand is what the life draws from.
func (l *Life) Rand() *rand.Rand { return l.rng }

// Aside is another source for one purpose of the life: what draws from it moves no other
// draw.
func (l *Life) Aside(purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(l.actor.s.seed, digest(l.Name+" "+purpose))) //nolint:gosec // to be had again
}

// Sleep waits; a process that is dead by then does not come back from it.
func (l *Life) Sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.ctx.Done():
	}
	l.mustLive()
}

// Await waits until something is told, at most so long, and says whether it was.
func (l *Life) Await(told <-chan struct{}, atMost time.Duration) bool {
	was := false
	select {
	case <-told:
		was = true
	case <-time.After(atMost):
	case <-l.ctx.Done():
	}
	l.mustLive()
	return was
}

func (l *Life) mustLive() {
	l.actor.s.mu.Lock()
	dead := l.dead
	l.actor.s.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
}

// Wire is how an actor's requests travel. Its zero value changes nothing.
type Wire struct {
	// Change a request before it is sent.
	Change func(*apiserver.Request)
	// Critical says which requests are disturbed more often than others.
	Critical func(apiserver.Request) bool
	// Name says of a request what its line does not, so that two requests of one process at
	// one time have an order.
	Name func(apiserver.Request) string
}

// Transport sends an actor's requests to a server, as a user.
func (l *Life) Transport(server *apiserver.Server, user string, wire Wire) http.RoundTripper {
	return &transport{l, server, user, wire}
}

type transport struct {
	life   *Life
	server *apiserver.Server
	user   string
	wire   Wire
}

// creations is how long a request for a new object may be under way: an API
// server ends each after its time-out, and clients wait no longer.
const creations = 10 * time.Second

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := apiserver.ReadRequest(t.user, t.life.Name, r)
	if err != nil {
		return nil, err
	}
	request.Sent = time.Now()
	if t.wire.Change != nil {
		t.wire.Change(&request)
	}
	message := Message{What: request.String(), Writes: request.Writes(), Critical: t.wire.Critical != nil && t.wire.Critical(request)}
	if t.wire.Name != nil {
		message.What += t.wire.Name(request)
	}
	if request.Method == http.MethodPost {
		message.Perishes = creations
	}
	answer, err := call(r.Context(), t.life, message, func(refused bool) (apiserver.Response, error) {
		if refused {
			return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request"), nil
		}
		return t.server.Do(request), nil
	})
	switch {
	case err == nil:
		return answer.HTTP(r), nil
	case errors.Is(err, syscall.ETIMEDOUT) && t.life.rng.IntN(2) == 0:
		// The API server has lost the answer of its own store.
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out").HTTP(r), nil
	}
	return nil, err
}

// CancelRequest is what old clients call; a request ends with its context.
func (t *transport) CancelRequest(*http.Request) {}

func failure(code int, reason metav1.StatusReason, message string) apiserver.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, //nolint:gosec // an HTTP code
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return apiserver.Response{Code: code, Date: time.Now(), Body: body}
}
