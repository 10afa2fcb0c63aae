// SPDX-License-Identifier: Apache-2.0

package gatekeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const patience = 30 * time.Second

// world answers as a test wants, and notes the questions.
type world struct {
	*Keeper
	clock *clocktesting.FakePassiveClock

	mu     sync.Mutex
	query  func(ctx context.Context, text string) (float64, error)
	reply  func(ctx context.Context) (deliver.Reply, *deliver.Failure)
	asked  []string
	bodies [][]byte
}

// Query implements Queries.
func (w *world) Query(ctx context.Context, text string) (float64, error) {
	w.mu.Lock()
	w.asked = append(w.asked, text)
	answer := w.query
	w.mu.Unlock()
	return answer(ctx, text)
}

// Ask of a webhook.
type posts struct{ *world }

// Ask implements Posts.
func (p posts) Ask(ctx context.Context, url, key notify.SecretRef, id string, body []byte, most int) (deliver.Reply, *deliver.Failure) {
	p.mu.Lock()
	p.asked, p.bodies = append(p.asked, fmt.Sprintf("%s/%s %s/%s %s %d", url.Name, url.Key, key.Name, key.Key, id, most)), append(p.bodies, body)
	answer := p.reply
	p.mu.Unlock()
	return answer(ctx)
}

func (w *world) questions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asked...)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{clock: clocktesting.NewFakePassiveClock(noon)}
	w.query = func(context.Context, string) (float64, error) { return 0.25, nil }
	w.reply = func(context.Context) (deliver.Reply, *deliver.Failure) {
		return deliver.Reply{Status: 200, Body: []byte(`{"result":"Pass","message":"fine"}`)}, nil
	}
	w.Keeper = New(ctx, w, posts{w}, w.clock, logr.Discard())
	t.Cleanup(func() {
		cancel()
		w.settle(t)
	})
	return w
}

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

func visit(event gates.Event) Visit {
	p := gates.Point{Run: 1, Event: event, Stage: 1}
	set := gates.Set{
		Queries:  []gates.Query{{Name: "errors", PromQL: "errors{v='$(canary)'}", Maximum: "1", FailureLimit: 1}},
		Webhooks: []gates.Webhook{{Name: "board", Event: event, Destination: gates.SecretKey{Name: "hook", Key: "url"}, SigningKey: gates.SecretKey{Name: "hook", Key: "key"}}},
	}
	return Visit{
		Subject: gates.Subject{Names: gates.Names{Namespace: "shop", Service: "web", Release: "web", Canary: "green", Stable: "blue"}, UID: "u"},
		Set:     set, Questions: gates.Due(set, nil, p), Interval: 30 * time.Second,
	}
}

// settle waits until nothing is under way.
func (w *world) settle(t *testing.T) {
	t.Helper()
	poll.Until(t, patience, "no gate is being asked", func() error {
		w.Keeper.mu.Lock()
		defer w.Keeper.mu.Unlock()
		for name, r := range w.releases {
			if len(r.busy) > 0 {
				return fmt.Errorf("%s: under way are %v", name, r.busy)
			}
		}
		return nil
	})
}

