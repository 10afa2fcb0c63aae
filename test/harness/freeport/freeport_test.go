// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// asChild makes this test's binary claim ports, tell them, and wait.
const asChild = "PLUMBLINE_FREEPORT_CHILD"

const many = 500

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	for range many {
		port, err := Claim()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(port)
	}
	fmt.Println("done")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it
}

// A server that is started on a port which an outgoing connection has taken
// meanwhile ends with "bind: address already in use".
func TestAPortIsNeverOneThatAnOutgoingConnectionMayTake(t *testing.T) {
	const file = "/proc/sys/net/ipv4/ip_local_port_range"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var first, last int
	if _, err := fmt.Sscan(string(raw), &first, &last); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	if lowest <= last && first < end {
		t.Fatalf("ports are chosen from %d to %d, and outgoing connections take %d to %d", lowest, end-1, first, last)
	}
	l, err := net.Listen("tcp", Address(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Two servers that were told the same port before either listened: the second
// ends with "bind: address already in use".
func TestNoPortIsGivenTwiceAlsoNotToAnotherProcess(t *testing.T) {
	offspring := child.Bind(exec.CommandContext(t.Context(), os.Args[0]))
	offspring.Env = append(os.Environ(), asChild+"=1")
	offspring.Stderr = os.Stderr
	input, err := offspring.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := offspring.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := offspring.Start(); err != nil {
		t.Fatal(err)
	}
	given := map[int]string{}
	give := func(port int, to string) {
		if before, ok := given[port]; ok {
			t.Errorf("%d was given to %s, and to %s before", port, to, before)
		}
		given[port] = to
	}
	for lines := bufio.NewScanner(output); lines.Scan() && lines.Text() != "done"; {
		port, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		give(port, "the child")
	}
	if len(given) != many {
		t.Fatalf("the child was given %d ports, not %d", len(given), many)
	}
	theirs := 0
	for port := range given {
		theirs = port
	}
	for range many {
		give(For(t), "this process")
	}
	if err := claim(theirs); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("claiming %d, which is the child's: %v", theirs, err)
	}
	if err := errors.Join(input.Close(), offspring.Wait()); err != nil {
		t.Fatal(err)
	}
	if err := claim(theirs); err != nil {
		t.Errorf("claiming %d of the child, which has ended: %v", theirs, err)
	}
}

func TestAPortOfSomebodyWhoDoesNotAskIsNotGiven(t *testing.T) {
	port := For(t)
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // only the port is wanted
	release(port)
	for range 2 { // a claim that failed leaves no mark
		var refused *net.OpError
		if err := claim(port); !errors.As(err, &refused) || refused.Net != "tcp" || !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatalf("claiming %d, which somebody listens on: %v", port, err)
		}
	}
}

// release gives a port back, as the end of this process would.
func release(port int) {
	claims.Lock()
	defer claims.Unlock()
	for _, mark := range claims.marks {
		if mark.Addr().String() == "@plumbline-test-port-"+strconv.Itoa(port) {
			_ = mark.Close() // nothing to lose
		}
	}
}
