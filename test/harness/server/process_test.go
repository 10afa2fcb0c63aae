// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net"
	"os"
	"testing"
)

// A server that is started on a port which an outgoing connection has taken
// meanwhile ends with "bind: address already in use".
func TestAFreePortIsNeverOneThatAnOutgoingConnectionMayTake(t *testing.T) {
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var first, last int
	if _, err := fmt.Sscan(string(raw), &first, &last); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	for range 100 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if port >= first && port <= last {
			t.Fatalf("%d is one of %d to %d", port, first, last)
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
