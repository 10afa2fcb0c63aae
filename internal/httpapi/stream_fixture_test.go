// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// stage is a server of the API on a network in memory. It lives in a bubble of package synctest.
type stage struct {
	*answers
	cluster *inMemory
	network *streamtest.Pipes
	client  *http.Client
}

// onStage runs a test against a server about a cluster.
func onStage(t *testing.T, hooks interceptor.Funcs, test func(*testing.T, *stage), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, hooks, objects...)
		s := &stage{answers: newAnswers(t, cluster), cluster: cluster, network: streamtest.NewPipes()}
		transport := &http.Transport{DialContext: s.network.Dial}
		s.client = &http.Client{Transport: transport}
		server := &http.Server{Handler: Protect(s.API, "console"), ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(s.network) }()
		test(t, s)
		s.End()
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		synctest.Wait()
		if len(s.streams.feeds)+len(s.open()) > 0 {
			t.Errorf("streams are left: %v %v", s.streams.feeds, s.open())
		}
	})
}

// open returns how many streams each user has.
func (s *stage) open() map[string]int {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	return maps.Clone(s.streams.open)
}

// pass lets time pass on the clock of the test, until each goroutine waits.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var sorts = streamtest.Sorts

// listenTo opens a stream of one of two sorts. It tells each event from now on.
func (s *stage) listenTo(sort, query string, headers ...string) *streamtest.Listener {
	s.t.Helper()
	return streamtest.Listen(s.t, s.client, sort, "http://console"+eventsPath+query, headers...)
}

func (s *stage) dialSocket(query string, header http.Header) *websocket.Conn {
	s.t.Helper()
	return streamtest.DialSocket(s.t, s.client, "http://console"+eventsPath+query, header)
}

// hear demands the types of the next events, and returns the events.
func (s *stage) hear(l *streamtest.Listener, types ...wire.EventType) (heard []wire.Event) {
	s.t.Helper()
	for i, want := range types {
		e, err := l.Next()
		if err != nil || e.Type != want {
			s.t.Fatalf("event %d is %+v (%v), want %s", i, e, err, want)
		}
		heard = append(heard, e)
	}
	return heard
}

// newPlan makes a plan of one target in a namespace.
func newPlan(namespace, name string) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "2d6f9c3e-0000-4000-8000-00000000000a", CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
	}}
	p.Spec.Plan.Targets = []v1alpha1.PlanTarget{{UID: "9f6a1b1c-2a6d-4e39-b0a4-1c6b0a7d3003"}}
	return p
}

// carryOut stores the life of a plan, in three updates, and returns the types of its events behind the creation.
func (s *stage) carryOut(p *v1alpha1.RemediationPlan) []wire.EventType {
	s.t.Helper()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	p.Status.Steps = []v1alpha1.PlanStep{{State: v1alpha1.StepPlanned}}
	for _, change := range []func(){
		func() {
			p.Status.Phase, p.Status.StartTime = v1alpha1.PlanRunning, &now
			p.Status.Steps[0].State, p.Status.Steps[0].StartTime = v1alpha1.StepReserved, &now
		},
		func() { p.Status.Steps[0].State, p.Status.Steps[0].CompletionTime = v1alpha1.StepVerified, &now },
		func() { p.Status.Phase, p.Status.CompletionTime = v1alpha1.PlanSucceeded, &now },
	} {
		change()
		protocol.NoteEvents(&p.Status)
		if err := s.cluster.Status().Update(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
	synctest.Wait()
	return []wire.EventType{"plan.started", "target.started", "target.completed", "plan.completed"}
}

func (s *stage) create(o client.Object) {
	s.t.Helper()
	if err := s.cluster.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}
