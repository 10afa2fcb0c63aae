// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

func TestAPortOutsideOfTheRangeIsRefused(t *testing.T) {
	for _, port := range []string{"-1", "65536"} {
		got := clitest.RunOffline(t, verbs, "", "console", "--port", port)
		if got.Code != 1 || !strings.Contains(got.Stderr, "--port must be 0 to 65535, not "+port) {
			t.Errorf("%s: %+v", port, got)
		}
	}
}

func TestTheConsoleAnswersAsTheUser(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	inv, _ := clitest.NewInvocation(t, "")
	c := clitest.Cluster{}.Connect(t)
	inv.Connect = func() (*invocation.Cluster, error) { return c, nil }
	out, printed := io.Pipe()
	inv.Out = printed
	ended := make(chan error, 1)
	go func() {
		err := (&app{inv}).console(ctx, options{noBrowser: true})
		printed.CloseWithError(io.EOF)
		ended <- err
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, found := strings.CutPrefix(strings.TrimSpace(line), "Serving on http://127.0.0.1:")
	if !found {
		t.Fatalf("it printed %q", line)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	base, query, _ := strings.Cut(address, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+base+"/api/v1/whoami"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := browser.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got wire.Whoami
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wire.Whoami{User: "alice", Groups: []string{"sre", "system:authenticated"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
