// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// wantHeard demands the next events of a stream.
func (s *stage) wantHeard(l *streamtest.Listener, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.hear(l, len(want))); diff != "" {
		s.t.Errorf("(-want +heard):\n%s", diff)
	}
}

// wantEnd demands the end of a stream of a sort, with a code.
func (s *stage) wantEnd(l *streamtest.Listener, sort, code, status string) {
	s.t.Helper()
	if sort == streamtest.Sorts[0] {
		s.wantHeard(l, "closed "+code)
		return
	}
	s.wantHeard(l, "ended "+code+" "+status, "EOF")
}

func TestAStreamTellsWhatItsCallerMayWatch(t *testing.T) {
	for _, sort := range streamtest.Sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, roomy, func(_ *testing.T, s *stage) {
				s.plan("shop", "before")
				all, screen, own, shop := s.listen(sort, "", "alice"), s.listen(sort, "", "screen"), s.listen(sort, "", "bob"), s.listen(sort, "?namespace=shop", "bob")
				s.plan("bank", "secret")
				s.baseline("shop", "web")
				for _, l := range []*streamtest.Listener{all, screen} {
					s.wantHeard(l, "plan.created bank/secret", "drift.in_sync shop/web")
				}
				s.wantHeard(own, "narrowed forbidden: you may not watch RemediationPlan in the whole cluster", "narrowed forbidden: you may not watch ABRelease in the whole cluster",
					"narrowed forbidden: you may not watch Baseline in the whole cluster", "narrowed forbidden: you may not watch RemediationPolicy in the whole cluster", "drift.in_sync shop/web")
				s.wantHeard(shop, "drift.in_sync shop/web")
				s.plan("bank", "more")
				s.plan("shop", "last")
				s.wantHeard(all, "plan.created bank/more", "plan.created shop/last")
				s.wantHeard(own, "plan.created shop/last")
				s.wantHeard(shop, "plan.created shop/last")
			})
		})
	}
}

// A caller who goes on behind an event gets those that the caller may watch alone.
func TestAResumedStreamTellsNoEventOfAnotherNamespace(t *testing.T) {
	onStage(t, roomy, func(_ *testing.T, s *stage) {
		for i := range 100 { // more than a stream reads at once
			s.plan("bank", "secret-"+itoa(i))
		}
		s.plan("shop", "ours")
		for _, query := range []string{"?since=1.none.0&namespace=shop", "?since=1.none.0"} {
			l := s.listen(streamtest.Sorts[1], query, "bob")
			if !strings.Contains(query, "namespace") {
				s.hear(l, 4) // the notices
			}
			s.wantHeard(l, "plan.created shop/ours")
			l.Leave()
		}
	})
}

func TestACallerWithoutARightGetsNoStream(t *testing.T) {
	onStage(t, roomy, func(t *testing.T, s *stage) {
		s.plan("shop", "plan")
		for query, token := range map[string]string{"": "eve", "?namespace=shop": "eve", "?namespace=bank": "bob"} {
			w := s.send(http.MethodGet, "/api/v1/events"+query, token, "")
			s.wantProblem(w, wire.Forbidden)
			var p wire.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Right == nil || p.Right.Verb != "watch" || p.Right.Kind != "RemediationPlan" {
				t.Errorf("%s%s: %s (%v)", token, query, w.Body, err)
			}
		}
		s.wantProblem(s.send(http.MethodHead, "/api/v1/events", "alice", ""), wire.BadRequest)
		s.pass(10 * time.Second)
		s.GoAway(true)
		s.wantProblem(s.send(http.MethodGet, "/api/v1/events?namespace=shop", "eve", ""), wire.Unavailable)
	})
}

