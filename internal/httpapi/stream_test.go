// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

func TestAStreamTellsWhatHappens(t *testing.T) {
	for _, sort := range sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
				l := s.listenTo(sort, "")
				defer l.Leave()
				p := newPlan("shop", "later")
				s.create(p)
				heard := s.hear(l, append([]wire.EventType{"plan.created"}, s.carryOut(p)...)...)
				if last := heard[4]; last.PlanID != string(p.UID) || last.Namespace != "shop" || last.Status != "succeeded" || *last.Progress != 1 {
					t.Errorf("the last event is %+v", last)
				}
			}, shop(t)...)
		})
	}
}

func TestAStreamOfANamespaceHasNoEventOfAnother(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[0], "?namespace=shop")
		defer l.Leave()
		s.carryOutOf("other")
		s.hear(l, s.carryOutOf("shop")...)
	})
}

// carryOutOf makes a plan in a namespace and carries it out.
func (s *stage) carryOutOf(namespace string) []wire.EventType {
	s.t.Helper()
	p := newPlan(namespace, "plan")
	s.create(p)
	return append([]wire.EventType{"plan.created"}, s.carryOut(p)...)
}

func TestAStreamGoesOnBehindAnEvent(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		first := s.listenTo(sorts[1], "")
		types := s.carryOutOf("shop")
		begun := s.hear(first, types[:2]...)
		first.Leave()
		synctest.Wait()
		if len(s.streams.feeds) > 0 {
			t.Error("a feed runs without a stream")
		}
		// More than the margin later no event is told twice.
		pass(2 * time.Minute)
		p := newPlan("shop", "second")
		p.UID = "2d6f9c3e-0000-4000-8000-00000000000b"
		s.create(p)
		for _, tc := range []struct {
			sort, query string
			header      []string
			want        []wire.EventType
		}{
			{sorts[0], "?since=" + begun[1].ID, nil, append(types, "plan.created")},
			{sorts[1], "?since=" + begun[0].ID, []string{lastEvent, begun[1].ID}, append(types, "plan.created")},
			{sorts[1], "", []string{lastEvent, "9999999999.none.0"}, nil},
			{sorts[0], "", nil, nil},
		} {
			l := s.listenTo(tc.sort, tc.query, tc.header...)
			s.hear(l, tc.want...)
			l.Leave()
			synctest.Wait()
		}
		late := s.listenTo(sorts[0], "")
		last := s.carryOut(p)
		id := s.hear(late, last...)[0].ID
		late.Leave()
		again := s.listenTo(sorts[0], "?since="+id)
		defer again.Leave()
		s.hear(again, append([]wire.EventType{"plan.created"}, last...)...)
	})
}

func TestACallerWhoHasHeardNoEventGoesOnAsWell(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		first := s.listenTo(sorts[1], "")
		begins := <-first.Begins
		first.Leave()
		p := newPlan("shop", "plan")
		p.CreationTimestamp = metav1.NewTime(s.cluster.Now())
		s.create(p)
		again := s.listenTo(sorts[1], "", lastEvent, begins)
		s.hear(again, "plan.created")
		// The id stays while the caller hears no event.
		again.Leave()
		if next := <-again.Begins; next != begins {
			t.Errorf("a stream that begins behind %s begins with %s", begins, next)
		}
	})
}

func TestAStreamSaysEvery15SecondsThatItLives(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		l := s.listenTo(sorts[1], "")
		defer l.Leave()
		begun := time.Now()
		for i := range 12 { // longer than any bound of the server
			if got, want := (<-l.Pings).Sub(begun), time.Duration(i+1)*pingInterval; got != want {
				t.Errorf("ping %d came after %s, want %s", i, got, want)
			}
		}
		s.hear(l, s.carryOutOf("shop")...)
	})
}

func TestASocketThatAnswersNoPingEnds(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		answers := s.listenTo(sorts[0], "")
		defer answers.Leave()
		silent := s.dialSocket("", nil)
		defer func() { _ = silent.CloseNow() }() // the server has closed it
		pass(pingInterval + writeWithin)
		if s.open()["alice"] != 1 {
			t.Errorf("the streams are %v", s.open())
		}
		pass(10 * pingInterval)
		s.hear(answers, s.carryOutOf("shop")...)
	})
}

func TestACallerOfASocketHasNothingToSay(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		conn := s.dialSocket("", nil)
		defer func() { _ = conn.CloseNow() }() // the server has closed it
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"plan.created"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("the socket ends with %v", err)
		}
	})
}

