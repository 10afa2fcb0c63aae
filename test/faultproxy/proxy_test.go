// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// moment is how long a test watches that nothing comes; patience bounds waits
// for what has to come.
const (
	moment   = 100 * time.Millisecond
	patience = 20 * time.Second
)

// echo answers every line with the same line, and remembers what it was asked.
type echo struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	asked []string
	open  int
}

func startEcho(t *testing.T, network, address string) *echo {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: l}
	e.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.wg.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it is a test's
		e.wg.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	e.count(1)
	defer e.count(-1)
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		e.mu.Lock()
		e.asked = append(e.asked, strings.TrimSpace(line))
		e.mu.Unlock()
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
	}
}

func (e *echo) count(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open += n
}

func (e *echo) state() (asked string, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.asked, " "), e.open
}

// client is one connection through the proxy.
type client struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func startProxy(t *testing.T) (*Proxy, *echo) {
	t.Helper()
	e := startEcho(t, "tcp", "127.0.0.1:0")
	return proxyTo(t, "tcp", e.listener.Addr().String()), e
}

func proxyTo(t *testing.T, network, address string) *Proxy {
	t.Helper()
	p, err := Start(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it is a test's
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) ask(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) answer(within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *client) mustAnswer(want string) {
	c.t.Helper()
	if got, err := c.answer(patience); got != want || err != nil {
		c.t.Fatalf("the answer is %q (%v), want %q", got, err, want)
	}
}

func (c *client) mustBeSilent() {
	c.t.Helper()
	if got, err := c.answer(moment); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q and %v, want nothing", got, err)
	}
}

func (c *client) mustBeCut() {
	c.t.Helper()
	if got, err := c.answer(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q and %v, want the end of the connection", got, err)
	}
}

// mustBeRefused wants a reset, which may come before or after connect is done.
func mustBeRefused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if errors.Is(err, syscall.ECONNRESET) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	(&client{t, c, bufio.NewReader(c)}).mustBeCut()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	poll.True(t, patience, what, condition)
}

