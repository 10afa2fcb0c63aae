// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/netns"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// losing is a way in which the packets of an endpoint are lost: all of them, or those from the
// endpoint alone, so that the endpoint sees requests.
type losing struct {
	name, near, far string
	all             bool
}

// ways by the names of their interfaces, which Linux does not permit to be "all".
var ways = []losing{
	{"both", "192.0.2.1", "192.0.2.2", true},
	{"answers", "198.51.100.1", "198.51.100.2", false},
}

// abyss is a proxy, its clients and a good endpoint in one network, and in another one for each
// way an endpoint whose packets can be lost.
type abyss struct {
	near  *netns.Namespace
	fars  []*netns.Namespace
	seen  *census
	loads []*openLoad
}

// newAbyss has an open load of both protocols on Services of which each has a good endpoint and one
// whose packets can be lost. silence takes the place of the proxy's own times, if it is not 0.
func newAbyss(t testing.TB, silence time.Duration) *abyss {
	t.Helper()
	a := &abyss{near: netns.New(t), seen: &census{}}
	a.near.IP(t, "link set lo up")
	good := a.server(t, a.near, "127.0.0.1:0", "good")
	var services []ir.Service
	for _, way := range ways {
		far := netns.New(t)
		a.near.Join(t, far, way.name)
		a.near.IP(t, "addr add "+way.near+"/24 dev "+way.name, "link set "+way.name+" up")
		far.IP(t, "addr add "+way.far+"/24 dev "+way.name, "link set "+way.name+" up")
		lost := a.server(t, far, way.far+":8080", "lost")
		a.fars = append(a.fars, far)
		for _, protocol := range []ir.Protocol{ir.HTTP, ir.HTTP2} {
			s := web(nil, slot("", endpoint(good, ir.Ready), endpoint(lost, ir.Ready)))
			s.Ports[0].Protocol = protocol
			services = append(services, s)
		}
	}
	p, addresses := arranged(t, services...)
	p.network = a.near
	if silence > 0 {
		p.shorten(silence)
	}
	run(t, p, addresses...)
	for i, address := range addresses {
		l := &openLoad{tb: t, name: ways[i/2].name + " of " + services[i].Ports[0].Protocol.String(), address: address, client: client(t, i%2 == 1)}
		l.client.Timeout = 10 * patience // longer than the proxy's
		transport := l.client.Transport.(*http.Transport)
		transport.DialContext, transport.MaxIdleConnsPerHost = a.near.Dial, 1000
		a.loads = append(a.loads, l)
	}
	return a
}

// shorten the times after which connections of the proxy end that hear nothing.
func (p *parts) shorten(silence time.Duration) {
	second := wrapperspb.UInt32(1)
	for _, c := range p.clusters {
		c.UpstreamBindConfig.SocketOptions[0].Value = &corev3.SocketOption_IntValue{IntValue: silence.Milliseconds()}
		k := c.UpstreamConnectionOptions.TcpKeepalive
		k.KeepaliveTime, k.KeepaliveInterval = second, second
	}
}

// server answers with its name in a namespace. Requests that say so wait until the test ends.
func (a *abyss) server(t testing.TB, in *netns.Namespace, address, name string) string {
	t.Helper()
	l := in.Listen(t, address)
	s := &http.Server{ReadHeaderTimeout: patience, Protocols: &http.Protocols{}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.seen.note(r.Header.Get("X-Id"))
		w.Header().Set("Variation", name)
		if r.Header.Get("X-Wait") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // the client waits for it
			<-r.Context().Done()
		}
	})}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()      // ends with the test
	t.Cleanup(func() { _ = s.Close() }) // its connections may be lost
	return l.Addr().String()
}

// lose the packets of the far endpoints.
func (a *abyss) lose(t testing.TB) {
	for i, way := range ways {
		a.fars[i].Lose(t, way.name, way.near)
		if way.all {
			a.near.Lose(t, way.name, way.far)
		}
	}
}

// loseUnderLoad loses packets once both endpoints answer each load, and returns when the loads
// started and when packets were lost.
func (a *abyss) loseUnderLoad(t testing.TB, every time.Duration) (start, lost time.Time) {
	t.Helper()
	start = time.Now()
	for _, l := range a.loads {
		l.start(every)
	}
	for _, l := range a.loads {
		l.reaches(start)
	}
	lost = time.Now()
	a.lose(t)
	return start, lost
}

func (a *abyss) find(t testing.TB) {
	for i, way := range ways {
		a.fars[i].Find(t, way.name, way.near)
		if way.all {
			a.near.Find(t, way.name, way.far)
		}
	}
}

// openLoad sends requests at a rate, whether the ones before are answered or not, and none twice.
type openLoad struct {
	tb            testing.TB
	name, address string
	client        *http.Client

	mu   sync.Mutex
	sent []*sent
}

// sent is a request, and by whom it was answered. One that waits has no end.
type sent struct {
	begin, end  time.Time
	by, failure string
}