func TestARoleThatIsTakenAwayNarrowsTheStreamAndThenEndsIt(t *testing.T) {
	for _, sort := range streamtest.Sorts {
		for _, query := range []string{"", "?namespace=shop"} {
			t.Run(sort+query, func(t *testing.T) {
				onStage(t, roomy, func(_ *testing.T, s *stage) {
					whole := servetest.Right{User: "bob", Verb: "watch", Namespace: "shop"}
					plans := servetest.Right{User: "bob", Verb: "watch", Resource: "remediationplans", Namespace: "shop"}
					s.plan("shop", "before")
					l := s.listen(sort, query, "bob")
					lost := []string{"narrowed forbidden: you may not watch Baseline in namespace shop"}
					if query == "" {
						s.hear(l, 4) // of each kind, in all namespaces
					} else {
						lost = append([]string{"narrowed forbidden: you may not watch ABRelease in namespace shop"}, lost...)
					}
					s.plan("shop", "one")
					s.baseline("shop", "one")
					s.wantHeard(l, "plan.created shop/one", "drift.in_sync shop/one")
					s.Grant(plans, true)
					s.Grant(whole, false)
					s.pass(30 * time.Second)
					s.baseline("shop", "two")
					s.plan("shop", "two")
					s.wantHeard(l, append(lost, "plan.created shop/two")...)
					// A right that comes back is heard again.
					s.Grant(whole, true)
					s.pass(30 * time.Second)
					s.baseline("shop", "three")
					s.wantHeard(l, "drift.in_sync shop/three")
					s.Grant(whole, false)
					s.Grant(plans, false)
					s.pass(30 * time.Second)
					s.plan("shop", "three")
					s.wantHeard(l, "narrowed forbidden: you may not watch Baseline in namespace shop", "narrowed forbidden: you may not watch RemediationPlan in namespace shop")
					s.wantEnd(l, sort, "4403", "forbidden")
					s.wantEnds(map[string]int{"rights": 1})
				})
			})
		}
	}
}

// tokenUntil is a token that tells its end.
func tokenUntil(end time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix())) + ".c2ln"
}

func TestAStreamEndsWithItsToken(t *testing.T) {
	for _, sort := range streamtest.Sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, roomy, func(t *testing.T, s *stage) {
				short := tokenUntil(time.Now().Add(20 * time.Second))
				s.Know(short, servetest.Token{User: "alice", ForServer: true})
				ends, revoked, stays := s.listen(sort, "", short), s.listen(sort, "", "screen"), s.listen(sort, "", "alice")
				s.Revoke("screen")
				s.pass(19 * time.Second)
				s.plan("shop", "one")
				s.pass(time.Second)
				s.plan("shop", "two") // at the end of the token
				s.wantHeard(ends, "plan.created shop/one")
				s.wantEnd(ends, sort, "4401", "unauthenticated")
				s.wantHeard(revoked, "plan.created shop/one", "plan.created shop/two")
				s.pass(75*time.Second - 20*time.Second)
				s.plan("shop", "three")
				s.wantEnd(revoked, sort, "4401", "unauthenticated")
				s.wantHeard(stays, "plan.created shop/one", "plan.created shop/two", "plan.created shop/three")
				stays.Leave()
				s.wantEnds(map[string]int{"token": 2, "caller": 1})
			})
		})
	}
}

// A token that names another user by now is not that of the stream.
func TestATokenOfAnotherUserEndsTheStream(t *testing.T) {
	onStage(t, roomy, func(_ *testing.T, s *stage) {
		s.Know("shared", servetest.Token{User: "alice", ForServer: true})
		l := s.listen(streamtest.Sorts[1], "", "shared")
		s.Know("shared", servetest.Token{User: "screen", ForServer: true})
		s.pass(75 * time.Second)
		s.wantEnd(l, streamtest.Sorts[1], "4401", "unauthenticated")
	})
}

// No event is told while the right cannot be asked for, and none is lost.
func TestAStreamWaitsForAnAPIServerThatCannotBeAsked(t *testing.T) {
	for _, sort := range streamtest.Sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, roomy, func(_ *testing.T, s *stage) {
				l := s.listen(sort, "?namespace=shop", "bob")
				s.GoAway(true)
				s.pass(time.Minute)
				s.plan("shop", "one")
				s.plan("bank", "secret")
				s.pass(time.Minute)
				s.GoAway(false)
				s.plan("shop", "two")
				begun := time.Now()
				s.pass(20 * time.Second)
				e, err := l.Next()
				if err != nil || e.Name != "one" || time.Since(begun) > 20*time.Second {
					s.t.Errorf("after %s: %+v %v", time.Since(begun), e, err)
				}
				s.wantHeard(l, "plan.created shop/two")
			})
		})
	}
}

