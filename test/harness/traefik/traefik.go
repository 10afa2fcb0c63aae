// SPDX-License-Identifier: Apache-2.0

// Package traefik runs a real Traefik in tests: the one that `bin/cluster which traefik` prints.
package traefik

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit is how long a Traefik may take to start, on a machine that others use too.
const limit = 30 * time.Second

// Program is a Traefik with the entry point web.
type Program struct {
	tb   testing.TB
	cmd  *exec.Cmd
	args []string
	log  string
	// Web is the address for requests, and API that of API and metrics.
	Web, API string
}

// Start one that takes a changed configuration after an interval, with further arguments. It ends with the test.
func Start(tb testing.TB, interval time.Duration, arguments ...string) *Program {
	tb.Helper()
	return StartBare(tb, append([]string{
		"--api=true", "--api.insecure=true", "--metrics.prometheus=true", "--metrics.prometheus.addserviceslabels=true",
		"--providers.providersthrottleduration=" + interval.String(),
	}, arguments...)...)
}

// StartBare starts one whose API, metrics and providers are those of the arguments alone. It ends with the test.
func StartBare(tb testing.TB, arguments ...string) *Program {
	tb.Helper()
	p := &Program{tb: tb, Web: freeport.Address(tb), API: freeport.Address(tb), log: filepath.Join(tb.TempDir(), "traefik.log")}
	p.args = append([]string{
		"--entrypoints.web.address=" + p.Web, "--entrypoints.traefik.address=" + p.API,
		"--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.nocolor=true", "--log.filepath=" + p.log,
	}, arguments...)
	p.Run()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			said, err := os.ReadFile(p.log)
			tb.Logf("the Traefik said (%v):\n%s", err, said)
		}
	})
	return p
}

// Poll are the arguments of a Traefik that polls a provider at an interval with a bearer token.
func Poll(url, token string, interval time.Duration) []string {
	return []string{
		"--providers.http.endpoint=" + url, "--providers.http.pollinterval=" + interval.String(),
		"--providers.http.headers.Authorization=Bearer " + token,
	}
}

// Run starts the program, and waits until it answers.
func (p *Program) Run() {
	p.tb.Helper()
	path := os.Getenv("TRAEFIK")
	if path == "" {
		p.tb.Fatal(`TRAEFIK is not set: run this by "make test-integration", or set it to what "bin/cluster which traefik" prints`)
	}
	p.cmd = child.Bind(exec.Command(path, p.args...))
	if err := p.cmd.Start(); err != nil {
		p.tb.Fatal(err)
	}
	ctx := context.WithoutCancel(p.tb.Context())
	poll.Until(p.tb, limit, "the Traefik answers", func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Web+"/", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("it is not there: %w", err)
		}
		return response.Body.Close()
	})
}

// Kill ends it, whatever it does.
func (p *Program) Kill() {
	if p.cmd == nil {
		return
	}
	p.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // that it was killed
	p.cmd = nil
}

// Signal sends a signal to the program, such as SIGSTOP.
func (p *Program) Signal(signal syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.tb.Error(err)
	}
}
