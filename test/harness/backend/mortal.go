// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds the wait for the last connection of one that ends.
const patience = time.Minute

// Mortal is an upstream that ends and comes back at its address. It speaks HTTP/1.1 and HTTP/2.
type Mortal struct {
	// Address is host:port.
	Address string

	tb          testing.TB
	answer      http.HandlerFunc
	listener    net.Listener
	leaves      atomic.Bool
	connections atomic.Int64
}

// NewMortal starts one that lives until it ends, or the test does.
func NewMortal(tb testing.TB, answer http.HandlerFunc) *Mortal {
	tb.Helper()
	m := &Mortal{tb: tb, answer: answer, Address: fmt.Sprintf("127.0.0.1:%d", freeport.For(tb))}
	m.Start()
	tb.Cleanup(func() { _ = m.listener.Close() }) // it may be closed already
	return m
}

// Start it again at its address.
func (m *Mortal) Start() {
	m.tb.Helper()
	m.leaves.Store(false)
	s := &http.Server{ReadHeaderTimeout: patience, Protocols: &http.Protocols{}, Handler: http.HandlerFunc(m.serve), ConnState: m.count}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	var err error
	m.listener, err = net.Listen("tcp", m.Address) //nolint:noctx // closed when it ends
	if err != nil {
		m.tb.Fatal(err)
	}
	go func() { _ = s.Serve(m.listener) }() // ends with the listener
	m.tb.Cleanup(func() { _ = s.Close() })  // what is left of it
}

func (m *Mortal) serve(w http.ResponseWriter, r *http.Request) {
	if m.leaves.Load() {
		w.Header().Set("Connection", "close")
	}
	m.answer(w, r)
}

func (m *Mortal) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		m.connections.Add(1)
	case http.StateClosed, http.StateHijacked:
		m.connections.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// End as a pod does that ends well: it takes no connection from now on, and each that is open
// ends with its next answer. It returns when there is none.
func (m *Mortal) End() {
	m.tb.Helper()
	m.leaves.Store(true)
	if err := m.listener.Close(); err != nil {
		m.tb.Fatal(err)
	}
	poll.Until(m.tb, patience, m.Address+" has no connection", func() error {
		if n := m.connections.Load(); n > 0 {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
}
