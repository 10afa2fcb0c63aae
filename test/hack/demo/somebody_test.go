// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

const clusterTool = "bin/cluster"

// somebody has a cluster and a registry, and a checkout of Plumbline.
type somebody struct {
	admin    *harness.Cluster
	registry string // as given to the demo
}

// newSomebody brings up a cluster under a name of its own (E2E_NAME lets two
// checkouts test at once) and a registry that it pulls from; both end with the test.
func newSomebody(t *testing.T) *somebody {
	t.Helper()
	t.Chdir("../../..")
	name := cmp.Or(os.Getenv("E2E_NAME"), "e2e") + "-demo"
	if os.Getenv("KEEP") == "" {
		t.Cleanup(func() {
			if output, err := exec.CommandContext(context.Background(), clusterTool, "down", "--name", name).CombinedOutput(); err != nil {
				t.Errorf("removing the cluster: %v: %s", err, output)
			}
		})
	}
	tool(t, "build")
	port := freeport.For(t)
	tool(t, "up", "--recreate", "--name", name, "--host-registry", strconv.Itoa(port))
	s := &somebody{admin: &harness.Cluster{Kubeconfig: tool(t, "kubeconfig", "--name", name), Path: t.TempDir()}}
	for _, program := range []string{"kubectl", "helm"} {
		if err := os.Symlink(tool(t, "which", program), filepath.Join(s.admin.Path, program)); err != nil {
			t.Fatal(err)
		}
	}
	s.registry = serveRegistry(t, name) + "/team"
	return s
}

// tool runs the cluster tool and returns what it printed.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), clusterTool, args...)
	command.Env = append(os.Environ(), "PLUMBLINE_OWNER="+strconv.Itoa(os.Getpid()))
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("cluster %v: %v", args, err)
	}
	return strings.TrimSpace(string(output))
}

// serveRegistry runs the registry until the test ends and returns its name, which
// it prints once it listens.
func serveRegistry(t *testing.T, cluster string) string {
	t.Helper()
	command := exec.CommandContext(context.Background(), clusterTool, "registry", "--name", cluster)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("ending the registry: %v", err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the registry: %v", err)
		}
	})
	name, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("waiting for the registry: %v", err)
	}
	return strings.TrimSpace(name)
}

// said is how a run of the demo ended.
type said struct {
	status int
	output string
}

// demo runs the command that a user types. Further settings win over the usual
// ones: REGISTRY= is an argument of make, everything else is environment.
func (s *somebody) demo(t *testing.T, settings ...string) said {
	t.Helper()
	registry := "REGISTRY=" + s.registry
	environment := []string{"KUBECONFIG=" + s.admin.Kubeconfig}
	for _, setting := range settings {
		if strings.HasPrefix(setting, "REGISTRY=") {
			registry = setting
		} else {
			environment = append(environment, setting)
		}
	}
	command := exec.CommandContext(t.Context(), "make", "demo", "CLUSTER=current", registry)
	// As from a fresh terminal: without the settings of the make that runs this test.
	command.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MAKE") || strings.HasPrefix(kv, "MFLAGS=") }), environment...)
	// A grandchild may hold the output open after make was killed.
	command.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	command.Stdout = io.MultiWriter(&output, os.Stdout)
	command.Stderr = command.Stdout
	err := command.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("running make demo: %v", err)
	}
	return said{command.ProcessState.ExitCode(), output.String()}
}

// wantRefusal checks that the demo failed with these words. Up to the preflight's
// end nothing may have been built.
func (s *somebody) wantRefusal(t *testing.T, r said, words ...string) {
	t.Helper()
	if r.status != 2 { // make's own status for a command that failed
		t.Errorf("exit status %d, want 2", r.status)
	}
	for _, want := range words {
		if !strings.Contains(r.output, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.Contains(r.output, "building binaries") && !strings.Contains(r.output, "the demo can run there") {
		t.Error("something was built before the preflight had ended")
	}
	if count := strings.Count(r.output, "demo: "); count != 1 {
		t.Errorf("the error came %d times", count)
	}
}

// must runs kubectl or helm as the cluster's owner.
func (s *somebody) must(t *testing.T, args ...string) string {
	t.Helper()
	result, err := s.admin.Run(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	return result.Stdout
}

func (s *somebody) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := s.admin.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}
