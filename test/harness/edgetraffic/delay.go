// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"io"
	"net"
	"testing"
	"time"
)

// StartDelay carries connections to an address, each direction with a delay, and returns its own address. On
// a path without a delay no request is on its way when a proxy closes its connection.
func StartDelay(tb testing.TB, to string, delay time.Duration) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() }) // all was carried
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return // it is closed
			}
			there, err := net.Dial("tcp", to) //nolint:noctx // on this machine
			if err != nil {
				_ = from.Close() // the client sees it
				continue
			}
			go carryDelayed(there, from, delay)
			go carryDelayed(from, there, delay)
		}
	}()
	return l.Addr().String()
}

// chunk has the bytes of one read, and the time of their arrival.
type chunk struct {
	at    time.Time
	bytes []byte
}

// carryDelayed carries one direction.
func carryDelayed(to, from net.Conn, delay time.Duration) {
	chunks := make(chan chunk, 1_000)
	go readChunks(from, delay, chunks)
	for c := range chunks {
		<-time.After(time.Until(c.at))
		if _, err := to.Write(c.bytes); err != nil {
			break
		}
	}
	<-time.After(delay) // the end of a connection is on its way as long as a byte
	_ = to.Close()      // the other direction ends with it
	_, _ = io.Copy(io.Discard, from)
}

func readChunks(from net.Conn, delay time.Duration, chunks chan<- chunk) {
	defer close(chunks)
	for {
		const most = 4096
		b := make([]byte, most)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{time.Now().Add(delay), b[:n]}
		}
		if err != nil {
			return
		}
	}
}