func (w *world) answers(t *testing.T) map[string]string {
	t.Helper()
	w.settle(t)
	got := map[string]string{}
	for _, a := range w.Answers(web, "u") {
		text := string(a.Result)
		if a.Value != nil {
			text = fmt.Sprint(*a.Value)
		}
		got[a.Key.String()] = strings.TrimSpace(text + " " + a.Message)
	}
	return got
}

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		event gates.Event
		edit  func(*world)
		want  map[string]string
	}{
		"both answer": {gates.DuringStage, func(*world) {}, map[string]string{"query errors": "0.25", "webhook board": "Pass fine"}},
		"Prometheus has no data": {gates.DuringStage, func(w *world) {
			w.query = func(context.Context, string) (float64, error) { return 0, errors.New("the result has 0 samples") }
		}, map[string]string{"query errors": "the result has 0 samples", "webhook board": "Pass fine"}},
		"Prometheus is down": {gates.DuringStage, func(w *world) {
			w.query = func(context.Context, string) (float64, error) {
				return 0, fmt.Errorf("%w: dial 10.0.0.7", prometheus.ErrUnreachable)
			}
		}, map[string]string{"query errors": "no answer of Prometheus", "webhook board": "Pass fine"}},
		"the receiver is down": {gates.BeforeStage, func(w *world) {
			w.reply = func(context.Context) (deliver.Reply, *deliver.Failure) {
				return deliver.Reply{}, &deliver.Failure{Step: "posting", Cause: deliver.CauseConnection}
			}
		}, map[string]string{"webhook board": "Wait posting: no connection"}},
		"the receiver says failed": {gates.BeforeStage, func(w *world) {
			w.reply = func(context.Context) (deliver.Reply, *deliver.Failure) {
				return deliver.Reply{Status: 200, Body: []byte(`{"result":"Fail"}`)}, nil
			}
		}, map[string]string{"webhook board": "Fail"}},
		"a rollback is told": {gates.AfterRollback, func(w *world) {
			w.reply = func(context.Context) (deliver.Reply, *deliver.Failure) { return deliver.Reply{Status: 204}, nil }
		}, map[string]string{"webhook board": "Pass"}},
		"a rollback is not heard": {gates.AfterRollback, func(w *world) {
			w.reply = func(context.Context) (deliver.Reply, *deliver.Failure) { return deliver.Reply{Status: 500}, nil }
		}, map[string]string{"webhook board": "Wait the receiver answers 500"}},
		"there is no Prometheus": {gates.DuringStage, func(w *world) { w.queries = nil }, map[string]string{"query errors": "the installation has no Prometheus", "webhook board": "Pass fine"}},
		"there are no webhooks":  {gates.BeforeStart, func(w *world) { w.posts = nil }, map[string]string{"webhook board": "Wait the installation has no webhooks of gates"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.edit(w)
			if again := w.Ask(visit(tc.event)); again != time.Second {
				t.Errorf("the release is looked at again after %s", again)
			}
			if diff := cmp.Diff(tc.want, w.answers(t)); diff != "" {
				t.Errorf("the answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAQuestionHasNamesAndTheWebhookItsSecrets(t *testing.T) {
	w := newWorld(t)
	v := visit(gates.DuringStage)
	w.Ask(v)
	w.settle(t)
	id := gates.ID("u", v.Questions[1])
	want := map[string]bool{"errors{v='green'}": true, "hook/url hook/key " + id + " 65536": true}
	got := map[string]bool{}
	for _, q := range w.questions() {
		got[q] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked was (-want +got):\n%s", diff)
	}
	var body struct{ Data struct{ ID string } }
	if err := json.Unmarshal(w.bodies[0], &body); err != nil || body.Data.ID != id {
		t.Errorf("the body is %s: %v", w.bodies[0], err)
	}
}

func TestAQuestionIsAskedOncePerInterval(t *testing.T) {
	w := newWorld(t)
	v := visit(gates.BeforeStage)
	w.Ask(v)
	w.settle(t)
	if again := w.Ask(v); again != 30*time.Second {
		t.Errorf("the release is looked at again after %s", again)
	}
	w.clock.SetTime(noon.Add(29 * time.Second))
	if again := w.Ask(v); again != time.Second {
		t.Errorf("the release is looked at again after %s", again)
	}
	w.settle(t)
	if n := len(w.questions()); n != 1 {
		t.Errorf("asked was %d times", n)
	}
	w.clock.SetTime(noon.Add(30 * time.Second))
	w.Ask(v)
	w.settle(t)
	next := v
	next.Questions = gates.Due(v.Set, nil, gates.Point{Run: 1, Event: gates.BeforeStage, Stage: 2})
	w.Ask(next) // a question about another point does not wait
	w.settle(t)
	if n := len(w.questions()); n != 3 {
		t.Errorf("asked was %d times", n)
	}
	if again := w.Ask(Visit{Subject: v.Subject}); again != 0 {
		t.Errorf("without a question the release is looked at again after %s", again)
	}
}

// A receiver that hangs holds up neither the caller nor another gate nor another release, and is asked
// once.
func TestAGateThatHangsHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	release := make(chan struct{})
	w.reply = func(ctx context.Context) (deliver.Reply, *deliver.Failure) {
		select {
		case <-release:
			return deliver.Reply{Status: 200, Body: []byte(`{"result":"Pass"}`)}, nil
		case <-ctx.Done():
			return deliver.Reply{}, &deliver.Failure{Step: "posting", Cause: deliver.CauseTimeout}
		}
	}
	v, other := visit(gates.DuringStage), visit(gates.DuringStage)
	other.Subject.Release, other.Questions = "other", other.Questions[:1]
	for i := range 5 {
		w.clock.SetTime(noon.Add(time.Duration(i) * time.Minute))
		w.Ask(v)
	}
	w.Ask(other)
	poll.Until(t, patience, "the other gates answer", func() error {
		if len(w.Answers(web, "u")) != 1 || len(w.Answers(types.NamespacedName{Namespace: "shop", Name: "other"}, "u")) != 1 {
			return errors.New("the queries are not answered")
		}
		return nil
	})
	hung := 0
	for _, q := range w.questions() {
		if strings.HasPrefix(q, "hook/") {
			hung++
		}
	}
	if hung != 1 {
		t.Errorf("the webhook was asked %d times", hung)
	}
	close(release)
	if got := w.answers(t)["webhook board"]; got != "Pass" {
		t.Errorf("the webhook says %q", got)
	}
}

func TestAnswersOfAReleaseThatWasMadeAgainAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.Ask(visit(gates.BeforeStage))
	w.settle(t)
	if got := w.Answers(web, "v"); len(got) != 0 {
		t.Errorf("another release of the name has the answers %v", got)
	}
	w.Forget(web)
	if got := w.Answers(web, "u"); len(got) != 0 {
		t.Errorf("a release that is gone has the answers %v", got)
	}
}

func TestWhatEndsWithTheLeadingIsNoAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t)
	w.Keeper = New(ctx, w, posts{w}, w.clock, logr.Discard())
	w.query = func(ctx context.Context, _ string) (float64, error) {
		<-ctx.Done()
		return 0, prometheus.ErrUnreachable
	}
	v := visit(gates.DuringStage)
	v.Questions = v.Questions[:1]
	w.Ask(v)
	cancel()
	if got := w.answers(t); len(got) != 0 {
		t.Errorf("the answers are %v", got)
	}
}
