// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/netns"
)

const limit = 20 * time.Second

// namespace is a network of its own.
type namespace struct{ *netns.Namespace }

func newNamespace(t testing.TB) namespace {
	t.Helper()
	return namespace{netns.New(t)}
}

// answer gives each connection to a listener one line, and then its bytes back.
func (n namespace) answer(t testing.TB, uid int, at string, line func(*net.TCPConn) string) {
	t.Helper()
	var listener net.Listener
	err := n.As(uid, func() (err error) {
		listener, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				tcp := conn.(*net.TCPConn)
				if _, err := fmt.Fprintln(tcp, line(tcp)); err == nil {
					_, _ = tcp.ReadFrom(tcp)
				}
			}()
		}
	}()
}

// echo sends each datagram back with a word before it.
func (n namespace) echo(t testing.TB, at, word string) {
	t.Helper()
	var socket net.PacketConn
	err := n.Do(func() (err error) {
		socket, err = net.ListenPacket("udp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			size, from, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo([]byte(word+string(buffer[:size])+"\n"), from)
		}
	}()
}

// connection is one whose other end has said who it is.
type connection struct {
	net.Conn
	lines *bufio.Reader
}

// dial connects as a user, and has the first line of who answers.
func (n namespace) dial(uid int, network, to string) (*connection, string, error) {
	c := &connection{}
	err := n.As(uid, func() (err error) {
		c.Conn, err = net.DialTimeout(network, to, limit)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	c.lines = bufio.NewReader(c)
	if network == "udp" {
		// Where a TCP header has the flags, this has a letter that reads as SYN.
		_, err = c.Write([]byte(" climb"))
	}
	line, readErr := c.line()
	return c, line, errors.Join(err, readErr)
}

func (c *connection) line() (string, error) {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// reach tells who answers a user at an address.
func (n namespace) reach(uid int, network, to string) string {
	c, line, err := n.dial(uid, network, to)
	if c != nil {
		defer func() { _ = c.Close() }()
	}
	if err != nil {
		return err.Error()
	}
	return line
}

// originalDestination asks the kernel as Envoy does, by the constants of
// linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h.
func originalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	level, address := unix.SOL_IP, make([]byte, unix.SizeofSockaddrInet4)
	if netip.MustParseAddrPort(conn.LocalAddr().String()).Addr().Is6() {
		level, address = unix.SOL_IPV6, make([]byte, unix.SizeofSockaddrInet6)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	size, errno := uint32(len(address)), syscall.Errno(0)
	err = raw.Control(func(fd uintptr) {
		const originalDst = 80
		_, _, errno = syscall.Syscall6(unix.SYS_GETSOCKOPT, fd, uintptr(level), originalDst,
			uintptr(unsafe.Pointer(&address[0])), uintptr(unsafe.Pointer(&size)), 0)
	})
	if err != nil || errno != 0 {
		return netip.AddrPort{}, errors.Join(err, os.NewSyscallError("getsockopt", errno))
	}
	port := uint16(address[2])<<8 | uint16(address[3])
	ip := address[4:8]
	if level == unix.SOL_IPV6 {
		ip = address[8:24]
	}
	addr, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(addr, port), nil
}

// world has a pod, and what is outside of it.
type world struct{ pod, outside namespace }

// newWorld has listeners everywhere that connections of the tests go to; each says
// where it is and where it was reached. That in the proxy's place says where the
// connection was going.
func newWorld(t testing.TB) world {
	t.Helper()
	w := newWorldWithoutProxy(t)
	for _, at := range []string{"127.0.0.1", "::1"} {
		w.pod.answer(t, proxyUID, net.JoinHostPort(at, fmt.Sprint(inject.CapturePort)), func(c *net.TCPConn) string {
			to, err := originalDestination(c)
			if err != nil {
				return err.Error()
			}
			return "captured " + to.String()
		})
	}
	return w
}

func newWorldWithoutProxy(t testing.TB) world {
	t.Helper()
	w := world{pod: newNamespace(t), outside: newNamespace(t)}
	w.pod.IP(t, "link set lo up")
	w.outside.IP(t, "link set lo up",
		"addr add 198.51.100.1/32 dev lo", "addr add 203.0.113.1/32 dev lo",
		"addr add 2001:db8:2::1/128 dev lo nodad", "addr add 2001:db8:3::1/128 dev lo nodad")
	w.link(t)
	for _, port := range []string{"80", "5432"} {
		w.outside.answer(t, 0, ":"+port, func(c *net.TCPConn) string { return "outside " + c.LocalAddr().String() })
	}
	for _, at := range []string{"198.51.100.1:80", "[2001:db8:2::1]:80"} {
		w.outside.echo(t, at, "outside")
	}
	w.pod.answer(t, 0, ":8080", func(c *net.TCPConn) string { return "pod " + c.LocalAddr().String() })
	w.pod.echo(t, "127.0.0.1:8080", "pod")
	return w
}

// link connects the two by a pair of interfaces, as a plugin of the network does.
func (w world) link(t testing.TB) {
	t.Helper()
	w.pod.Join(t, w.outside.Namespace, "eth0")
	w.pod.IP(t, "addr add 192.0.2.2/24 dev eth0", "addr add 2001:db8:1::2/64 dev eth0 nodad",
		"link set eth0 addrgenmode none", "link set eth0 up", "addr add fe80::2/64 dev eth0 nodad")
	w.outside.IP(t,
		"addr add 192.0.2.1/24 dev eth0", "addr add 2001:db8:1::1/64 dev eth0 nodad",
		"link set eth0 addrgenmode none", "link set eth0 up", "addr add fe80::1/64 dev eth0 nodad")
	w.pod.IP(t, "route add default via 192.0.2.1", "-6 route add default via 2001:db8:1::1")
}
