// SPDX-License-Identifier: Apache-2.0

package door

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/internal/serve/servetest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// stage is a door on a network in memory. It lives in a bubble of package synctest.
type stage struct {
	*opened
	network *streamtest.Pipes
	client  *http.Client
}

// roomy are bounds that no test of streams reaches.
var roomy = Bounds{OfAddress: 1000, OfUser: 1000, StreamsOfAddress: 1000}

// onStage runs a test against a door.
func onStage(t *testing.T, bounds Bounds, test func(*testing.T, *stage)) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	world := servetest.New(t, log) // its API server is outside of the bubble: network has no clock
	synctest.Test(t, func(t *testing.T) {
		s := &stage{opened: openAbout(t, world, bounds, log, nil), network: streamtest.NewPipes()}
		transport := &http.Transport{DialContext: s.network.Dial}
		s.client = &http.Client{Transport: transport}
		server := &http.Server{Handler: s, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(s.network) }()
		test(t, s)
		s.api.End()
		s.api.Wait(t.Context())
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		s.wantStreams(0)
		if len(s.addresses.taken)+len(s.users.taken)+len(s.streams.taken) > 0 {
			t.Errorf("places are taken: %v, %v, %v", s.addresses.taken, s.users.taken, s.streams.taken)
		}
	})
}

func (s *stage) wantStreams(want int) {
	s.t.Helper()
	synctest.Wait()
	if err := testutil.CollectAndCompare(s.api.StreamMetrics(), strings.NewReader(
		"# HELP plumbline_api_streams Open streams of events.\n# TYPE plumbline_api_streams gauge\nplumbline_api_streams "+itoa(want)+"\n"), "plumbline_api_streams"); err != nil {
		s.t.Error(err)
	}
}

// wantEnds demands how many streams ended for each reason; a reason that is not named has none.
func (s *stage) wantEnds(of map[string]int) {
	s.t.Helper()
	synctest.Wait()
	var want strings.Builder
	want.WriteString("# HELP plumbline_api_stream_ends_total Streams of events that ended, by reason: caller (left), slow (a write took 5 s), " +
		"token (ended or refused), rights (the last one was taken away), server (ends), failed.\n# TYPE plumbline_api_stream_ends_total counter\n")
	for _, reason := range []string{"caller", "slow", "token", "rights", "server", "failed"} {
		fmt.Fprintf(&want, "plumbline_api_stream_ends_total{reason=%q} %d\n", reason, of[reason])
	}
	if err := testutil.CollectAndCompare(s.api.StreamMetrics(), strings.NewReader(want.String()), "plumbline_api_stream_ends_total"); err != nil {
		s.t.Error(err)
	}
}

// pass lets time pass on the clock of the world, and on that of the bubble.
func (s *stage) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		s.Pass(min(d, time.Second))
		<-time.After(min(d, time.Second))
		synctest.Wait()
	}
}

// listen opens a stream with a token.
func (s *stage) listen(sort, query, token string, headers ...string) *streamtest.Listener {
	s.t.Helper()
	return streamtest.Listen(s.t, s.client, sort, "http://"+host+"/api/v1/events"+query, append(headers, "Authorization", "Bearer "+token)...)
}

// protocols are those by which a page sends a token.
func protocols(token string) []string {
	return []string{"Sec-WebSocket-Protocol", httpapi.Subprotocol + ", " + tokenProtocol + base64.RawURLEncoding.EncodeToString([]byte(token))}
}

// plan makes a plan whose creation is an event.
func (s *stage) plan(namespace, name string) {
	s.Cache.Put(&v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
	}})
	synctest.Wait()
}

// baseline makes a Baseline whose state is an event.
func (s *stage) baseline(namespace, name string) {
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}}
	b.Status.State = v1alpha1.StateInSync
	b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}}
	s.Cache.Put(b)
	synctest.Wait()
}

// hear returns the next events, each as TYPE NAMESPACE/NAME, or TYPE STATUS for those of the stream itself. The end of the
// stream is an event, with its code where there is one.
func (s *stage) hear(l *streamtest.Listener, count int) (heard []string) {
	s.t.Helper()
	for range count {
		e, err := l.Next()
		switch {
		case errors.Is(err, io.EOF):
			heard = append(heard, "EOF")
		case err != nil && websocket.CloseStatus(err) > 0:
			heard = append(heard, "closed "+itoa(int(websocket.CloseStatus(err))))
		case err != nil:
			heard = append(heard, err.Error())
		case e.Type == wire.EventEnded:
			heard = append(heard, "ended "+itoa(e.Code)+" "+e.Status)
		case slices.Contains([]wire.EventType{wire.EventNarrowed, wire.EventResync}, e.Type):
			heard = append(heard, string(e.Type)+" "+e.Status+": "+e.Message)
		default:
			heard = append(heard, string(e.Type)+" "+e.Namespace+"/"+e.Name)
		}
	}
	return heard
}
