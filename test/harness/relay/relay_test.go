// SPDX-License-Identifier: Apache-2.0

package relay_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
)

// limit bounds each read.
const limit = 20 * time.Second

// greeter says its name to each connection, and keeps the connection.
func greeter(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // ends the loop
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name) // the test reads it
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return l.Addr().String()
}

// hear connects to the relay, and reads a name of three letters, or the end of the connection.
func hear(t *testing.T, r *relay.Relay) (c net.Conn, heard string) {
	t.Helper()
	c, err := net.DialTimeout("tcp", r.Address, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only read until here
	return c, read(t, c)
}

func read(t *testing.T, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	var name [3]byte
	switch _, err := io.ReadFull(c, name[:]); {
	case errors.Is(err, io.EOF):
		return ""
	case err != nil:
		t.Fatal(err)
	}
	return string(name[:])
}

func TestAConnectionGoesToTheFirstTargetThatTakesIt(t *testing.T) {
	one, two, dead := greeter(t, "one"), greeter(t, "two"), freeport.Address(t)
	tests := map[string]struct {
		targets []string
		want    string
	}{
		"the first of two":                       {[]string{one, two}, "one"},
		"the second if the first takes none":     {[]string{dead, two}, "two"},
		"the connection ends without any target": {nil, ""},
		"and if no target takes it":              {[]string{dead}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, heard := hear(t, relay.Start(t, tc.targets...))
			if diff := cmp.Diff(tc.want, heard); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConnectionThatIsOpenStaysUntilItIsCut(t *testing.T) {
	r := relay.Start(t, greeter(t, "one"))
	c, heard := hear(t, r)
	if heard != "one" {
		t.Fatalf("it says %q", heard)
	}
	r.Lead(greeter(t, "two"))
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the connection does not stay open: %v", err)
	}
	if _, heard := hear(t, r); heard != "two" {
		t.Errorf("another connection says %q", heard)
	}
	r.Cut()
	if heard := read(t, c); heard != "" {
		t.Errorf("after the cut it says %q", heard)
	}
	if _, heard := hear(t, r); heard != "two" {
		t.Errorf("a connection after the cut says %q", heard)
	}
}
