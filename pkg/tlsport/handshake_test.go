// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

func TestNeverMoreHandshakesAreComputedThanThereArePlaces(t *testing.T) {
	const places, addresses, each = 2, 4, 10
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		inner, l, metrics := listenOnPipes(places, &tls.Config{GetCertificate: s.get})
		var callers sync.WaitGroup
		for n := range addresses {
			shakeHands(&callers, t, inner, fmt.Sprintf("10.0.0.%d", n), each)
		}
		var server sync.WaitGroup
		server.Go(func() { acceptAndClose(l) })
		for left := addresses * each; left > 0; left-- {
			synctest.Wait()
			computed, waiting := metrics.now(handshakeComputing), metrics.now(handshakeWaiting)
			if n := s.inside.Load(); n != int64(min(places, left)) || computed != float64(n) {
				t.Fatalf("%d handshakes of %d are in their computation, %v are counted", n, left, computed)
			}
			if left == addresses*each && waiting != addresses*each-places {
				t.Fatalf("%v handshakes wait", waiting)
			}
			s.proceed <- struct{}{}
		}
		callers.Wait()
		synctest.Wait()
		if n := testutil.ToFloat64(metrics.handshakesDone); n != addresses*each {
			t.Errorf("%v are done", n)
		}
		for _, state := range []handshakeState{handshakePeer, handshakeWaiting, handshakeComputing} {
			if n := metrics.now(state); n != 0 {
				t.Errorf("%v handshakes are left in state %d", n, state)
			}
		}
		_ = l.Close()
		server.Wait()
	})
}

func TestAFloodFromOneAddressLetsAnotherHaveItsTurn(t *testing.T) {
	const flood = 100
	synctest.Test(t, func(t *testing.T) {
		s := newTurnstile(t)
		inner, l, metrics := listenOnPipes(1, &tls.Config{GetCertificate: s.get})
		var callers, server sync.WaitGroup
		shakeHands(&callers, t, inner, "10.0.1.1", flood)
		synctest.Wait()
		shakeHands(&callers, t, inner, "10.0.0.1", 1)
		synctest.Wait()
		if n := metrics.now(handshakeWaiting); n != flood {
			t.Fatalf("%v wait for the one that is computed", n)
		}
		server.Go(func() { acceptAndClose(l) })
		close(s.proceed)
		callers.Wait()
		_ = l.Close()
		server.Wait()
		before := 0
		for <-s.entered != "10.0.0.1" {
			before++
		}
		// One had its turn before, and one has it between that and the other's.
		if before > 2 {
			t.Errorf("%d handshakes of the flood were computed before the other's", before)
		}
	})
}

func TestSlowCallersHoldNoTurn(t *testing.T) {
	serving, metrics := selfsigned.New(t, "serving"), NewMetrics("test")
	address := listen(t, 1, metrics, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil })
	const each = 20
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for range each {
		dialFrom(t, "127.0.1.1", address) // says nothing
		if _, err := dialFrom(t, "127.0.1.2", address).Write([]byte{22, 3, 1}); err != nil {
			t.Fatal(err)
		}
		neverEnds := tls.Client(dialFrom(t, "127.0.1.3", address), &tls.Config{
			InsecureSkipVerify: true,
			VerifyConnection:   func(tls.ConnectionState) error { <-stop; return errors.New("stopped") },
		})
		wg.Go(func() { _ = neverEnds.Handshake() })
	}
	poll.True(t, patience, "all are awaited", func() bool { return metrics.now(handshakePeer) == 3*each })
	config := &tls.Config{RootCAs: poolOf(serving), ServerName: "localhost"}
	if err := tls.Client(dialFrom(t, "127.0.0.1", address), config).Handshake(); err != nil {
		t.Error(err)
	}
	if n := metrics.now(handshakePeer); n < 3*each {
		t.Errorf("%v slow handshakes are left: the other may have waited for their end", n)
	}
}