// start sends requests until the test ends.
func (l *openLoad) start(every time.Duration) {
	var all sync.WaitGroup
	done := make(chan struct{})
	all.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-ticks.C:
				all.Go(func() { l.send(fmt.Sprint(l.name, " ", i)) })
			}
		}
	})
	l.tb.Cleanup(func() { close(done); all.Wait() })
}

func (l *openLoad) send(id string) {
	s := &sent{begin: time.Now()}
	l.mu.Lock()
	l.sent = append(l.sent, s)
	l.mu.Unlock()
	by, failure := l.ask(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	s.end, s.by, s.failure = time.Now(), by, failure
}

func (l *openLoad) ask(id string) (by, failure string) {
	req, err := http.NewRequestWithContext(l.tb.Context(), http.MethodGet, "http://"+l.address+"/", http.NoBody)
	if err != nil {
		return "", err.Error()
	}
	req.Header.Set("X-Id", id)
	resp, err := l.client.Do(req)
	if err != nil {
		return "", err.Error()
	}
	_ = resp.Body.Close() // it has none
	if resp.StatusCode != http.StatusOK {
		return "", resp.Status
	}
	return resp.Header.Get("Variation"), ""
}

// outcome of the requests that began after a moment.
type outcome struct {
	// failed requests, when the last of them began, and when the last of them ended.
	failed      int
	began, over time.Time
	// waiting are those that began before that end, and have none.
	waiting int
	// by are the answers to those that began after it.
	by map[string]int
}

func (l *openLoad) after(moment time.Time) outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := outcome{over: moment, by: map[string]int{}}
	for _, s := range l.sent {
		if s.failure != "" && !s.begin.Before(moment) {
			o.failed++
			o.began = s.begin
			if s.end.After(o.over) {
				o.over = s.end
			}
		}
	}
	for _, s := range l.sent {
		switch {
		case s.begin.Before(moment) || s.failure != "":
		case s.begin.Before(o.over) && s.end.IsZero():
			o.waiting++
		case s.begin.After(o.over) && !s.end.IsZero():
			o.by[s.by]++
		}
	}
	return o
}

// reaches waits until requests that began after a moment are answered by both endpoints.
func (l *openLoad) reaches(moment time.Time) {
	l.tb.Helper()
	poll.Until(l.tb, 2*patience, l.name+" is answered by both endpoints", func() error {
		if o := l.after(moment); o.by["good"] < 5 || o.by["lost"] < 5 {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
}

// leaves waits until requests have failed since a moment, none waits that began before, and 50
// were answered that began later.
func (l *openLoad) leaves(moment time.Time, limit time.Duration) (o outcome) {
	l.tb.Helper()
	poll.Until(l.tb, limit, l.name+" leaves the lost endpoint", func() error {
		if o = l.after(moment); o.failed == 0 || o.waiting > 0 || o.by["good"] < 50 {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
	return o
}

// The packets of an endpoint are lost on connections that are open: the proxy ends these, later
// requests go elsewhere, and none of those that the endpoint may have seen is sent again.
func TestAnEndpointWhosePacketsAreLostKeepsNoRequest(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		a := newAbyss(t, 2*time.Second)
		start, lost := a.loseUnderLoad(t, 10*time.Millisecond)
		for _, l := range a.loads {
			// The request that is lost may have begun before: later ones avoid an endpoint that is busy.
			o := l.leaves(start, patience)
			t.Logf("%s: %d requests failed, the last began after %s", l.name, o.failed, o.began.Sub(lost))
		}
		found := time.Now()
		a.find(t)
		for _, l := range a.loads {
			l.reaches(found)
			if o := l.after(found); o.failed > 0 {
				t.Errorf("%s: %d requests failed when the endpoint was back", l.name, o.failed)
			}
		}
		a.seen.onceAtMost(t)
	})
}

// The endpoint has acknowledged all of the request, and nothing is sent to it any more.
func TestARequestThatWaitsForALostEndpointEnds(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		a := newAbyss(t, 2*time.Second)
		var answers []*http.Response
		for _, l := range a.loads {
			answers = append(answers, l.waits(t)) //nolint:bodyclose // waits closes it when the test ends
		}
		a.lose(t)
		for i, resp := range answers {
			if _, err := io.Copy(io.Discard, resp.Body); err == nil || os.IsTimeout(err) {
				t.Errorf("%s: the answer ended with %v, want that its connection was lost", a.loads[i].name, err)
			}
		}
	})
}

// waits for the head of an answer of the endpoint whose packets can be lost. The rest never comes.
func (l *openLoad) waits(t *testing.T) *http.Response {
	t.Helper()
	l.client.Timeout = patience
	for range 100 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.address+"/", http.NoBody)
		must(t, err)
		req.Header.Set("X-Wait", "until the end")
		resp, err := l.client.Do(req)
		must(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() }) // it ends the request
		if resp.Header.Get("Variation") == "lost" {
			return resp
		}
	}
	t.Fatalf("%s: all answers are from the good endpoint", l.name)
	return nil
}
