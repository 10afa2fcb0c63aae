// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// patience bounds every wait.
const patience = 20 * time.Second

func configuration(t testing.TB, p parts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy.json")
	must(t, os.WriteFile(path, p.bootstrap(t), 0o600))
	return path
}

// TestEnvoyAcceptsEveryGoldenSet has Envoy build all of it, as it would when it is sent.
func TestEnvoyAcceptsEveryGoldenSet(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		binary := envoy.Binary(t)
		files, err := filepath.Glob("../../../pkg/traffic/envoyxds/testdata/*.json")
		must(t, err)
		if len(files) < 10 {
			t.Fatalf("there are %d golden files", len(files))
		}
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				out, err := validate(t, binary, ofGolden(t, file))
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				for line := range strings.Lines(out) {
					if strings.Contains(line, "eprecated") || strings.Contains(line, "work-in-progress") {
						t.Errorf("Envoy says %s", line)
					}
				}
			})
		}
	})
}

// Without it the test above could pass whatever it is given.
func TestEnvoyRefusesWhatCannotBe(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		binary := envoy.Binary(t)
		p := ofGolden(t, "../../../pkg/traffic/envoyxds/testdata/split-by-visitor.json")
		for _, r := range p.routes["shop/web|80"].VirtualHosts[0].Routes {
			for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
				c.Weight.Value = 0
			}
		}
		if out, err := validate(t, binary, p); err == nil {
			t.Errorf("weights of nothing are accepted:\n%s", out)
		}
	})
}

func validate(t *testing.T, binary string, p parts) (string, error) {
	t.Helper()
	cmd := child.Bind(exec.CommandContext(t.Context(), binary, "--mode", "validate", "--disable-hot-restart", "-l", "warning", "-c", configuration(t, p)))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run starts an Envoy that ends with the test, and waits until it listens there.
func run(t testing.TB, p parts, listens ...string) (pid int) {
	t.Helper()
	log := &bytes.Buffer{}
	cmd := p.command(envoy.Binary(t), "--disable-hot-restart", "--concurrency", "2", "-l", "warning", "-c", configuration(t, p))
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as was wanted
		if t.Failed() {
			t.Logf("Envoy's log:\n%s", log)
		}
	})
	for _, address := range listens {
		poll.Until(t, patience, "Envoy listens on "+address, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			connection, err := p.dial(ctx, "tcp", address)
			if err == nil {
				_ = connection.Close() // only whether it can be was asked
			}
			return err
		})
	}
	return cmd.Process.Pid
}
