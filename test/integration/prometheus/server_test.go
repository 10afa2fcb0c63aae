// SPDX-License-Identifier: Apache-2.0

//go:build integration

package prometheus

import (
	"bytes"
	"errors"
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

const patience = time.Minute

// server is a Prometheus that keeps its data over a restart.
type server struct {
	*testing.T
	program, folder, address string
	process                  *exec.Cmd
	log                      bytes.Buffer
}

// configuration scrapes one target often, so that the tests need not wait.
const configuration = `
global: {scrape_interval: 250ms, scrape_timeout: 200ms}
scrape_configs:
- job_name: shop
  static_configs: [{targets: [%q]}]
`

// startServer scrapes the target until the test ends.
func startServer(t *testing.T, target string) *server {
	t.Helper()
	program := os.Getenv("PROMETHEUS")
	if program == "" {
		t.Fatal("PROMETHEUS is empty: make delivery-long builds the server, and sets the variable")
	}
	port, err := freeport.Claim()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, program: program, folder: t.TempDir(), address: fmt.Sprintf("127.0.0.1:%d", port)}
	if err := os.WriteFile(filepath.Join(s.folder, "prometheus.yml"), fmt.Appendf(nil, configuration, target), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("the log of Prometheus:\n%s", s.log.String())
		}
	})
	s.start()
	return s
}

func (s *server) start() {
	s.Helper()
	s.process = child.Bind(exec.Command(s.program, //nolint:noctx // stop ends it
		"--config.file="+filepath.Join(s.folder, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(s.folder, "data"),
		"--web.listen-address="+s.address, "--query.lookback-delta=2s"))
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		s.process = nil
		s.Fatal(err)
	}
	poll.Until(s.T, patience, "Prometheus is ready", func() error {
		response, err := http.Get("http://" + s.address + "/-/ready") //nolint:noctx // on loopback
		if err != nil {
			return err
		}
		_ = response.Body.Close() // the status is all
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
}

// stop kills the process, if it runs.
func (s *server) stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // a process that has ended cannot be killed
	_ = s.process.Wait()         // it was killed
	s.process = nil
}

func (s *server) signal(signal syscall.Signal) {
	s.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.Fatal(err)
	}
}
