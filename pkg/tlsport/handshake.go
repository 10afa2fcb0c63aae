// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// helloSize is what a message of the caller usually needs at most, so that it takes one turn;
// crypto/tls alone would read in smaller pieces.
const helloSize = 2 << 10

// handshakeState says what a handshake that is under way is doing.
type handshakeState int

const (
	handshakePeer      handshakeState = iota // the caller's next message is awaited
	handshakeWaiting                         // its turn is awaited
	handshakeComputing                       // it has a processor
)

// handshake bounds the computation of one handshake. What is received is given
// to crypto/tls in a turn, and the turn is given back before more is received
// or anything is sent. So whatever is computed is computed in a turn, and no
// turn is held while the network or the caller is awaited: a slow caller costs
// nobody anything. It belongs to the goroutine that does the handshake.
type handshake struct {
	conn     *gated
	deadline time.Time
	state    handshakeState
	buffer   []byte
}

// begin makes a connection one whose handshake is under way.
func (c *gated) begin(deadline time.Time) {
	c.gate.metrics.handshakes[handshakePeer].Inc()
	c.handshake = &handshake{conn: c, deadline: deadline, buffer: make([]byte, helloSize)}
}

func (h *handshake) become(next handshakeState) {
	gauges := &h.conn.gate.metrics.handshakes
	gauges[h.state].Dec()
	gauges[next].Inc()
	h.state = next
}

// enter takes a turn.
func (h *handshake) enter() error {
	c := h.conn
	h.become(handshakeWaiting)
	if err := c.gate.turns.enter(c.from, min(c.gate.limits.Turn, time.Until(h.deadline)), c.gone); err != nil {
		h.become(handshakePeer)
		return err
	}
	h.become(handshakeComputing)
	return nil
}

// leave gives the turn back, if there is one.
func (h *handshake) leave() {
	if h.state == handshakeComputing {
		h.become(handshakePeer)
		h.conn.gate.turns.leave()
	}
}

// end makes the connection an ordinary one.
func (h *handshake) end() {
	h.leave()
	h.conn.gate.metrics.handshakes[handshakePeer].Dec()
	h.conn.handshake = nil
	if len(h.conn.early) == 0 {
		h.conn.early = nil // and with it the buffer
	}
}

// receive waits for the caller without a turn, and ends with one.
func (h *handshake) receive() ([]byte, error) {
	h.leave()
	n, err := h.conn.Conn.Read(h.buffer)
	if err != nil {
		return nil, err
	}
	return h.buffer[:n], h.enter()
}

// Read implements net.Conn.
func (c *gated) Read(p []byte) (int, error) {
	if len(c.early) == 0 {
		if c.handshake == nil {
			return c.Conn.Read(p)
		}
		var err error
		if c.early, err = c.handshake.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.early)
	c.early = c.early[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *gated) Write(p []byte) (int, error) {
	if c.handshake != nil {
		c.handshake.leave()
	}
	return c.Conn.Write(p)
}

// tlsListener is a listener whose connections have done their handshake. That
// is done here and not by net/http, which would tell neither when it is done
// nor why it failed.
type tlsListener struct {
	gate   *gate
	config *tls.Config
	wrap   func(net.Conn) net.Conn // below TLS

	ready   chan accepted
	closing chan struct{}
	once    sync.Once
	work    sync.WaitGroup
	// running bounds the goroutines. There are more of them than handshakes have
	// places only while some that were closed have not had the processor yet.
	running chan struct{}
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// listenTLS begins to accept. Close ends it.
func listenTLS(g *gate, config *tls.Config, wrap func(net.Conn) net.Conn) *tlsListener {
	l := &tlsListener{
		gate: g, config: config, wrap: wrap,
		ready: make(chan accepted), closing: make(chan struct{}), running: make(chan struct{}, 2*g.limits.UnderWay),
	}
	l.work.Go(l.acceptAll)
	return l
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.closing:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (l *tlsListener) Addr() net.Addr { return l.gate.listener.Addr() }

// Close implements net.Listener. Handshakes that are under way end: net/http
// would not answer a first request that comes after the order to stop.
func (l *tlsListener) Close() (err error) {
	l.once.Do(func() {
		close(l.closing)
		err = l.gate.listener.Close()
		l.gate.close()
		l.work.Wait()
	})
	return err
}

// acceptAll begins a handshake for each connection. Errors go to Accept, whose
// caller knows whether to try again and when.
func (l *tlsListener) acceptAll() {
	for {
		c, err := l.gate.accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !l.hand(accepted{err: err}) {
				return
			}
			continue
		}
		l.running <- struct{}{}
		l.work.Go(func() {
			l.serve(c)
			<-l.running
		})
	}
}

// hand gives something to Accept; false: nobody takes it any more.
func (l *tlsListener) hand(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.closing:
		return false
	}
}

// serve does a connection's handshake and gives the connection to Accept.
func (l *tlsListener) serve(c *gated) {
	conn := tls.Server(l.wrap(c), l.config)
	err := l.handshake(c, conn)
	switch {
	case err != nil:
		l.failed(c, err)
	case !l.gate.establish(c): // It is counted there.
	default:
		l.gate.metrics.handshakesDone.Inc()
		if l.hand(accepted{conn: conn}) {
			return
		}
	}
	_ = c.Close()
}

// handshake never panics: net/http would catch what panics in its handshakes.
func (l *tlsListener) handshake(c *gated, conn *tls.Conn) (err error) {
	deadline := time.Now().Add(l.gate.limits.Handshake)
	c.begin(deadline)
	defer func() {
		if p := recover(); p != nil {
			l.gate.log.Error("tls.handshake.panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
		c.handshake.end()
	}()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	if err := conn.Handshake(); err != nil {
		return err
	}
	if conn.ConnectionState().NegotiatedProtocol == "" && !l.http1() {
		return errNoProtocol
	}
	return c.SetDeadline(time.Time{})
}

// errNoProtocol is said of callers that speak none of the protocols, and of those that do not say.
var errNoProtocol = errors.New("no protocol was agreed on")

// http1 says that HTTP/1.1 is served, which callers need not name, or that any protocol is.
func (l *tlsListener) http1() bool {
	return len(l.config.NextProtos) == 0 || slices.Contains(l.config.NextProtos, "http/1.1")
}

// failed counts a handshake that came to nothing. Anybody can cause any number
// of them, so they are visible only at level debug.
func (l *tlsListener) failed(c *gated, err error) {
	if !l.gate.forget(c) {
		return // It had to make room, and was counted then.
	}
	if errors.Is(err, errNoTurn) {
		l.gate.refused(c, l.gate.metrics.handshakesRefused, "turn")
		return
	}
	l.gate.metrics.handshakeErrors.WithLabelValues(handshakeReason(err.Error())).Inc()
	var record tls.RecordHeaderError
	if l.http1() && errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		_, _ = io.WriteString(record.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
	}
	l.gate.log.Debug("tls.handshake.failed", "from", c.from, "error", err.Error())
}

// looksLikeHTTP recognizes a request without TLS, whose sender is told.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	default:
		return false
	}
}

// handshakeReason tells whether the caller did not trust our certificate, which
// is what an API server does that has another caBundle, from everything else.
// The alerts are those of RFC 8446 §6.2, as crypto/tls words them.
func handshakeReason(text string) string {
	_, alert, ok := strings.Cut(text, "remote error: tls: ")
	if ok && strings.Contains(alert, "certificate") {
		return "certificate_rejected"
	}
	return "other"
}