func TestHandshakesHaveTheirTime(t *testing.T) {
	serving := selfsigned.New(t, "serving")
	client := &tls.Config{InsecureSkipVerify: true}
	tests := map[string]struct {
		busy    bool // the only place is taken
		call    func(net.Conn) error
		took    time.Duration
		refused float64
		failed  float64
	}{
		"a handshake takes none":                            {call: func(c net.Conn) error { return tls.Client(c, client).Handshake() }},
		"who waits a second for a turn is turned away":      {busy: true, call: func(c net.Conn) error { return tls.Client(c, client).Handshake() }, took: limits.Turn, refused: 1},
		"who says nothing is cut off":                       {call: waitForEnd, took: limits.Handshake, failed: 1},
		"who sends a byte now and then is cut off":          {call: dribble, took: limits.Handshake, failed: 1},
		"who sends a byte now and then is not kept waiting": {busy: true, call: dribble, took: limits.Turn + dribbleEvery, refused: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				computed := false
				inner, l, metrics := listenOnPipes(1, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					computed = true
					return &serving, nil
				}})
				defer func() { _ = l.Close() }()
				if tc.busy {
					l.gate.turns.ask("b")
				}
				accepted := make(chan net.Conn, 1)
				go func() {
					if c, err := l.Accept(); err == nil {
						accepted <- c
					}
				}()
				conn, began := inner.dial("a"), time.Now()
				defer func() { _ = conn.Close() }()
				err := tc.call(conn)
				if took := time.Since(began); took != tc.took {
					t.Errorf("ended after %v (%v), want %v", took, err, tc.took)
				}
				synctest.Wait()
				ok := tc.refused+tc.failed == 0
				if (err == nil) != ok || computed != ok || len(accepted) == 1 != ok {
					t.Errorf("error %v, computed %v, accepted %d", err, computed, len(accepted))
				}
				wantCount(t, metrics.handshakesRefused, "turn", tc.refused)
				wantCount(t, metrics.handshakeErrors, "other", tc.failed)
			})
		})
	}
}

// waitForEnd reads until the other side closes.
func waitForEnd(c net.Conn) error {
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return err
	}
	return nil
}

const dribbleEvery = 300 * time.Millisecond

// dribble sends a record that is announced to be long, slowly.
func dribble(c net.Conn) error {
	ended := make(chan error, 1)
	go func() { ended <- waitForEnd(c) }()
	tick := time.NewTicker(dribbleEvery)
	defer tick.Stop()
	next := []byte{22, 3, 1, 16, 0}
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		if _, err := c.Write(next[:1]); err != nil {
			return err
		}
		if next = next[1:]; len(next) == 0 {
			next = []byte{0}
		}
	}
}

// hasty sends the end of its handshake together with what comes after it.
type hasty struct {
	net.Conn
	writes int
	kept   []byte
}

func (h *hasty) Write(p []byte) (int, error) {
	if h.writes++; h.writes == 2 {
		h.kept = bytes.Clone(p)
		return len(p), nil
	}
	if _, err := h.Conn.Write(append(h.kept, p...)); err != nil {
		return 0, err
	}
	h.kept = nil
	return len(p), nil
}

func TestWhatComesTogetherWithTheEndOfTheHandshakeIsRead(t *testing.T) {
	// More than crypto/tls reads ahead, which is as much as the hello needed.
	first, later := strings.Repeat("the first request", 80), "one that comes when a handshake would be too late"
	synctest.Test(t, func(t *testing.T) {
		inner, l, _ := listenOnPipes(1, &tls.Config{Certificates: []tls.Certificate{selfsigned.New(t, "serving")}})
		conn := &hasty{Conn: inner.dial("a")}
		go func() {
			client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, CurvePreferences: []tls.CurveID{tls.X25519}})
			_, err := io.WriteString(client, first)
			if conn.writes < 3 {
				t.Errorf("the client wrote %d times: this does not test what it says", conn.writes)
			}
			<-time.After(2 * limits.Handshake) // takes none: the bubble has its own time
			_, err2 := io.WriteString(client, later)
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, conn.Conn)
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, sent := range []string{first, later} {
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(c, got); err != nil || string(got) != sent {
				t.Errorf("got %q (%v)", got, err)
			}
		}
		_ = c.(*tls.Conn).NetConn().Close()
		_ = l.Close()
		synctest.Wait()
	})
}

func TestAnEvictedHandshakeIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l, metrics := listenOnPipes(1, &tls.Config{})
		l.gate.handshakes.limit = 2
		for _, from := range []string{"a", "a", "b", "a"} {
			conn := inner.dial(from)
			defer func() { _ = conn.Close() }()
		}
		synctest.Wait()
		wantCount(t, metrics.handshakesRefused, "evicted", 1)
		wantCount(t, metrics.handshakesRefused, "caller", 1)
		wantCount(t, metrics.handshakeErrors, "other", 0)
		if n := metrics.now(handshakePeer); n != 2 {
			t.Errorf("%v handshakes are under way", n)
		}
		_ = l.Close()
	})
}

func TestAnErrorOfTheListenerIsPassedOnAndEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, l, _ := listenOnPipes(1, &tls.Config{Certificates: []tls.Certificate{selfsigned.New(t, "serving")}})
		tooMany := errors.New("too many open files")
		inner.errs <- tooMany
		if _, err := l.Accept(); !errors.Is(err, tooMany) {
			t.Errorf("got %v", err)
		}
		conn := inner.dial("a")
		go func() { _ = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
		if c, err := l.Accept(); err != nil {
			t.Error(err)
		} else {
			_ = c.Close()
		}
		_ = conn.Close()
		for range 2 {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v after the end", err)
		}
	})
}

// Each connection is counted once, whatever becomes of it.
func TestEachConnectionIsCountedOnce(t *testing.T) {
	serving, other, metrics := selfsigned.New(t, "serving"), selfsigned.New(t, "other"), NewMetrics("test")
	var panics atomic.Bool
	// There is a place for each, so that none is refused for want of a turn.
	address := listen(t, limits.UnderWay, metrics, func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == "panic.localhost" {
			panics.Store(true)
			panic("as asked")
		}
		return &serving, nil
	})
	kinds := []func(net.Conn) error{
		func(c net.Conn) error {
			return tls.Client(c, &tls.Config{RootCAs: poolOf(serving), ServerName: "localhost"}).Handshake()
		},
		func(c net.Conn) error {
			return tls.Client(c, &tls.Config{RootCAs: poolOf(other), ServerName: "localhost"}).Handshake()
		},
		func(c net.Conn) error {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake()
		},
		func(c net.Conn) error {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "panic.localhost"}).Handshake()
		},
		func(net.Conn) error { return errors.New("closed at once") },
		func(c net.Conn) error {
			_, _ = io.WriteString(c, strings.Repeat("garbage", 100))
			return waitForEnd(c)
		},
	}
	const rounds = 20
	var wg sync.WaitGroup
	var succeeded atomic.Int64
	for n := range rounds {
		for _, kind := range kinds {
			c := dialFrom(t, fmt.Sprintf("127.0.1.%d", n%3), address)
			wg.Go(func() {
				if kind(c) == nil {
					succeeded.Add(1)
				}
				_ = c.Close()
			})
		}
	}
	wg.Wait()
	count := func() (done, failed float64) {
		for _, reason := range []string{"certificate_rejected", "other"} {
			failed += testutil.ToFloat64(metrics.handshakeErrors.WithLabelValues(reason))
		}
		return testutil.ToFloat64(metrics.handshakesDone), failed
	}
	poll.True(t, patience, "all are counted", func() bool { done, failed := count(); return done+failed >= float64(rounds*len(kinds)) })
	done, failed := count()
	if done != rounds || succeeded.Load() != rounds || failed != float64(rounds*(len(kinds)-1)) {
		t.Errorf("%v succeeded and %v failed, want %d and %d; %d succeeded for the callers", done, failed, rounds, rounds*(len(kinds)-1), succeeded.Load())
	}
	wantCount(t, metrics.handshakeErrors, "certificate_rejected", rounds)
	if !panics.Load() {
		t.Error("nothing panicked")
	}
	poll.True(t, patience, "nothing is left", func() bool { return testutil.ToFloat64(metrics.connections) == 0 })
}