func TestAWebSocketTakesItsTokenAsASubprotocol(t *testing.T) {
	onStage(t, roomy, func(t *testing.T, s *stage) {
		header := http.Header{}
		header.Set(protocols("bob")[0], protocols("bob")[1])
		conn := streamtest.DialSocket(t, s.client, "http://"+host+"/api/v1/events?namespace=shop", header)
		defer func() { _ = conn.CloseNow() }()
		if conn.Subprotocol() != httpapi.Subprotocol {
			t.Errorf("the subprotocol is %q", conn.Subprotocol())
		}
		s.plan("shop", "one")
		if _, body, err := conn.Read(t.Context()); err != nil || !strings.Contains(string(body), `"plan.created"`) {
			t.Errorf("%s (%v)", body, err)
		}
	})
}

func TestASubprotocolThatIsNoTokenIsRefused(t *testing.T) {
	o := open(t, DefaultBounds())
	encode := func(token string) string { return tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token)) }
	for name, values := range map[string][]string{
		"a token alone": {encode("alice")}, "two tokens": {encode("alice"), httpapi.Subprotocol, encode("alice")}, "an unknown token": {httpapi.Subprotocol, encode("unknown")},
		"no encoding": {httpapi.Subprotocol, tokenProtocol + "alice!"}, "padding": {httpapi.Subprotocol, tokenProtocol + base64.URLEncoding.EncodeToString([]byte("alice"))},
		"an empty token": {httpapi.Subprotocol, tokenProtocol}, "a token with a line": {httpapi.Subprotocol, encode("al\nice")}, "no token": {httpapi.Subprotocol},
	} {
		for form, headers := range map[string][]string{"one header": {strings.Join(values, ", ")}, "several": values} {
			t.Run(name+" in "+form, func(t *testing.T) {
				r := o.request(http.MethodGet, "/api/v1/events", "", "")
				r.Header["Sec-Websocket-Protocol"] = headers
				w := o.answer(r)
				o.wantProblem(w, wire.Unauthenticated)
				if strings.Contains(w.Body.String()+fmt.Sprint(w.Header()), "YWxpY2") {
					t.Errorf("the answer has the token: %s %v", w.Body, w.Header())
				}
			})
		}
	}
	// Two tokens could be those of two users.
	r := o.request(http.MethodGet, "/api/v1/events", "bob", "", protocols("alice")...)
	o.wantProblem(o.answer(r), wire.Unauthenticated)
	if strings.Contains(o.log.String(), "YWxpY2") {
		t.Errorf("the log has a token: %s", o.log)
	}
	for _, query := range []string{"?token=alice", "?access_token=alice", "?authorization=Bearer%20alice"} {
		o.wantProblem(o.send(http.MethodGet, "/api/v1/events"+query, "", ""), wire.Unauthenticated)
	}
}

func TestStreamsHoldNoPlaceOfRequests(t *testing.T) {
	onStage(t, Bounds{OfAddress: 1, OfUser: 1, StreamsOfAddress: 52}, func(t *testing.T, s *stage) {
		for i := range 50 {
			defer s.listen(streamtest.Sorts[i%2], "", "alice").Leave()
		}
		over := s.send(http.MethodGet, "/api/v1/events", "alice", "")
		s.wantProblem(over, wire.TooManyRequests)
		if over.Header().Get("Retry-After") == "" {
			t.Error("it is not said when to try again")
		}
		if w := s.send(http.MethodGet, "/api/v1/whoami", "alice", ""); w.Code != http.StatusOK {
			t.Errorf("a request is refused: %d %s", w.Code, w.Body)
		}
		first := s.listen(streamtest.Sorts[0], "", "screen")
		defer s.listen(streamtest.Sorts[0], "", "screen").Leave()
		s.wantStreams(52)
		r := s.request(http.MethodGet, "/api/v1/events", "screen", "")
		r.RemoteAddr = "pipe"
		s.wantProblem(s.answer(r), wire.TooManyRequests)
		first.Leave()
		synctest.Wait()
		s.listen(streamtest.Sorts[0], "", "screen").Leave()
	})
}

