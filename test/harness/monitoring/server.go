// SPDX-License-Identifier: Apache-2.0

package monitoring

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

// Server is a process that the test ends.
type Server struct {
	tb        testing.TB
	name      string
	arguments []string
	process   *exec.Cmd
	log       bytes.Buffer
	// Address is host and port, on loopback.
	Address string
}

// StartPrometheus starts a Prometheus with a configuration and with flags beside those of the harness.
func StartPrometheus(tb testing.TB, configuration string, flags ...string) *Server {
	tb.Helper()
	s, folder := newServer(tb, "Prometheus", configuration)
	s.arguments = append([]string{program(tb, "PROMETHEUS"), "--config.file=" + filepath.Join(folder, "config.yml"),
		"--storage.tsdb.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + s.Address}, flags...)
	s.Start()
	return s
}

// StartAlertmanager starts an Alertmanager with a configuration, alone in its cluster.
func StartAlertmanager(tb testing.TB, configuration string) *Server {
	tb.Helper()
	s, folder := newServer(tb, "Alertmanager", configuration)
	s.arguments = []string{program(tb, "ALERTMANAGER"), "--config.file=" + filepath.Join(folder, "config.yml"),
		"--storage.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + s.Address, "--cluster.listen-address="}
	s.Start()
	return s
}

func program(tb testing.TB, variable string) string {
	tb.Helper()
	path := os.Getenv(variable)
	if path == "" {
		tb.Fatalf("%s is empty: make test-one sets it to what bin/cluster has built", variable)
	}
	return path
}

func newServer(tb testing.TB, name, configuration string) (server *Server, folder string) {
	tb.Helper()
	port, err := freeport.Claim()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, name: name, Address: fmt.Sprintf("127.0.0.1:%d", port)}
	folder = tb.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "config.yml"), []byte(configuration), 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Stop()
		if tb.Failed() {
			tb.Logf("the log of %s:\n%s", name, s.log.String())
		}
	})
	return s, folder
}

// URL of the server.
func (s *Server) URL() string { return "http://" + s.Address }

// Start starts the process, and waits until the server is ready.
func (s *Server) Start() {
	s.tb.Helper()
	s.process = child.Bind(exec.Command(s.arguments[0], s.arguments[1:]...)) //nolint:gosec,noctx // the test's own program; Stop ends it
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		s.process = nil
		s.tb.Fatal(err)
	}
	poll.Until(s.tb, patience, s.name+" is ready", func() error {
		response, err := http.Get(s.URL() + "/-/ready") //nolint:noctx // on loopback
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

// Stop kills the process, if it runs.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // a process that has ended cannot be killed
	_ = s.process.Wait()         // it was killed
	s.process = nil
}

// Pause stops the process as by SIGSTOP, and returns when each of its threads has stopped.
func (s *Server) Pause() {
	s.tb.Helper()
	pid := s.process.Process.Pid
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		s.tb.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		s.tb.Fatalf("%s has not stopped: %v, %v", s.name, status, err)
	}
}

// Resume lets a paused process go on.
func (s *Server) Resume() {
	s.tb.Helper()
	if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
		s.tb.Fatal(err)
	}
}
