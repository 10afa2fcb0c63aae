// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/cli"
)

// Console has the cookie of a console that runs.
type Console struct {
	*http.Client
	// Base is the address without the key.
	Base    string
	address string
}

// Open runs the console until the test ends, and opens its address. The flags name the cluster and the user.
func Open(t testing.TB, flags ...string) *Console {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	out, printed := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args := slices.Concat(flags, []string{"console", "--no-browser"})
		code := cli.Run(ctx, args, cli.Environment{In: strings.NewReader(""), Out: printed, Err: io.Discard, Now: time.Now, Version: "test"})
		printed.CloseWithError(fmt.Errorf("the console ended with %d", code))
		ended <- code
	}()
	t.Cleanup(func() {
		end()
		if code := <-ended; code != 0 {
			t.Errorf("the console of %q ended with %d", flags, code)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(strings.TrimSpace(line), "Serving on ")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(address, "/?")
	c := &Console{&http.Client{Jar: jar}, base, address}
	t.Cleanup(c.CloseIdleConnections)
	if code, _, body := c.Send(t, strings.TrimPrefix(c.WithKey(t, "/whoami"), c.Base)); code != http.StatusOK {
		t.Fatalf("the address of the console of %q: %d %s", flags, code, body)
	}
	return c
}

// Send sends a GET.
func (c *Console) Send(t testing.TB, path string) (code int, header http.Header, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, body
}

// Want demands a status, and reads the answer into a value.
func (c *Console) Want(t testing.TB, path string, status int, into any) {
	t.Helper()
	code, _, body := c.Send(t, path)
	if code != status {
		t.Fatalf("%s: %d %s, want %d", path, code, body, status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatal(err)
	}
}

// Shows demands a page with a status that has some words.
func (c *Console) Shows(t testing.TB, path string, status int, words ...string) {
	t.Helper()
	code, _, body := c.Send(t, path)
	for _, word := range words {
		if code != status || !strings.Contains(string(body), word) {
			t.Errorf("%s: %d, want %d and %q in %s", path, code, status, word, body)
		}
	}
}

// WithKey is the address of a path for a browser without the cookie.
func (c *Console) WithKey(t testing.TB, path string) string {
	t.Helper()
	address, err := url.Parse(c.address)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(c.Base + path)
	if err != nil {
		t.Fatal(err)
	}
	query := to.Query()
	query.Set("key", address.Query().Get("key"))
	to.RawQuery = query.Encode()
	return to.String()
}
