// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// The ports to choose from are below those that the kernel gives to outgoing
// connections (ip_local_port_range, 32768 and up): one of those, taken meanwhile
// by any connection, is refused to a listener.
const lowest, end, attempts = 20_000, 30_000, 1_000

// claims are the marks of the ports that this process was given. They are kept,
// so that the kernel keeps them until the process ends, however it ends.
var claims struct {
	sync.Mutex
	marks []net.Listener
}

// Claim finds a TCP port that nobody listens on, on any address, and nobody else
// has claimed.
func Claim() (int, error) {
	var err error
	for range attempts {
		port := lowest + rand.IntN(end-lowest) //nolint:gosec // not a secret
		if err = claim(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("looking for a free port: %w", err)
}

// claim marks a port by a socket in the abstract namespace (unix(7)), which is
// one per network namespace, as ports are, and leaves nothing behind.
func claim(port int) error {
	mark, err := net.Listen("unix", "@plumbline-test-port-"+strconv.Itoa(port)) //nolint:noctx // at once
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:gosec,noctx // as a server would, on all addresses
	if err != nil {
		_ = mark.Close() // somebody who does not ask here has the port
		return err
	}
	_ = l.Close() // only its number was wanted
	claims.Lock()
	defer claims.Unlock()
	claims.marks = append(claims.marks, mark)
	return nil
}

// For is [Claim] for a test, which fails without a port.
func For(t testing.TB) int {
	t.Helper()
	port, err := Claim()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Address is host:port of a port on loopback, see [For].
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(For(t)))
}
