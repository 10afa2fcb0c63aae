// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestProxiesAreShownBesideHealth(t *testing.T) {
	at := freeport.Address(t)
	t.Setenv("POD_NAME", "xds-0")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--kubeconfig=" + unreachable(t), "--address=127.0.0.1:0", "--metrics-address=", "--health-address=" + at}, io.Discard, io.Discard)
	}()
	for path, want := range map[string]string{"/proxies": `{"replica":"xds-0","proxies":[]}`, "/proxies.html": "xds-0", "/healthz": "ok"} {
		poll.Until(t, time.Minute, path+" answers", func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }() // it was read
			body, err := io.ReadAll(response.Body)
			if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(body), want)) {
				err = fmt.Errorf("%s: %s", response.Status, body)
			}
			return err
		})
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
