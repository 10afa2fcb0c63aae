// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// The receiver of the guide carries out a split and its removal.
func TestTheReceiverOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/webhook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "```python\n")
	program, _, ends := strings.Cut(rest, "```")
	if !begins || !ends {
		t.Fatal("the guide has no receiver")
	}
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	command := child.Bind(exec.CommandContext(t.Context(), "python3", "-c", program, port))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	url := "http://127.0.0.1:" + port
	poll.Until(t, 20*time.Second, "the receiver listens", func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	router := at(t, url, autumn)
	for sequence := range uint64(2) {
		if err := router.Apply(t.Context(), routertest.Split(sequence+1, 1_000)); err != nil {
			t.Fatal(err)
		}
		if seen, err := router.Observe(t.Context()); err != nil || seen.Knowledge != traffic.Accepted || seen.Sequence != sequence+1 {
			t.Errorf("sequence %s: observed is %+v, %v", strconv.FormatUint(sequence+1, 10), seen, err)
		}
	}
	if err := router.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}
