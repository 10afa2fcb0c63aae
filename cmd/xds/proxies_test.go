// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// M13 of the review of the mesh: each pod of the cluster could read them at the port of the
// health checks.
func TestProxiesAreShownAtALoopbackAddressAndNotBesideHealth(t *testing.T) {
	health, admin := freeport.Address(t), freeport.Address(t)
	t.Setenv("POD_NAME", "xds-0")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--kubeconfig=" + unreachable(t), "--address=127.0.0.1:0", "--metrics-address=", "--health-address=" + health, "--admin-address=" + admin}, io.Discard, io.Discard)
	}()
	for at, want := range map[string]struct {
		code int
		text string
	}{
		admin + "/proxies":      {http.StatusOK, `{"replica":"xds-0","proxies":[]}`},
		admin + "/proxies.html": {http.StatusOK, "xds-0"},
		admin + "/healthz":      {http.StatusNotFound, ""},
		// No replica leads without the API server.
		admin + "/history/shop/web/u":  {http.StatusOK, `{"replica":"xds-0","leads":false,`},
		health + "/history/shop/web/u": {http.StatusNotFound, ""},
		health + "/healthz":            {http.StatusOK, "ok"},
		health + "/proxies":            {http.StatusNotFound, ""},
		health + "/proxies/a/b":        {http.StatusNotFound, ""},
		health + "/proxies.html":       {http.StatusNotFound, ""},
	} {
		poll.Until(t, time.Minute, at+" answers", func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at, http.NoBody)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }() // it was read
			body, err := io.ReadAll(response.Body)
			if err == nil && (response.StatusCode != want.code || !strings.Contains(string(body), want.text)) {
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

func TestTheAddressOfProxiesIsTheOneThatThePluginAsks(t *testing.T) {
	var opts options.XDS
	opts.AddFlags(flag.NewFlagSet("", flag.ContinueOnError))
	if want := fmt.Sprintf("127.0.0.1:%d", proxieshttp.Port); opts.AdminAddress != want {
		t.Errorf("it is %s, want %s", opts.AdminAddress, want)
	}
}