func TestACallerWhoDoesNotReadEndsTheStream(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		conn, err := s.network.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET "+eventsPath+" HTTP/1.1\r\nHost: console\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		begun := time.Now()
		s.create(newPlan("shop", "plan"))
		pass(writeWithin - time.Second)
		if s.open()["alice"] != 1 {
			t.Errorf("after %s the streams are %v", time.Since(begun), s.open())
		}
		pass(time.Second)
		if len(s.open()) > 0 {
			t.Errorf("after %s the streams are %v", time.Since(begun), s.open())
		}
	})
}

func TestAUserHas50Streams(t *testing.T) {
	onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
		var open []*streamtest.Listener
		for i := range maxStreams {
			open = append(open, s.listenTo(sorts[i%2], ""))
		}
		w := s.get(eventsPath)
		s.wantProblem(w, wire.TooManyRequests, "")
		if w.Header().Get("Retry-After") == "" {
			t.Error("the refusal does not say when to ask again")
		}
		open[0].Leave()
		synctest.Wait()
		open[0] = s.listenTo(sorts[0], "")
		types := s.carryOutOf("shop")
		for _, l := range open {
			s.hear(l, types...)
			l.Leave()
		}
	})
}

func TestStreamsEndWithTheServer(t *testing.T) {
	for _, sort := range sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, interceptor.Funcs{}, func(t *testing.T, s *stage) {
				l := s.listenTo(sort, "")
				defer l.Leave()
				s.End()
				if sort == "server-sent events" {
					if e := s.hear(l, wire.EventEnded)[0]; e.Code != int(websocket.StatusGoingAway) || e.Status != "going_away" || e.ID != "" {
						t.Errorf("the last event is %+v", e)
					}
				}
				_, err := l.Next()
				if want := map[string]bool{"WebSocket": websocket.CloseStatus(err) == websocket.StatusGoingAway, "server-sent events": errors.Is(err, io.EOF)}; !want[sort] {
					t.Errorf("it ends with %v", err)
				}
				s.wantProblem(s.get(eventsPath), wire.Unavailable, "")
				s.Wait(t.Context())
				if len(s.open()) > 0 {
					t.Errorf("the streams are %v", s.open())
				}
			})
		})
	}
}

func TestARequestForEventsIsRefused(t *testing.T) {
	a := newAnswers(t, newCluster(t, interceptor.Funcs{}))
	socket := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	tests := map[string]struct {
		query    string
		headers  []string
		problem  wire.ProblemType
		location string
	}{
		"an id that is none":                 {"?since=yesterday", nil, wire.BadRequest, "query.since"},
		"an id of a browser that is none":    {"", []string{lastEvent, "yesterday"}, wire.BadRequest, "header." + lastEvent},
		"an unknown query":                   {"?type=plan.created", nil, wire.BadRequest, "query.type"},
		"a query twice":                      {"?namespace=a&namespace=b", nil, wire.BadRequest, "query.namespace"},
		"a name of no namespace":             {"?namespace=a.b", nil, wire.BadRequest, "query.namespace"},
		"a query that is none":               {"?a=%zz", nil, wire.BadRequest, ""},
		"another media type":                 {"", []string{"Accept", "text/html"}, wire.BadRequest, "header.Accept"},
		"a page elsewhere":                   {"", []string{"Sec-Fetch-Site", "cross-site"}, wire.CrossOrigin, ""},
		"a socket of a page elsewhere":       {"", append([]string{"Sec-Fetch-Site", "cross-site"}, socket...), wire.CrossOrigin, ""},
		"a socket of another port":           {"", append([]string{"Origin", "http://example.com:1"}, socket...), wire.CrossOrigin, ""},
		"a socket of an old browser's page":  {"", append([]string{"Origin", "https://evil.example"}, socket...), wire.CrossOrigin, ""},
		"a socket of a file":                 {"", append([]string{"Origin", "null"}, socket...), wire.CrossOrigin, ""},
		"a socket with an unknown query":     {"?token=abc", socket, wire.BadRequest, "query.token"},
		"a namespace of an attempt to break": {"?namespace=..%2Fshop", nil, wire.BadRequest, "query.namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &answers{API: a.API, t: t}
			a.wantProblem(a.get(eventsPath+tc.query, tc.headers...), tc.problem, tc.location)
		})
	}
}