// stall opens a stream, reads its beginning, and nothing afterwards.
func (s *stage) stall(token string) io.Closer {
	s.t.Helper()
	conn, err := s.network.Dial(s.t.Context(), "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /api/v1/events HTTP/1.1\r\nHost: "+host+"\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		if line == ": plumbline\n" {
			break
		}
	}
	synctest.Wait()
	return conn
}

func TestTwoHundredCallersWhoDoNotReadCostOthersNoEvent(t *testing.T) {
	onStage(t, roomy, func(t *testing.T, s *stage) {
		for user := range 4 {
			name := "slow-" + itoa(user)
			s.Know(name, servetest.Token{User: name, ForServer: true})
			s.Grant(servetest.Right{User: name, Verb: "watch"}, true)
			for range 50 {
				defer s.stall(name).Close()
			}
		}
		readers := []*streamtest.Listener{s.listen(streamtest.Sorts[0], "", "alice"), s.listen(streamtest.Sorts[1], "", "alice")}
		s.wantStreams(202)
		begun, waited := time.Now(), time.Duration(0)
		for i := range 20 {
			told := time.Now()
			s.plan("shop", itoa(i))
			for _, l := range readers {
				s.wantHeard(l, "plan.created shop/"+itoa(i))
			}
			waited += time.Since(told)
			<-time.After(100 * time.Millisecond) // events that are closer to each other are told together
		}
		if waited > 0 {
			t.Errorf("the readers waited %s", waited)
		}
		s.pass(5*time.Second - time.Since(begun) - time.Second)
		s.wantStreams(202)
		s.pass(time.Second)
		s.wantStreams(2)
		s.plan("shop", "last")
		for _, l := range readers {
			s.wantHeard(l, "plan.created shop/last")
		}
		s.wantEnds(map[string]int{"slow": 200})
		if err := testutil.CollectAndCompare(s.api.StreamMetrics(), strings.NewReader(`
# HELP plumbline_api_stream_resyncs_total Notices to streams that events may be missing: the stream was lapped, or begins behind an event that is too old.
# TYPE plumbline_api_stream_resyncs_total counter
plumbline_api_stream_resyncs_total 0
`), "plumbline_api_stream_resyncs_total"); err != nil {
			t.Error(err)
		}
	})
}

// A socket whose caller reads no message ends as well.
func TestASocketThatIsNotReadEndsAsSlow(t *testing.T) {
	onStage(t, roomy, func(t *testing.T, s *stage) {
		header := http.Header{}
		header.Set("Authorization", "Bearer alice")
		conn := streamtest.DialSocket(t, s.client, "http://"+host+"/api/v1/events", header)
		defer func() { _ = conn.CloseNow() }()
		s.wantStreams(1)
		s.plan("shop", "one")
		s.pass(5 * time.Second)
		s.wantStreams(0)
		s.wantEnds(map[string]int{"slow": 1})
	})
}

func TestStreamsEndWithTheReplica(t *testing.T) {
	for _, sort := range streamtest.Sorts {
		t.Run(sort, func(t *testing.T) {
			onStage(t, roomy, func(_ *testing.T, s *stage) {
				l := s.listen(sort, "", "alice")
				s.plan("shop", "one")
				s.api.End()
				s.wantHeard(l, "plan.created shop/one")
				s.wantEnd(l, sort, itoa(int(websocket.StatusGoingAway)), "going_away")
				s.wantEnds(map[string]int{"server": 1})
				s.wantProblem(s.send(http.MethodGet, "/api/v1/events", "alice", ""), wire.Unavailable)
			})
		})
	}
}
