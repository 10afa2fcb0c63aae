// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// pipes is a network in memory. Connections have the clock of package synctest, and no buffer.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	closed := make(chan struct{})
	return &pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stage is a server of the API on a network in memory. It lives in a bubble of package synctest.
type stage struct {
	*answers
	cluster *inMemory
	network *pipes
	client  *http.Client
}

// onStage runs a test against a server about a cluster.
func onStage(t *testing.T, hooks interceptor.Funcs, test func(*testing.T, *stage), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(t, hooks, objects...)
		s := &stage{answers: newAnswers(t, cluster), cluster: cluster, network: newPipes()}
		transport := &http.Transport{DialContext: s.network.dial}
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

// listener reads a stream as fast as it tells.
type listener struct {
	heard chan said
	// pings has the time of each sign of life of server-sent events.
	pings chan time.Time
	leave func()
}

// said is an event, or the end of a stream.
type said struct {
	event wire.Event
	err   error
}

// silence bounds, on the clock of the test, how long a listener waits for an event.
const silence = 5 * pingInterval

var errSilent = errors.New("no event came")

// next returns the next event, and an error at the end of the stream.
func (l *listener) next() (wire.Event, error) {
	select {
	case h := <-l.heard:
		return h.event, h.err
	case <-time.After(silence):
		return wire.Event{}, errSilent
	}
}

var sorts = []string{"WebSocket", "server-sent events"}

// listenTo opens a stream of one of two sorts. It tells each event from now on.
func (s *stage) listenTo(sort, query string, headers ...string) *listener {
	s.t.Helper()
	defer synctest.Wait()
	header := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	l := &listener{heard: make(chan said, 1000), pings: make(chan time.Time, 1000)}
	if sort == "WebSocket" {
		conn := s.dialSocket(query, header)
		l.leave = func() { _ = conn.CloseNow() } // the server may have closed it
		go l.readSocket(s.t.Context(), conn)
		return l
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://console"+eventsPath+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header = header
	request.Header.Set("Accept", eventType)
	response, err := s.client.Do(request) //nolint:bodyclose // leave closes it
	if err != nil {
		s.t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != eventType {
		s.t.Fatalf("%d %s", response.StatusCode, got)
	}
	l.leave = func() { _ = response.Body.Close() } // the server may have closed it
	go l.readEvents(response.Body)
	return l
}

func (s *stage) dialSocket(query string, header http.Header) *websocket.Conn {
	s.t.Helper()
	conn, response, err := websocket.Dial(s.t.Context(), "ws://console"+eventsPath+query, &websocket.DialOptions{HTTPClient: s.client, HTTPHeader: header}) //nolint:bodyclose // the connection is the body
	if err != nil {
		s.t.Fatalf("%v: %+v", err, response)
	}
	return conn
}

func (l *listener) readSocket(ctx context.Context, conn *websocket.Conn) {
	for {
		_, body, err := conn.Read(ctx)
		var e wire.Event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if l.heard <- (said{e, err}); err != nil {
			return
		}
	}
}

func (l *listener) readEvents(body io.Reader) {
	lines := bufio.NewScanner(body)
	id := ""
	for lines.Scan() {
		if lines.Text() == ": ping" {
			l.pings <- time.Now()
		}
		if given, found := strings.CutPrefix(lines.Text(), "id: "); found {
			id = given
		}
		if data, found := strings.CutPrefix(lines.Text(), "data: "); found {
			var e wire.Event
			err := json.Unmarshal([]byte(data), &e)
			if e.ID != id {
				err = errors.New("the event " + data + " has the id " + id)
			}
			l.heard <- said{e, err}
			id = ""
		}
	}
	l.heard <- said{err: cmp.Or(lines.Err(), io.EOF)}
}

// hear demands the types of the next events, and returns the events.
func (s *stage) hear(l *listener, types ...wire.EventType) (heard []wire.Event) {
	s.t.Helper()
	for i, want := range types {
		e, err := l.next()
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