func TestWithoutAFaultEverythingPassesAndAnEndIsPassedOn(t *testing.T) {
	p, e := startProxy(t)
	c := dial(t, p)
	big := strings.Repeat("x", 5*pieceSize)
	for _, line := range []string{"a", "b", big} {
		c.ask(line)
		c.mustAnswer(line)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.answer(patience); !errors.Is(err, io.EOF) {
		t.Errorf("the end came as %v", err)
	}
	eventually(t, "nothing is open", func() bool { _, open := e.state(); return open == 0 && p.Open() == 0 })
	if p.Total() != 1 {
		t.Errorf("%d connections, want 1", p.Total())
	}
}

// CloseWrite ends what the client sends.
func (c *client) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func TestAServerOnASocketIsReachedByTCP(t *testing.T) {
	dir, err := os.MkdirTemp("", "fp") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // under the system's temporary directory
	socket := filepath.Join(dir, "s")
	startEcho(t, "unix", socket)
	c := dial(t, proxyTo(t, "unix", socket))
	c.ask("a")
	c.mustAnswer("a")
}

func TestARedirectHoldsForNewConnectionsAlone(t *testing.T) {
	p, first := startProxy(t)
	old := dial(t, p)
	old.ask("a")
	old.mustAnswer("a")
	second := startEcho(t, "tcp", "127.0.0.1:0")
	p.Redirect("tcp", second.listener.Addr().String())
	for _, c := range []*client{old, dial(t, p)} {
		c.ask("b")
		c.mustAnswer("b")
	}
	a, _ := first.state()
	b, _ := second.state()
	if a != "a b" || b != "b" {
		t.Errorf("the servers were asked %q and %q", a, b)
	}
}

func TestAnAbsentServerShowsAsTheEndOfTheConnection(t *testing.T) {
	mustBeRefused(t, proxyTo(t, "unix", filepath.Join(t.TempDir(), "nobody")))
}

func TestFaults(t *testing.T) {
	tests := map[string]func(*testing.T, *Proxy, *echo, *client){
		"refused: new connections end, open ones go on": func(t *testing.T, p *Proxy, _ *echo, c *client) {
			p.Set(Fault{Refuse: true})
			mustBeRefused(t, p)
			c.ask("b")
			c.mustAnswer("b")
			p.Set(Fault{})
			next := dial(t, p)
			next.ask("c")
			next.mustAnswer("c")
		},
		"delayed: every piece takes as long, both ways, in order": func(t *testing.T, p *Proxy, _ *echo, c *client) {
			const delay = 50 * time.Millisecond
			p.Set(Fault{Delay: delay})
			began := time.Now()
			for _, line := range []string{"b", "c", "d"} {
				c.ask(line)
			}
			for _, line := range []string{"b", "c", "d"} {
				c.mustAnswer(line)
			}
			if took := time.Since(began); took < 2*delay {
				t.Errorf("there and back took %v", took)
			}
		},
		"held: nothing passes, and nothing is lost": func(t *testing.T, p *Proxy, e *echo, c *client) {
			p.Set(Fault{Hold: true})
			c.ask("b")
			c.mustBeSilent()
			next := dial(t, p)
			next.ask("c")
			next.mustBeSilent()
			if asked, _ := e.state(); asked != "a" {
				t.Errorf("the server was asked %q meanwhile", asked)
			}
			p.Set(Fault{})
			c.mustAnswer("b")
			next.mustAnswer("c")
		},
		"answers lost: the server does what it is asked, and the connection ends when the way heals": func(t *testing.T, p *Proxy, e *echo, c *client) {
			p.Set(Fault{LoseAnswers: true})
			c.ask("b")
			c.mustBeSilent()
			eventually(t, "the server was asked", func() bool { asked, _ := e.state(); return asked == "a b" })
			p.Set(Fault{})
			c.mustBeCut()
		},
		"cut at the answer: the server did it, nobody knows": func(t *testing.T, p *Proxy, e *echo, c *client) {
			p.Set(Fault{CutAtAnswer: true})
			c.ask("b")
			c.mustBeCut()
			if asked, _ := e.state(); asked != "a b" {
				t.Errorf("the server was asked %q", asked)
			}
		},
		"cut: both sides learn of it": func(t *testing.T, p *Proxy, e *echo, c *client) {
			if n := p.Cut(); n != 1 {
				t.Errorf("%d were cut", n)
			}
			c.mustBeCut()
			eventually(t, "the server's side ended", func() bool { _, open := e.state(); return open == 0 })
		},
		"half-open: the server is gone and the client not told": func(t *testing.T, p *Proxy, e *echo, c *client) {
			if n := p.HalfOpen(); n != 1 {
				t.Errorf("%d are half-open", n)
			}
			eventually(t, "the server's side ended", func() bool { _, open := e.state(); return open == 0 })
			c.ask("b")
			c.mustBeSilent()
		},
		"abandoned: both sides believe it is open, new connections work": func(t *testing.T, p *Proxy, e *echo, c *client) {
			if n := p.Abandon(); n != 1 {
				t.Errorf("%d were abandoned", n)
			}
			c.ask("b")
			c.mustBeSilent()
			p.Set(Fault{})
			c.mustBeSilent()
			next := dial(t, p)
			next.ask("c")
			next.mustAnswer("c")
			if asked, open := e.state(); asked != "a c" || open != 2 {
				t.Errorf("the server was asked %q and has %d open", asked, open)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, e := startProxy(t)
			c := dial(t, p)
			c.ask("a")
			c.mustAnswer("a")
			test(t, p, e, c)
		})
	}
}

func TestASenderFeelsThatNothingIsTaken(t *testing.T) {
	p, _ := startProxy(t)
	p.Set(Fault{Hold: true})
	c := dial(t, p)
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	sent, err := c.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%d bytes were taken, and then %v", sent, err)
	}
	p.Cut()
}
