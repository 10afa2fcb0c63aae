// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// Namespace is a network of its own. It lives until the test ends.
type Namespace struct{ file *os.File }

// New makes a network without any connection to others, whose loopback is down.
func New(tb testing.TB) *Namespace {
	tb.Helper()
	n := &Namespace{}
	err := onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace, which needs root: %w", os.NewSyscallError("unshare", err))
		}
		var err error
		n.file, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = n.file.Close() })
	return n
}

// onThread runs something on a thread of its own, and then gives the thread back what belongs
// to a thread: its network and its effective user. A thread that cannot have them back ends.
func onThread(what func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return
		}
		err = what()
		returned := errors.Join(setEffectiveUser(os.Getuid()), enter(home), home.Close())
		if returned == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, returned)
	}()
	return <-done
}

// enter has the thread enter a network.
func enter(network *os.File) error {
	return os.NewSyscallError("setns", unix.Setns(int(network.Fd()), unix.CLONE_NEWNET))
}

// setEffectiveUser of this thread alone: the package syscall would set that of all threads. The
// files that the thread opens belong to that user, and so do its sockets.
func setEffectiveUser(uid int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
		return os.NewSyscallError("setresuid", errno)
	}
	return nil
}

// As runs something in the namespace, on behalf of a user. Sockets that it opens, and
// processes that it starts, stay there.
func (n *Namespace) As(uid int, what func() error) error {
	return onThread(func() error {
		if err := errors.Join(enter(n.file), setEffectiveUser(uid)); err != nil {
			return err
		}
		return what()
	})
}

// Do runs something in the namespace, on behalf of root.
func (n *Namespace) Do(what func() error) error { return n.As(0, what) }

// Listen on an address of the namespace until the test ends.
func (n *Namespace) Listen(tb testing.TB, address string) (l net.Listener) {
	tb.Helper()
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}

// Dial connects from the namespace.
func (n *Namespace) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// Command is a program and its arguments that run in the namespace.
func (n *Namespace) Command(name string, args ...string) []string {
	return append([]string{"nsenter", "--net=" + n.path(), name}, args...)
}

// path names the namespace by a file descriptor of this process, which others can read.
func (n *Namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// IP runs commands of ip(8).
func (n *Namespace) IP(tb testing.TB, commands ...string) {
	tb.Helper()
	for _, command := range commands {
		err := n.Do(func() error {
			out, err := child.Bind(exec.Command("ip", strings.Fields(command)...)).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", command, err, out)
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Join connects two namespaces by a pair of interfaces, both of which have the same name.
func (n *Namespace) Join(tb testing.TB, other *Namespace, name string) {
	tb.Helper()
	n.IP(tb, fmt.Sprintf("link add %s type veth peer name %s netns %s", name, name, other.path()))
}

// Lose has the network lose each packet that the namespace sends over an interface to an address:
// no interface has the hardware address that the packets go to. [Namespace.Find] ends it.
func (n *Namespace) Lose(tb testing.TB, name, address string) {
	tb.Helper()
	n.IP(tb, fmt.Sprintf("neigh replace %s lladdr 02:00:00:00:00:ff dev %s nud permanent", address, name))
}

// Find the address again.
func (n *Namespace) Find(tb testing.TB, name, address string) {
	tb.Helper()
	n.IP(tb, fmt.Sprintf("neigh del %s dev %s", address, name))
}
