// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/selftest"
	"github.com/plumbline-dev/plumbline/internal/serve"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

func TestRunRefusesWhatCannotWork(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":          {args: []string{"--nonsense"}, want: "nonsense"},
		"an argument":              {args: []string{"now"}, want: "now"},
		"the API without a port":   {args: []string{"--role=serve", "--api-address=here"}, want: "--api-address"},
		"a kubeconfig that is not": {args: []string{"--kubeconfig=" + filepath.Join(t.TempDir(), "none")}, want: "--kubeconfig"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, log strings.Builder
			err := run(t.Context(), tc.args, &out, &log)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out, log strings.Builder
	if err := run(t.Context(), []string{"--help"}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-role", "-retention", "-redis-address", "-digest-key-file"} {
		if !strings.Contains(out.String(), flag) {
			t.Errorf("the help does not name %s", flag)
		}
	}
}

// unreachable is the kubeconfig of a cluster that does not answer.
func unreachable(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"apiVersion":"v1","kind":"Config","current-context":"x",
		"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func TestRunWaitsForTheAPIServerUntilToldToStop(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var out, log strings.Builder
	err := run(ctx, []string{"--kubeconfig=" + unreachable(t), "--metrics-address=", "--health-address=", "--leader-elect=false"}, &out, &log)
	if err != nil {
		t.Errorf("being told to stop is an error: %v", err)
	}
	if ctx.Err() == nil {
		t.Error("it ended by itself")
	}
}

// The self-test is not run through run: the libraries have one logger per process,
// and what the test above started may still write to its own.
func TestTheSelftest(t *testing.T) {
	p := process{log: logr.Discard(), registry: telemetry.NewRegistry("selftest")}
	var gate elected.Gate
	mine := &selftest.Options{Namespace: "n", Name: "o", Period: selftest.MinPeriod, Deadline: time.Second}
	work, err := p.selftest(&assessor.Options{Common: options.Common{Server: options.Server{Kubeconfig: unreachable(t)}}}, mine, &gate)
	if err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "selftest", p.registry)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := work(ctx); err != nil {
		t.Errorf("being told to stop is an error: %v", err)
	}
	if ctx.Err() == nil || gate.Check() == nil {
		t.Error("it ended by itself, or is ready without an API server")
	}
}

func TestTheAPIIsNotReadyWithoutAnAPIServer(t *testing.T) {
	p := process{log: logr.Discard(), registry: telemetry.NewRegistry("api")}
	var gate elected.Gate
	mine := serveOptions(t, "--api-address=127.0.0.1:0", "--api-drain-delay=0s")
	run, err := p.serveAPI(&assessor.Options{Common: options.Common{Server: options.Server{Kubeconfig: unreachable(t), Namespace: "plumbline-system"}}}, mine, &gate)
	if err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "api", p.registry)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		t.Errorf("being told to stop is an error: %v", err)
	}
	if failed := p.health.Ready(); ctx.Err() == nil || gate.Check() == nil || failed["certificate"] == nil {
		t.Errorf("it ended by itself, or is ready without an API server: %v", failed)
	}
}

// serveOptions parses the flags of the role serve.
func serveOptions(t *testing.T, args ...string) *serve.Options {
	t.Helper()
	var mine serve.Options
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	mine.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	if errs := mine.Validate(); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return &mine
}
