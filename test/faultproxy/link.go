// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pieceSize bounds one piece of data, and pieces how many are on their way in
	// one direction. More is not read, so that the sender feels it.
	pieceSize = 32 << 10
	pieces    = 64
)

// link is one connection: a client's side and a server's.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	// silent is closed when nothing is carried any more, ended when both sides
	// have been reset.
	silent, ended chan struct{}
	once          sync.Once
	silence       sync.Once
	lost          atomic.Bool // an answer, or part of one
}

// piece is data, or the end of it, and when it may arrive.
type piece struct {
	data []byte
	due  time.Time
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, silent: make(chan struct{}), ended: make(chan struct{})}
}

// reset ends both sides.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.ended)
		reset(l.client)
		reset(l.server)
	})
}

func (l *link) abandon() { l.silence.Do(func() { close(l.silent) }) }

func (l *link) halfOpen() {
	l.abandon()
	_ = l.server.Close() // it is thrown away
}

// run carries data both ways until both ends came or somebody reset the link.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { l.direction(l.client, l.server, false) })
	both.Go(func() { l.direction(l.server, l.client, true) })
	both.Wait()
	l.reset()
}

// direction carries data one way.
func (l *link) direction(from, to net.Conn, answers bool) {
	way := make(chan piece, pieces)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(from, way) })
	whole := l.write(to, way, answers)
	if !whole {
		l.end()
	}
	reader.Wait()
}

// end is what becomes of a link that failed: silent ones stay as they are until
// somebody resets them.
func (l *link) end() {
	select {
	case <-l.silent:
		<-l.ended
	default:
		l.reset()
	}
}

// read puts what a side sends on its way; the last piece is empty.
func (l *link) read(from net.Conn, way chan<- piece) {
	defer close(way)
	for {
		data := make([]byte, pieceSize)
		n, err := from.Read(data)
		fault, _ := l.proxy.current()
		due := time.Now().Add(fault.Delay)
		if n > 0 && !l.put(way, piece{data[:n], due}) {
			return
		}
		if err != nil {
			l.put(way, piece{nil, due})
			return
		}
	}
}

func (l *link) put(way chan<- piece, p piece) bool {
	select {
	case way <- p:
		return true
	case <-l.ended:
		return false
	}
}

// write delivers what is due. It tells whether the end was delivered too.
func (l *link) write(to net.Conn, way <-chan piece, answers bool) bool {
	for p := range way {
		if !l.wait(p.due) {
			return false
		}
		fault, open := l.passes()
		if !open {
			return false
		}
		if len(p.data) == 0 {
			return closeWrite(to) == nil
		}
		switch {
		case answers && fault.CutAtAnswer:
			return false
		case answers && fault.LoseAnswers:
			l.lost.Store(true)
			if now, _ := l.proxy.current(); !now.LoseAnswers {
				return false // it was healed in between, and this link not seen
			}
			continue
		}
		if _, err := to.Write(p.data); err != nil {
			return false
		}
	}
	return false
}

// wait waits until a piece is due; false when nothing is carried any more.
func (l *link) wait(due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.silent:
		return false
	case <-l.ended:
		return false
	}
}

// passes waits while data is held up; open is false when nothing is carried any
// more.
func (l *link) passes() (fault Fault, open bool) {
	for {
		fault, changed := l.proxy.current()
		if !fault.Hold {
			changed = nil
		}
		select {
		case <-l.silent:
			return fault, false
		case <-l.ended:
			return fault, false
		default:
		}
		if changed == nil {
			return fault, true
		}
		select {
		case <-changed:
		case <-l.silent:
		case <-l.ended:
		}
	}
}

func closeWrite(c net.Conn) error {
	type writeCloser interface{ CloseWrite() error }
	if w, ok := c.(writeCloser); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
