// SPDX-License-Identifier: Apache-2.0

//go:build integration

package roles

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

const eventsPath = "/api/v1/events"

// listener hears a stream of events until it leaves.
type listener struct {
	heard chan wire.Event
	leave func()
}

func newListener(t *testing.T, leave func()) *listener {
	t.Helper()
	t.Cleanup(leave)
	return &listener{make(chan wire.Event, 1000), leave}
}

// listen opens a stream of server-sent events.
func (b *browser) listen(t *testing.T, query string, headers ...string) *listener {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.Base+eventsPath+query, nil)
	must(t, err)
	request.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Do(request)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", query, response.StatusCode)
	}
	l := newListener(t, func() { _ = response.Body.Close() })
	go func() {
		defer close(l.heard)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
				l.hear([]byte(data))
			}
		}
	}()
	return l
}

// connect opens a WebSocket. The listener hears its end as it hears that of server-sent events.
func (b *browser) connect(t *testing.T, query string, protocols ...string) *listener {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(b.Base, "http")+eventsPath+query, &websocket.DialOptions{HTTPClient: b.Client, Subprotocols: protocols}) //nolint:bodyclose // it has none
	must(t, err)
	l := newListener(t, func() { _ = conn.CloseNow() })
	go func() {
		defer close(l.heard)
		for {
			_, body, err := conn.Read(t.Context())
			if err != nil {
				l.heard <- wire.Event{Type: wire.EventEnded, Code: int(websocket.CloseStatus(err))}
				return
			}
			l.hear(body)
		}
	}()
	return l
}

func (l *listener) hear(body []byte) {
	var e wire.Event
	if err := json.Unmarshal(body, &e); err != nil {
		e = wire.Event{Type: "no event", Message: err.Error() + ": " + string(body)}
	}
	l.heard <- e
}

// until returns the events of a plan up to one of a type, without those that come again, and fails at an event
// of another namespace.
func (l *listener) until(t *testing.T, p *v1alpha1.RemediationPlan, last wire.EventType, namespaces ...string) (events []wire.Event) {
	t.Helper()
	limit := time.After(patience)
	ids := map[string]bool{}
	for {
		select {
		case e, open := <-l.heard:
			if !open {
				t.Fatalf("the stream ended before %s of plan %s: %+v", last, p.Name, events)
			}
			if e.Namespace != "" && !strings.Contains(strings.Join(namespaces, " "), e.Namespace) {
				t.Errorf("the stream tells of another namespace: %+v", e)
			}
			if e.PlanID != string(p.UID) || ids[e.ID] {
				continue
			}
			ids[e.ID] = true
			if events = append(events, e); e.Type == last {
				return events
			}
		case <-limit:
			t.Fatalf("waited %s for %s of plan %s: %+v", patience, last, p.Name, events)
		}
	}
}

func typesOf(events []wire.Event) (types []string) {
	for i := range events {
		types = append(types, string(events[i].Type))
	}
	return types
}

// carriedOut stores a status of a plan, as the executor does.
func carriedOut(t *testing.T, p *v1alpha1.RemediationPlan, change func(*v1alpha1.RemediationPlanStatus, *metav1.Time)) {
	t.Helper()
	now := metav1.Now().Rfc3339Copy()
	change(&p.Status, &now)
	protocol.NoteEvents(&p.Status)
	must(t, asExecutor.Status().Update(t.Context(), p))
}

func begins(status *v1alpha1.RemediationPlanStatus, now *metav1.Time) {
	status.Phase, status.StartTime, status.Epoch, status.Holder = v1alpha1.PlanRunning, now, 1, "executor-0"
	status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepReserved, StartTime: now}}
}

func endsStep(status *v1alpha1.RemediationPlanStatus, now *metav1.Time) {
	status.Steps[0].State, status.Steps[0].Reason, status.Steps[0].CompletionTime = v1alpha1.StepSkipped, v1alpha1.ReasonAlreadyDesired, now
}

func endsPlan(status *v1alpha1.RemediationPlanStatus, now *metav1.Time) {
	status.Phase, status.CompletionTime = v1alpha1.PlanSucceeded, now
}

var wholeLife = []string{"plan.created", "plan.started", "target.started", "target.completed", "plan.completed"}

// The API server decides about the hearers of each event, and the status of a plan has all of its events.
func TestAStreamTellsTheLifeOfAPlanToThoseWhoMaySeeIt(t *testing.T) {
	const elsewhere, group = "elsewhere", "tenant-listeners"
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}}))
	must(t, bindInTenant(t.Context(), group, "plumbline-view"))
	viewer, editor, stranger := openConsole(t, "vic", viewer), openConsole(t, "eve", group), openConsole(t, "ned", nobody)

	all, own := viewer.connect(t, ""), editor.listen(t, "?namespace="+tenant)
	other, p := planIn(t, elsewhere, "told"), plan(t, "told")
	carriedOut(t, other, begins)
	carriedOut(t, p, begins)
	first := own.until(t, p, "plan.started", tenant)
	own.leave()
	carriedOut(t, p, endsStep)
	carriedOut(t, p, endsPlan)
	carriedOut(t, other, endsStep)
	carriedOut(t, other, endsPlan)

	t.Run("a viewer hears of each namespace", func(t *testing.T) {
		if diff := cmp.Diff(wholeLife, typesOf(all.until(t, p, "plan.completed", tenant, elsewhere))); diff != "" {
			t.Errorf("(-want +heard):\n%s", diff)
		}
		all.until(t, other, "plan.completed", tenant, elsewhere)
	})
	id := first[len(first)-1].ID
	for name, again := range map[string]*listener{
		"server-sent events": editor.listen(t, "?namespace="+tenant, "Last-Event-ID", id), "a WebSocket": editor.connect(t, "?namespace="+tenant+"&since="+id),
		"another console": openConsole(t, "eve", group).connect(t, "?namespace="+tenant+"&since="+id),
	} {
		t.Run("no event is lost between two streams: "+name, func(t *testing.T) {
			rest := again.until(t, p, "plan.completed", tenant)
			heard := slices.Clone(first)
			for _, e := range rest {
				if !slices.ContainsFunc(heard, func(h wire.Event) bool { return h.ID == e.ID }) {
					heard = append(heard, e)
				}
			}
			if diff := cmp.Diff(wholeLife, typesOf(heard)); diff != "" {
				t.Errorf("(-want +heard):\n%s", diff)
			}
		})
	}
	t.Run("without the right there is no stream", func(t *testing.T) {
		wantForbidden(t, editor, "events", wire.MissingRight{Verb: "list", Kind: "RemediationPlan"})
		wantForbidden(t, editor, "events?namespace="+elsewhere, wire.MissingRight{Verb: "list", Kind: "RemediationPlan", Namespace: elsewhere})
		wantForbidden(t, stranger, "events?namespace="+tenant, wire.MissingRight{Verb: "list", Kind: "RemediationPlan", Namespace: tenant})
	})
}
