// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// startBinary builds and starts the assessor as a process of its own, with more
// flags if need be; it is killed at the end of the test.
func startBinary(tb testing.TB, flags ...string) *server.Process {
	tb.Helper()
	return startWithin(tb, "270MiB", flags...)
}

// startWithin is startBinary with a value of GOMEMLIMIT.
func startWithin(tb testing.TB, goMemoryLimit string, flags ...string) *server.Process {
	tb.Helper()
	dir := tb.TempDir()
	if err := server.Build(tb.Context(), dir, "assessor"); err != nil {
		tb.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := apiserver.WriteKubeconfig(kubeconfig, config, apiserver.Impersonating(config, assessorUser)); err != nil {
		tb.Fatal(err)
	}
	flags = append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false"}, flags...)
	p, err := server.StartWith([]string{"GOMEMLIMIT=" + goMemoryLimit}, filepath.Join(dir, "assessor"), flags...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { kill(tb, p) })
	return p
}

// kill ends a process at once; a second call does nothing.
func kill(tb testing.TB, p *server.Process) {
	tb.Helper()
	if err := p.Kill(); err != nil {
		tb.Error(err)
	}
}

// tells waits until the process is ready and one of its metrics has a value.
func (w *world) tells(p *server.Process, metric, value string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("it is ready and %s is %s", metric, value), func() error {
		code, body, err := p.Get(w.Ctx(), p.Health, "/readyz")
		if err != nil {
			return err
		}
		if code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		if _, body, err = p.Get(w.Ctx(), p.Metrics, "/metrics"); err != nil {
			return err
		}
		for line := range strings.Lines(body) {
			if got, ok := strings.CutPrefix(strings.TrimSpace(line), metric+" "); ok && got == value {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
}
