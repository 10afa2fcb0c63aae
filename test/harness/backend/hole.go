// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Hole returns an address that swallows packets: whoever connects hears neither yes nor no.
func Hole(tb testing.TB) string {
	tb.Helper()
	address, _ := EndingHole(tb)
	return address
}

// EndingHole is a hole until end is called; from then on connections that still wait are reset.
func EndingHole(tb testing.TB) (address string, end func()) {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(err)
	end = sync.OnceFunc(func() { must(syscall.Close(fd)) })
	tb.Cleanup(end)
	must(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	must(err)
	at, is := name.(*syscall.SockaddrInet4)
	if !is {
		tb.Fatalf("the address is a %T", name)
	}
	address = fmt.Sprintf("127.0.0.1:%d", at.Port)
	for { // until the kernel keeps no more connections for a listener that takes none
		c, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			return address, end
		}
		tb.Cleanup(func() { _ = c.Close() }) // nothing is said on it
	}
}
