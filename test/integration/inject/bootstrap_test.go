// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// source is the package that is tested, with its golden files.
const source = "../../../pkg/traffic/inject"

// TestARealEnvoyTakesEveryBootstrap has it load the golden files, with all files that
// they name.
func TestARealEnvoyTakesEveryBootstrap(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		s := newSidecar(t, loopback)
		_, authority := envoy.NewServing(t)
		s.project(t, "a.b.c", authority)
		for _, path := range goldenFiles(t, "bootstrap") {
			t.Run(filepath.Base(path), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				//nolint:gosec // a test's own binary
				out, err := child.Bind(exec.CommandContext(ctx, envoy.Binary(t), "--mode", "validate", "--log-level", "warning",
					"--config-yaml", strings.ReplaceAll(golden.Read(t, path), inject.Directory, s.directory),
					"--service-node", "n", "--service-cluster", "c")).CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				// What is deprecated is refused by a later Envoy.
				if strings.Contains(strings.ToLower(string(out)), "deprecated") {
					t.Errorf("it has something deprecated:\n%s", out)
				}
			})
		}
	})
}
