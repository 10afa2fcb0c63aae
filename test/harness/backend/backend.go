// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Start one that answers with its name, until the test ends. The result is host:port.
func Start(tb testing.TB, name string) string {
	tb.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(Own(tb), "0")) //nolint:noctx // as a server would
	if err != nil {
		tb.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	s.Listener = l
	s.Start()
	tb.Cleanup(s.Close)
	return l.Addr().String()
}

// Own is an IPv4 address of this machine.
func Own(tb testing.TB) string {
	tb.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	tb.Fatal("this machine has no IPv4 address but loopback")
	return ""
}

// Get says what an address answers: "code body", or the error.
func Get(tb testing.TB, address string) string {
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(response.StatusCode) + " " + string(body)
}

// Answers waits until an address answers so, as Get says it.
func Answers(tb testing.TB, patience time.Duration, address, want string) {
	tb.Helper()
	poll.Until(tb, patience, address+" answers "+want, func() error {
		if got := Get(tb, address); got != want {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
}
